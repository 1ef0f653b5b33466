"""The order of the rungs, and that a rung which objects spares the job all that come after it."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

import pytest

from dispatch.ladder import LADDER
from dispatch.queue.popper import Claimed
from dispatch.rungs import Pass, climb
from dispatch.worker.context import Context, begin_context
from runs.abort import Abort
from runs.outcome import InfraFault, Reason, Refusal
from runs.workspace.scope import hash16
from tests.dispatch import queuekit
from tests.dispatch.workerkit import Bench

ORDER = [
    *("available", "pause window", "wait", "engine", "scope", "fleet scope", "settings", "once"),
    *("image", "provider", "workspace", "image for user"),
]
SCOPE = hash16("/srv/site")


class Asked:
    """A bench whose edges note that they were asked."""

    def __init__(self, valkey) -> None:
        self.bench = Bench(valkey)
        self.names: list[str] = []
        work = self.bench.host.work
        noted = {
            "images": _Images(self, work.images),
            "credentials_of": self._noting("provider", work.credentials_of),
            "prepare": self._noting("workspace", work.prepare),
            "engine_is_clean": self._noting("engine", work.engine_is_clean),
        }
        object.__setattr__(self.bench.host, "work", replace(work, **noted))

    def _noting(self, name, call):
        def noted(*args):
            self.names.append(name)
            return call(*args)

        return noted

    def context(self, **job: object) -> Context:
        self.bench.enqueue()
        claimed: Claimed = self.bench.claim()
        return begin_context(self.bench.host, claimed, replace(queuekit.JOB, **job), Abort())


class _Images:
    def __init__(self, asked: Asked, images) -> None:
        self._asked, self._images = asked, images

    def image(self, reference):
        self._asked.names.append("image")
        return self._images.image(reference)


@pytest.fixture
def asked(valkey) -> Asked:
    return Asked(valkey)


def climbed(context: Context) -> object:
    with ExitStack() as held:
        return climb(LADDER, context, held, now=context.now, stop_asked=context.abort.is_set)


def test_the_rungs_stand_in_the_order_in_which_they_are_asked():
    assert [rung.name for rung in LADDER] == ORDER


def test_a_job_that_passes_has_been_asked_everything_once(asked):
    context = asked.context()

    assert climbed(context) == Pass()
    assert asked.names == ["engine", "image", "provider", "workspace"]
    assert context.image is not None
    assert context.prepared is not None
    assert dict(context.credentials.variables) == {"KEY": "value"}


@pytest.mark.parametrize(
    ("given", "answer", "names"),
    [
        pytest.param({"packages": True}, Refusal(Reason.NOT_AVAILABLE, "packages"), [], id="available"),
        pytest.param("engine", InfraFault, ["engine"], id="engine"),
        pytest.param("folder", "scope-busy", ["engine"], id="folder"),
        pytest.param(
            "image", Refusal(Reason.JOB_IMAGE_MISSING, image="job:1"), ["engine", "image"], id="image"
        ),
        pytest.param(
            {"image": "-v"},
            Refusal(Reason.CONFIG_REFUSED, "image-reference"),
            ["engine"],
            id="no image's name",
        ),
        pytest.param(
            "credentials",
            Refusal(Reason.PROVIDER_UNCONFIGURED),
            ["engine", "image", "provider"],
            id="provider",
        ),
    ],
)
def test_who_is_stopped_by_a_rung_costs_nothing_of_the_later_ones(asked, given, answer, names):
    bench = asked.bench
    context = asked.context(**(given if isinstance(given, dict) else {}))
    match given:
        case "engine":
            bench.engine.is_clean = False
        case "folder":
            bench.host.scopes.try_take(SCOPE, 1)
        case "image":
            bench.engine.image_facts = None
        case "credentials":
            bench.credentials = answer

    if answer is InfraFault:
        with pytest.raises(InfraFault) as caught:
            climbed(context)
        assert caught.value.reason is Reason.CONTAINER_NEVER_STARTED
    else:
        got = climbed(context)
        assert got == answer or getattr(got, "reason", None) == answer

    assert asked.names == names
    assert bench.places.prepared == 0
    assert bench.host.scopes.held == ({SCOPE: 1} if given == "folder" else {})
