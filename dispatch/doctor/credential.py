"""Check of the default provider's credential: only whether it is there."""

from __future__ import annotations

from dispatch.console.findings import Finding
from dispatch.doctor.configuration import Known, not_looked_at
from dispatch.doctor.host import AREA
from dispatch.operator_files import overlay_file
from dispatch.operator_files.overlay import EMPTY
from dispatch.operator_files.problems import OperatorFileError
from pidispatch_site.variables import BackendKind
from runs import provider
from runs.outcome import InfraFault, Refusal


def look(known: Known) -> Finding:
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


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"
