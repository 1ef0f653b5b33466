"""Checks of the images that triggers name: each is on this host, is one of ours, and does what they need."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial

from dispatch.console.findings import Finding
from dispatch.console.fleet_words import named
from dispatch.console.trigger_words import short
from dispatch.console.triggers_file import TriggersFile
from dispatch.doctor.bounded import within
from dispatch.doctor.configuration import Known
from dispatch.doctor.triggers import AREA
from dispatch.triggers.entries import CronOn, Trigger
from pidispatch_site.errors import ConfigurationError
from pidispatch_site.variables import BackendKind
from runs import preflight
from runs.engine import Engine
from runs.protocols import EngineSilentError, ImageFacts

# Each is a question to the engine.
_MOST_IMAGES = 20
_OURS = "Build it from ours (image/build.sh), which declares what it can do; or name another."


def look(known: Known, file: TriggersFile, *, seconds: float) -> Iterator[Finding]:
    """Look for the images that entries name themselves, the default one being looked for with the host.

    The engine gets so many seconds for each answer.
    """
    wanted: dict[str, list[Trigger]] = defaultdict(list)
    for one in file.triggers.entries if file.triggers else ():
        if one.run.image:
            wanted[one.run.image].append(one)
    if not wanted or "PI_BACKEND" in known.wrong or known.config.backend is not BackendKind.DOCKER:
        return
    try:
        asked = Engine(environment=known.config.environment, quick_seconds=seconds)
    except ConfigurationError:
        return
    with closing(asked):
        yield from _judged(asked, wanted, seconds)


def _judged(asked: Engine, wanted: Mapping[str, Sequence[Trigger]], seconds: float) -> Iterator[Finding]:
    for reference in sorted(wanted)[:_MOST_IMAGES]:
        entries = wanted[reference]
        try:
            facts = within(seconds, partial(asked.image, reference))
        except (EngineSilentError, TimeoutError):
            # Told with the host.
            return
        the_image = f"the image {short(reference)} of {named([_name(one) for one in entries])}"
        if facts is None:
            yield AREA.warning(
                "image",
                f"{the_image} is not on this host, and no job pulls one",
                "Build or load it here, or correct the entry.",
            )
        elif refused := _refused(reference, facts, entries):
            yield AREA.warning("image", f"{the_image} cannot do what they need ({refused})", _OURS)
        elif facts.pi_version is None and facts.capabilities is None:
            # Our own and what is built from it say so; to see what is in it would mean to run it.
            text = f"{the_image} does not say that it has the runner, without which no job runs in it"
            yield AREA.warning("image", text, _OURS)
    if len(wanted) > _MOST_IMAGES:
        more = len(wanted) - _MOST_IMAGES
        yield AREA.warning("image", f"{more} more images were not looked at", "Look at them by hand.")


def _refused(reference: str, facts: ImageFacts, entries: Iterable[Trigger]) -> str | None:
    for one in entries:
        needs = preflight.Needs(
            kind=one.run.kind, commands=bool(one.run.command), replicas=bool(one.run.replicas), any_uid=None
        )
        if refused := preflight.judge_image(reference, facts, needs):
            return refused.reason
    return None


def _name(one: Trigger) -> str:
    return one.on.id if isinstance(one.on, CronOn) else f"rule {one.index}"
