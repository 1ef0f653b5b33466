"""Looks at everything once, in the order in which it is told; never raises and never hangs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from redis.exceptions import RedisError

from dispatch.console import fleet as fleet_reading
from dispatch.console import schedules
from dispatch.console.findings import Area, Finding
from dispatch.console.fleet_facts import FleetFacts
from dispatch.console.fleet_words import AREA as FLEET
from dispatch.console.schedule_facts import Overview
from dispatch.console.schedule_runs import last_runs
from dispatch.console.server import explained, reached
from dispatch.console.triggers_file import TriggersFile
from dispatch.doctor import (
    configuration,
    credential,
    engine,
    files,
    fleet,
    host,
    retention,
    state_directory,
    trigger_images,
    trigger_parts,
    triggers,
    valkey,
    waits,
)
from dispatch.doctor.bounded import within
from dispatch.doctor.configuration import Known, not_looked_at
from pidispatch_site import conf, embedded, server_url
from pidispatch_site.errors import ConfigurationError, PidispatchError
from pidispatch_site.places import StateDirectory

if TYPE_CHECKING:
    import redis

_ENGINE_SECONDS = 5.0
# A few questions, of which each has two seconds.
_VALKEY_SECONDS = 8.0
_FILES_SECONDS = 5.0
# Git is asked in some folders.
_PARTS_SECONDS = 15.0
# The engine is asked several questions, and this is only for what went wrong with asking.
_SPARE_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Server:
    """What was found about the server, and fleet and schedules that stand in it, or why that is not known."""

    findings: tuple[Finding, ...]
    fleet: FleetFacts | None = None
    schedules: Overview | None = None
    why: str = "the server does not answer"


def examine(
    environment: Mapping[str, str],
    *,
    folder: Path | None,
    engine_seconds: float = _ENGINE_SECONDS,
) -> tuple[Finding, ...]:
    """Check the fleet, then this host; `folder` is the current one, None when it is gone."""
    known = configuration.read(environment)
    file = _file_of(known)
    server = _server_of(known, environment, file)
    areas: tuple[tuple[Area, Callable[[], Iterable[Finding]], float], ...] = (
        (FLEET, lambda: _fleet(known, server), _FILES_SECONDS),
        (configuration.AREA, lambda: configuration.look(known, environment), _FILES_SECONDS),
        (host.AREA, lambda: _machine(environment, folder), _FILES_SECONDS),
        (host.AREA, lambda: engine.look(known, seconds=engine_seconds), 2 * engine_seconds + _SPARE_SECONDS),
        (host.AREA, lambda: _own(known), _FILES_SECONDS),
        (valkey.AREA, lambda: server.findings, _FILES_SECONDS),
        (waits.AREA, lambda: waits.look(known), _FILES_SECONDS),
        (triggers.AREA, lambda: triggers.look(known, folder, server.schedules, file), _FILES_SECONDS),
        (
            triggers.AREA,
            lambda: trigger_parts.look(known, file),
            _PARTS_SECONDS,
        ),
        (
            triggers.AREA,
            lambda: trigger_images.look(known, file, seconds=engine_seconds),
            _FILES_SECONDS + engine_seconds,
        ),
        (files.AREA, lambda: files.look(known, folder), _FILES_SECONDS),
        (retention.AREA, lambda: retention.look(known), _FILES_SECONDS),
    )
    return tuple(finding for area, look, seconds in areas for finding in _guarded(area, look, seconds))


def _guarded(area: Area, look: Callable[[], Iterable[Finding]], seconds: float) -> tuple[Finding, ...]:
    """Look at an area; what keeps from it is a failure of that area and of no other."""
    try:
        return within(seconds, lambda: tuple(look()))
    except TimeoutError:
        text = f"no answer within {seconds:.0f} s"
        return (area.failed("timeout", text, "Is a network file system away? Look at the folders it names."),)
    except Exception as error:  # noqa: BLE001 - whatever it is, the other areas are still to be told
        text = f"this check itself failed ({type(error).__name__})"
        return (area.failed("check-failed", text, "Report it, with what is special about this host."),)


def _machine(environment: Mapping[str, str], folder: Path | None) -> Iterable[Finding]:
    return host.python(tuple(sys.version_info[:3])), host.env_file(environment, folder)


def _own(known: Known) -> Iterable[Finding]:
    return credential.look(known), state_directory.look(known)


def _fleet(known: Known, server: _Server) -> Iterable[Finding]:
    config = known.config
    name_is_wrong = "PI_WORKER_NAME" in known.wrong
    if server.fleet is None:
        if not config.worker_name_declared and not name_is_wrong:
            return ()
        return (FLEET.warning("hosts", f"not looked at: {server.why}", "See valkey, below."),)
    own = fleet.Own(
        name=None if name_is_wrong else config.worker_name,
        is_declared=config.worker_name_declared or name_is_wrong,
        host_id=None if "PI_STATE_DIR" in known.wrong else fleet.own_host_id(config.state_dir),
    )
    return fleet.look(server.fleet, own)


def _file_of(known: Known) -> TriggersFile:
    """Read the triggers file; one that gives no answer does not load."""
    try:
        return within(_FILES_SECONDS, lambda: triggers.file_of(known))
    except TimeoutError:
        path = known.config.triggers_file
        said = f"{path}: gives no answer; is a network file system away? Look at its folder"
        return TriggersFile(path=path, problems=(said,))


def _server_of(known: Known, environment: Mapping[str, str], file: TriggersFile) -> _Server:
    found: list[_Server] = []

    def look() -> Iterable[Finding]:
        found.append(_asked(known, environment, file))
        return found[-1].findings

    findings = _guarded(valkey.AREA, look, _VALKEY_SECONDS)
    return found[-1] if found else _Server(findings=findings)


def _asked(known: Known, environment: Mapping[str, str], file: TriggersFile) -> _Server:
    try:
        url, state_dir = conf.switch_settings(environment)
    except ConfigurationError:
        why = "VALKEY_URL cannot be used"
        return _Server(findings=(not_looked_at(valkey.AREA, "reachable", "VALKEY_URL"),), why=why)
    if "VALKEY_URL" in known.wrong:
        # Right by itself, and not together with another variable.
        return _Server(findings=(not_looked_at(valkey.AREA, "reachable", "VALKEY_URL"),))
    try:
        address = url if url != server_url.EMBEDDED else embedded.find(StateDirectory(state_dir or Path("/")))
        if address is None:
            return _Server(findings=(_not_running(),), why="the embedded server does not run")
        with reached(address) as server:
            answered = tuple(valkey.judge(valkey.ask(server.client), shown=server.shown))
            try:
                seen = fleet_reading.read(server.client)
                return _Server(findings=answered, fleet=seen, schedules=_schedules(server.client, seen, file))
            except RedisError as fault:
                return _Server(findings=(*answered, _unreachable(explained(fault, server.shown))))
    except PidispatchError as error:
        return _Server(findings=(_unreachable(error),))


def _schedules(client: redis.Redis, seen: FleetFacts, file: TriggersFile) -> Overview | None:
    """Look how schedules stand; None where that cannot be read, which costs nothing else."""
    try:
        return schedules.read(client, seen, file, last_runs)
    except RedisError:
        return None


def _not_running() -> Finding:
    return valkey.AREA.warning(
        "reachable",
        "the embedded server does not run",
        "`manage.py runworker` and `manage.py run` start it.",
    )


def _unreachable(error: PidispatchError) -> Finding:
    said, _, fix = str(error).partition(". ")
    return valkey.AREA.failed(
        "reachable", said.removesuffix("."), fix or "Check VALKEY_URL and the rights of its user."
    )
