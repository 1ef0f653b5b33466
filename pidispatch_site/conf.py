"""The configuration: read once from the environment, all problems in one message (D10, Q 4.1)."""

from __future__ import annotations

import difflib
import pwd
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from os import getuid
from pathlib import Path
from typing import Any

from pidispatch_site import databases, server_url, worker_name
from pidispatch_site.envfile import Environment
from pidispatch_site.errors import ConfigurationError
from pidispatch_site.known_names import LATER, MINTED, OF_PI, PROXY, SET_BY_WORKER, WORKER_ONLY
from pidispatch_site.parsing import Unusable
from pidispatch_site.variables import VARIABLES, BackendKind, CapAction, Variable

LARGEST_SECRET_BYTES = 64 * 1024
_ROWS = {row.name: row for row in VARIABLES}
# Files that bound what a worker does: an empty value must not quietly mean "without it" (Q 4.1).
NO_EMPTY_VALUE = ("PI_SCOPED_LIMITS_FILE", "PI_PAUSE_WINDOWS_FILE", "PI_TRIGGERS_FILE")
_NO_HOME = "PI_STATE_DIR is not set and there is no home directory; expected an absolute path"


class WarningKind(StrEnum):
    """Why a variable that is set does nothing."""

    UNKNOWN = "unknown"
    NOT_BUILT = "not-built"


@dataclass(frozen=True, slots=True)
class ConfigWarning:
    """A variable that is set and has no effect; `nearest` is the known name it may have been meant to be."""

    name: str
    kind: WarningKind
    nearest: str | None = None

    def __str__(self) -> str:
        if self.kind is WarningKind.NOT_BUILT:
            return f"{self.name} is set, but this version does not use it yet"
        hint = f"; did you mean {self.nearest}?" if self.nearest else ""
        return f"{self.name} is not a variable of this product{hint}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Every setting of this host, checked; the variable of each field is in `pidispatch_site.variables`.

    `environment` is the mapping it was read from, whole; `worker_name_declared` is fleet mode.
    """

    environment: Mapping[str, str] = field(repr=False)
    warnings: tuple[ConfigWarning, ...] = ()
    valkey_url: str = field(repr=False)
    database_url: str | None = field(repr=False)
    state_dir: Path
    logs_dir: Path
    jobs_dir: Path
    worker_name: str
    worker_name_declared: bool
    concurrency: int
    daily_cap: int
    weekly_cap: int | None
    monthly_cap: int | None
    soft_hold_pct: int | None
    daily_token_cap: int | None
    cap_action: CapAction
    scoped_limits_file: Path | None
    pause_windows_file: Path | None
    settings_file: Path
    wait_profiles: Mapping[str, Path]
    wait_check_timeout_ms: int
    wait_interval_ms: int
    wait_check_slots: int
    wait_max_ms: int
    wait_after_max_ms: int
    wait_max_checks: int
    wait_max_faults: int
    triggers_file: Path | None
    scheduler_stall_max: int
    chain_depth_max: int
    chain_max_per_job: int
    max_turns: int
    max_tokens: int | None
    provider: str
    model: str
    job_image: str
    global_pi_dir: Path | None
    global_allow_extensions: bool
    forward_env: tuple[str, ...]
    auth_from_pi: bool
    coding_agent_dir: Path
    egress: bool
    secret_profiles: Mapping[str, Path]
    capture_job_logs: bool
    log_retention_days: int
    run_retention_days: int
    backend: BackendKind
    web_origins: tuple[str, ...]


def load(environment: Mapping[str, str], *, hostname: Callable[[], str] = socket.gethostname) -> Config:
    """Read the configuration out of `environment`; raise one `ConfigurationError` with every problem."""
    problems = list(environment.problems) if isinstance(environment, Environment) else []
    values = _read(environment, problems)
    _fill_places(values, environment, problems)
    _fill_name(values, hostname, problems)
    problems += _crossed(values, environment)
    if problems:
        raise ConfigurationError(*problems)
    return Config(environment=environment, warnings=_warnings(environment), **values)


def one(name: str, environment: Mapping[str, str]) -> Any:
    """Read one variable and no other; None where it is unset and has no fixed default.

    Raises `ConfigurationError`.
    """
    problems: list[str] = []
    value = _value(_ROWS[name], environment, problems)
    if problems:
        raise ConfigurationError(*problems)
    return value


def state_dir(environment: Mapping[str, str]) -> Path:
    """Read where this host keeps its things and nothing else; `ConfigurationError` if that is unknown."""
    found: Path | None = one("PI_STATE_DIR", environment) or _default_state_dir(environment)
    if found is None:
        raise ConfigurationError(_NO_HOME)
    return found


def switch_settings(environment: Mapping[str, str]) -> tuple[str, Path | None]:
    """Read the server's address and the state directory, all that a command that stops work may depend on.

    Raises `ConfigurationError` only where these two do not tell which server is meant: acting on a guessed
    one would leave the real one running. The directory is None where it is unknown and not needed, since the
    server is not the embedded one.
    """
    unread = environment.unread if isinstance(environment, Environment) else None
    if unread and not (environment.get("VALKEY_URL") or environment.get("VALKEY_URL_FILE")):
        raise ConfigurationError(f"{unread}; set VALKEY_URL to say which server is meant")
    url = one("VALKEY_URL", environment)
    try:
        return url, state_dir(environment)
    except ConfigurationError:
        if url == server_url.EMBEDDED:
            raise
        return url, None


def home(environment: Mapping[str, str]) -> Path | None:
    """Find the home directory by HOME, else by the system's user table; None when neither tells."""
    named = environment.get("HOME", "")
    if Path(named).is_absolute():
        return Path(named)
    try:
        return Path(pwd.getpwuid(getuid()).pw_dir)
    except KeyError:
        return None


def _read(environment: Mapping[str, str], problems: list[str]) -> dict[str, Any]:
    return {row.field: _value(row, environment, problems) for row in VARIABLES if row.field is not None}


def _value(row: Variable, environment: Mapping[str, str], problems: list[str]) -> Any:
    """Read one variable: its value, or its default where it is unset, empty or wrong; add what is wrong."""
    text = environment.get(row.name, "")
    if row.secret:
        text = _secret(row.name, environment, problems)
    if text == "":
        return row.value
    try:
        return row.parse(text)
    except Unusable as exc:
        found = "is set to a value that is not shown" if row.secret else f"is {_clipped(text)}"
        problems.append(f"{row.name} {found}; expected {exc}")
        return row.value


def _clipped(text: str) -> str:
    return repr(text if len(text) <= 100 else f"{text[:100]}…")


def _secret(name: str, environment: Mapping[str, str], problems: list[str]) -> str:
    """Read the text of NAME, else the content of the file that NAME_FILE names, without its line end."""
    text, file = environment.get(name, ""), environment.get(f"{name}_FILE", "")
    if not file:
        return text
    if text:
        problems.append(f"{name} and {name}_FILE are both set; expected one of them")
        return text
    try:
        with Path(file).open("rb") as opened:
            return opened.read(LARGEST_SECRET_BYTES).decode().rstrip("\r\n")
    except (OSError, ValueError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "it is not text"
        problems.append(f"{name}_FILE names {_clipped(file)}, which cannot be read: {reason}")
        return ""


def _fill_places(values: dict[str, Any], environment: Mapping[str, str], problems: list[str]) -> None:
    state = values["state_dir"] = values["state_dir"] or _default_state_dir(environment)
    if state is None:
        problems.append(_NO_HOME)
        return
    values["logs_dir"] = values["logs_dir"] or state / "logs"
    values["jobs_dir"] = values["jobs_dir"] or state / "jobs"
    values["settings_file"] = values["settings_file"] or state / "settings.json"
    values["coding_agent_dir"] = values["coding_agent_dir"] or (home(environment) or state) / ".pi" / "agent"


def _default_state_dir(environment: Mapping[str, str]) -> Path | None:
    found = home(environment)
    return found / ".pi-dispatch" if found else None


def _fill_name(values: dict[str, Any], hostname: Callable[[], str], problems: list[str]) -> None:
    typed = values["worker_name"]
    values["worker_name_declared"] = typed is not None
    if typed is None:
        values["worker_name"] = worker_name.defaulted(hostname)
        return
    expected = worker_name.declared(typed)
    if expected:
        problems.append(f"PI_WORKER_NAME is {_clipped(typed)}; expected {expected}")


def _crossed(values: Mapping[str, Any], environment: Mapping[str, str]) -> list[str]:
    """Find what is wrong between settings that are each right."""
    problems = []
    if values["valkey_url"] == server_url.EMBEDDED and values["worker_name_declared"]:
        problems.append(
            "VALKEY_URL is embedded and PI_WORKER_NAME is set: a fleet needs a server that every host "
            "reaches; set VALKEY_URL to it, or leave PI_WORKER_NAME unset on a single machine",
        )
    problems += [
        f"{name} is set to an empty value, which could mean no file or a forgotten one; expected a path, or"
        " the line taken out"
        for name in NO_EMPTY_VALUE
        if environment.get(name) == ""
    ]
    problems += _forwarded(values["forward_env"], environment, egress=values["egress"])
    return problems + databases.problems(values["database_url"])


def _forwarded(forwarded: tuple[str, ...], environment: Mapping[str, str], *, egress: bool) -> list[str]:
    secret = WORKER_ONLY | {environment.get("GITHUB_PAT_VAR", "")}
    rules = [
        (MINTED, "each job gets a token of its own under this name"),
        (secret, "it is a secret that only the worker may hold"),
        (SET_BY_WORKER, "the worker sets it for each job"),
        (PROXY if egress else frozenset(), "it would lead around the allowlist while PI_EGRESS is on"),
    ]
    return [
        f"PI_FORWARD_ENV names {name}, which is refused: {reason}"
        for name in forwarded
        for refused, reason in rules
        if name in refused
    ]


def _warnings(environment: Mapping[str, str]) -> tuple[ConfigWarning, ...]:
    ours = set(_ROWS)
    known = sorted(ours | LATER)
    warnings = []
    for name in sorted(environment):
        if name in LATER and environment[name]:
            warnings.append(ConfigWarning(name, WarningKind.NOT_BUILT))
        elif name.startswith("PI_") and name not in ours | LATER | OF_PI | SET_BY_WORKER:
            nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
            warnings.append(ConfigWarning(name, WarningKind.UNKNOWN, nearest[0] if nearest else None))
    return tuple(warnings)
