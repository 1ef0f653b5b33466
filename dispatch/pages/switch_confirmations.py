"""What a person is told and asked before the switch is turned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dispatch.console.instants import stamp
from dispatch.console.pause_shown import Held
from dispatch.console.switched import counted
from hosts import keys


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """A page before an action: `lead` says what will happen, `button` does it.

    `queues` are those that are meant (none: all), `host` the one that is to be stopped.
    `ends` tells of a scope with a pause whether that ends; None: this is no resuming.
    """

    title: str
    lead: str
    button: str
    queues: tuple[str, ...] = ()
    host: str | None = None
    has_expiry: bool = False
    has_seconds: bool = False
    shows_running: bool = False
    is_danger: bool = True
    ends: Callable[[str], bool] | None = None

    @property
    def reason_help(self) -> str:
        """Say where the reason is seen that somebody gives."""
        if self.ends:
            return "Kept in the log."
        return f"Shown wherever the {'drain' if self.host else 'pause'} is shown, and kept in the log."


def confirm_pause(queues: Sequence[str]) -> Confirmation:
    """Before a pause of these queues, or of the fleet when there are none."""
    if queues:
        what, which = f"Pause {_count(queues)}", f"No job of {counted(queues)} starts"
    else:
        what, which = "Pause the whole fleet", "No job starts on any host, also of queues that appear later"
    lead = f"{which}, until this is resumed or its time is over. What runs goes on to its end."
    return Confirmation(title=what, lead=lead, button=what, queues=tuple(queues), has_expiry=True)


def confirm_resume(queues: Sequence[str]) -> Confirmation:
    """Before these queues, or everything when there are none, are resumed."""
    if queues:
        what = f"Resume {_count(queues)}"
        ends: Callable[[str], bool] = set(queues).__contains__
        lead = (
            f"The own pause of {counted(queues)} ends. While the whole fleet is paused, no job starts all the"
            " same."
        )
    else:
        what, ends = "Resume everything", bool
        lead = (
            "Every pause ends, the fleet's and those of single queues, and requests to stop are taken back."
            " What waits starts at once. Drains of hosts stay."
        )
    return Confirmation(title=what, lead=lead, button=what, queues=tuple(queues), is_danger=False, ends=ends)


def confirm_resume_fleet(_: Sequence[str]) -> Confirmation:
    """Before the fleet's pause alone is ended."""
    what = "Resume the fleet's pause only"
    lead = (
        "The pause of the whole fleet ends, and its requests to stop are taken back. Pauses of single queues"
        " and drains of hosts stay, with the requests to stop that came with a drain. What waits in the other"
        " queues starts at once."
    )
    return Confirmation(title=what, lead=lead, button=what, is_danger=False, ends=keys.FLEET.__eq__)


def confirm_stop(host: str | None, *, held: Held | None = None) -> Confirmation:
    """Before what runs on this host, or in the whole fleet, is stopped.

    `held` is what drains or pauses it now; a stop takes away the end of that.
    """
    ends = f" until {stamp(held.until_ms)}; that end is taken away" if held and held.until_ms else ""
    if host and held:
        title = button = f"Stop the jobs of {host}"
        first = f"{host} is drained{ends or ' and stays so'}: it takes no job until somebody undrains it."
    elif host:
        title = button = f"Drain {host} and stop its jobs"
        first = f"{host} will be drained: it takes no job until somebody undrains it."
    else:
        title = "Pause everything and stop running jobs"
        button = "Pause everything and stop all jobs"
        will_be = f"is paused{ends or ' and stays so'}: no job starts" if held else "will be paused"
        first = f"The whole fleet {will_be} until somebody resumes it."
    lead = (
        f"{first} Every container below will be stopped at once; its job ends and does not run again by"
        " itself."
    )
    return Confirmation(
        title=title, lead=lead, button=button, host=host, has_seconds=True, shows_running=True
    )


def _count(queues: Sequence[str]) -> str:
    return queues[0] if len(queues) == 1 else f"{len(queues)} queues"
