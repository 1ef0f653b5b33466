"""Checks of the container engine: whether it answers, and which image jobs would run in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from dispatch.console.findings import Finding
from dispatch.doctor.bounded import within
from dispatch.doctor.configuration import Known, not_looked_at
from dispatch.doctor.host import AREA
from pidispatch_site.errors import ConfigurationError
from pidispatch_site.variables import BackendKind
from runs import preflight
from runs.engine import Engine
from runs.protocols import EngineSilentError, ImageFacts

_BUILD = "`make image` builds pi-job:latest"


def look(known: Known, *, seconds: float) -> Iterator[Finding]:
    """Ask the container engine whether it is there, and for the default image: each `seconds` at most."""
    if "PI_BACKEND" in known.wrong:
        yield not_looked_at(AREA, "engine", "PI_BACKEND")
    elif known.config.backend is BackendKind.PROCESS:
        yield AREA.warning(
            "engine",
            "PI_BACKEND=process runs jobs without any isolation, and only the scripted agent of the demo",
            "Take PI_BACKEND out to run jobs in containers.",
        )
    else:
        yield from _container_engine(known, seconds)


def _container_engine(known: Known, seconds: float) -> Iterator[Finding]:
    where = "DOCKER_HOST" if known.config.environment.get("DOCKER_HOST") else "the usual socket"
    fix = (
        "Start Docker or Podman's service, or name its socket by DOCKER_HOST; this user must be allowed to"
        " use it."
    )
    try:
        asked = Engine(environment=known.config.environment, quick_seconds=seconds)
    except ConfigurationError:
        yield AREA.failed(
            "engine",
            "DOCKER_HOST and DOCKER_CERT_PATH cannot be used: there are no certificates for them",
            "Correct them, or take them out for an engine on this machine.",
        )
        return
    try:
        within(seconds, asked.ping)
    except (EngineSilentError, TimeoutError) as silence:
        yield AREA.failed("engine", f"no container engine answers at {where} ({_token(silence)})", fix)
        # Who still waits for its answer would keep us from closing it.
        if isinstance(silence, EngineSilentError):
            asked.close()
        return
    with closing(asked):
        yield AREA.ok("engine", f"the container engine at {where} answers")
        yield _image(known, asked, seconds)


def _image(known: Known, asked: Engine, seconds: float) -> Finding:
    reference = known.config.job_image
    if "PI_JOB_IMAGE" in known.wrong:
        return not_looked_at(AREA, "image", "PI_JOB_IMAGE")
    try:
        facts = within(seconds, lambda: asked.image(reference))
    except (EngineSilentError, TimeoutError) as silence:
        return AREA.failed(
            "image",
            f"the engine does not say whether it has {reference} ({_token(silence)})",
            "Look after the engine: `docker image inspect` with this name should answer.",
        )
    if facts is None:
        return AREA.failed(
            "image",
            f"the job image {reference} is not on this host, and no job pulls one",
            f"{_BUILD}; PI_JOB_IMAGE names another.",
        )
    return _judged_image(reference, facts)


def _judged_image(reference: str, facts: ImageFacts) -> Finding:
    digest, version = facts.id.removeprefix("sha256:")[:12], facts.pi_version
    text = f"the job image {reference} is {digest}" + (f" with pi {version}" if version else "")
    refused = preflight.judge_image(reference, facts, preflight.Needs(kind="local", any_uid=True))
    if refused:
        return AREA.warning(
            "image",
            f"{text}, and jobs that run as the folder's owner are refused ({refused.reason})",
            f"{_BUILD}, which declares what it can do.",
        )
    return AREA.ok("image", text)


def _token(silence: EngineSilentError | TimeoutError) -> str:
    return silence.token if isinstance(silence, EngineSilentError) else "engine-timeout"
