"""Checks of this machine: Python, the file of variables, the credential, the state directory."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from dispatch.console.findings import Area, Finding
from dispatch.doctor.configuration import Known, not_looked_at
from dispatch.operator_files import overlay_file
from dispatch.operator_files.overlay import EMPTY
from dispatch.operator_files.problems import OperatorFileError
from pidispatch_site.variables import BackendKind
from runs import provider
from runs.outcome import InfraFault, Refusal

AREA = Area("host")
_LEAST, _TESTED = (3, 11), (3, 13)
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def python(version: tuple[int, ...]) -> Finding:
    """Judge the version of Python that this runs on."""
    text = f"Python {'.'.join(map(str, version[:3]))}"
    allowed = f"Use Python {_LEAST[0]}.{_LEAST[1]} to {_TESTED[0]}.{_TESTED[1]}."
    if version[:2] < _LEAST:
        return AREA.failed("python", f"{text} is too old", allowed)
    if version[:2] > _TESTED:
        return AREA.warning("python", f"{text} is newer than any that was tested", allowed)
    return AREA.ok("python", text)


def env_file(environment: Mapping[str, str], folder: Path | None) -> Finding:
    """Look for the file of variables, as commands that are started here do."""
    named = environment.get("PI_ENV_FILE")
    if folder is None and not named:
        return AREA.warning("env-file", "the current folder is gone, and with it any .env", "Change folder.")
    path = (folder or Path("/")) / (named or ".env")
    try:
        mode = path.stat().st_mode
    except OSError:
        return AREA.warning(
            "env-file",
            f"{path} is not there: only the variables of this process count",
            "Go to the folder where it lies or name it by PI_ENV_FILE; nothing is to be done where a service"
            " manager sets the variables.",
        )
    if mode & _OTHERS:
        return AREA.warning(
            "env-file", f"{path} is open to other users, and such files hold keys", f"chmod 600 {path}"
        )
    return AREA.ok("env-file", f"variables are read from {path}")


def credential(known: Known) -> Finding:
    """Look for the credential of the default provider as a job's start does; only whether it is there."""
    config = known.config
    on = known.wrong & {"PI_PROVIDER", "PI_CODING_AGENT_DIR", "PI_GLOBAL_PI_DIR", "PI_FORWARD_ENV"}
    if on:
        return not_looked_at(AREA, "credential", *on)
    if config.backend is BackendKind.PROCESS:
        return AREA.ok("credential", "PI_BACKEND=process needs no provider's credential")
    name = _overlay_provider(known) or config.provider
    try:
        found = provider.resolve(
            name,
            config.environment,
            auth_from_pi=config.auth_from_pi,
            agent_dir=config.coding_agent_dir,
            global_pi_dir=config.global_pi_dir,
            forward_env=config.forward_env,
        )
    except InfraFault as fault:
        return AREA.failed(
            "credential",
            f"whether provider {name!r} has a credential cannot be told ({fault.detail or fault.reason})",
            "Let this user read pi's own files (PI_CODING_AGENT_DIR, PI_GLOBAL_PI_DIR).",
        )
    if isinstance(found, Refusal):
        said, _, remedy = provider.advice(name).partition(": ")
        why = f" ({found.detail})" if found.detail else ""
        return AREA.failed("credential", f"{said[:1].lower()}{said[1:]}{why}", _sentence(remedy))
    return AREA.ok("credential", f"provider {name!r} has a credential")


def _overlay_provider(known: Known) -> str | None:
    """Find the provider that the settings file puts before the environment's; one that does not load none."""
    try:
        found = EMPTY if "PI_SETTINGS_FILE" in known.wrong else overlay_file.read(known.config.settings_file)
    except OperatorFileError:
        return None
    return found.provider


def state_directory(known: Known) -> Finding:
    """Judge whether a worker could keep its things where it would, making nothing."""
    if "PI_STATE_DIR" in known.wrong:
        return not_looked_at(AREA, "state-directory", "PI_STATE_DIR")
    path = known.config.state_dir
    try:
        found = path.stat()
        if not stat.S_ISDIR(found.st_mode):
            return _unusable(path, "it is no directory")
        if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
            return _unusable(path, "this user may not read and write it")
        return _privacy(path, found.st_mode)
    except FileNotFoundError:
        return _to_be_made(path)
    except OSError as error:
        return _unusable(path, error.strerror or type(error).__name__)


def _privacy(path: Path, mode: int) -> Finding:
    """Judge who else may enter; an empty directory is tightened by whoever uses it first."""
    if mode & _OTHERS and any(path.iterdir()):
        return AREA.failed(
            "state-directory",
            f"the state directory {path} is open to other users: no worker starts",
            f"If it is meant to be this product's own: chmod 700 {path}",
        )
    return AREA.ok("state-directory", f"the state directory {path} can be used")


def _to_be_made(path: Path) -> Finding:
    there = next((one for one in path.parents if one.exists()), Path("/"))
    if there.is_dir() and os.access(there, os.W_OK | os.X_OK):
        return AREA.ok("state-directory", f"the state directory {path} will be made by the first start")
    return _unusable(path, f"it is not there, and this user cannot make it in {there}")


def _unusable(path: Path, why: str) -> Finding:
    return AREA.failed(
        "state-directory",
        f"the state directory {path} cannot be used: {why}",
        "Give PI_STATE_DIR a directory that this user owns.",
    )


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"
