"""Pause windows as the console lists and edits them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from dispatch.console.adoption import WINDOWS
from dispatch.console.counts import number_of
from dispatch.console.instants import stamp
from dispatch.console.rule_fields import FieldKind, RuleField
from dispatch.console.rules import Cell, Rule, Rules
from dispatch.instants import epoch_ms
from dispatch.operator_files import pause_windows
from dispatch.operator_files.pause_windows import EVERY_SCOPE, WEEKDAYS, PauseWindow, paused_until
from dispatch.operator_files.zones import DAY

_HOURS = "Hours"
_DAYS = "Days"
_NOW = "Now"

FIELDS = (
    RuleField(
        name="scope",
        label="Scope",
        help="A repository as its forge writes it, a folder by its real path, or * for every job.",
    ),
    RuleField(name="allDay", label="The whole day", help="Instead of from and to.", kind=FieldKind.FLAG),
    RuleField(name="from", label="From", help="HH:MM on the clock of the zone."),
    RuleField(name="to", label="To", help="HH:MM; not later than from: on the next day."),
    RuleField(name="tz", label="Time zone", help="An IANA time zone such as Europe/London. Blank: UTC."),
    RuleField(
        name="days", label="Days on which it begins", help="None ticked: every day.", kind=FieldKind.DAYS
    ),
    RuleField(name="dateFrom", label="First date", help="YYYY-MM-DD. Blank: since ever."),
    RuleField(name="dateTo", label="Last date", help="YYYY-MM-DD, included. Blank: for ever."),
)


def _cells(rule: Rule, now: datetime) -> tuple[Cell, ...]:
    window = _window(rule)
    end = paused_until((window,), window.scope, now)
    holds = Cell(_NOW, f"holds until {_stamp(end)}", "warn") if end else Cell(_NOW, "does not hold")
    return Cell(_HOURS, _hours(window)), Cell(_DAYS, _days(window)), holds


def _notes(rule: Rule, now: datetime) -> Iterator[str]:
    window = _window(rule)
    if end := paused_until((window,), window.scope, now):
        who = "No job" if window.scope == EVERY_SCOPE else "No job of this scope"
        yield f"It holds already: {who[0].lower()}{who[1:]} starts before {_stamp(end)}. Running jobs go on."


def _counted(rules: Sequence[Rule], now: datetime) -> str:
    """Say how many there are and hold, without their scopes."""
    windows = [_window(rule) for rule in rules]
    said = number_of(len(windows), "pause window", "pause windows")
    ends = [(one, end) for one in windows if (end := paused_until((one,), one.scope, now))]
    if not ends:
        return f"{said}, none holds now" if windows else "no pause window"
    every = [end for one, end in ends if one.scope == EVERY_SCOPE]
    whole = f"; every job is paused until {_stamp(max(every))}" if every else ""
    return f"{said}, {len(ends)} {'holds' if len(ends) == 1 else 'hold'} now{whole}"


def _hours(window: PauseWindow) -> str:
    zone = str(window.zone)
    if window.ends - window.begins == DAY and not window.begins:
        return f"the whole day ({zone})"
    overnight = " on the next day" if window.ends >= DAY else ""
    return f"{_clock(window.begins)} to {_clock(window.ends)}{overnight} ({zone})"


def _days(window: PauseWindow) -> str:
    days = "every day"
    if window.weekdays is not None:
        days = ", ".join(WEEKDAYS[day].capitalize() for day in sorted(window.weekdays))
    first = f", from {window.first_date}" if window.first_date else ""
    last = f", to {window.last_date}" if window.last_date else ""
    return f"{days}{first}{last}"


def _clock(since_midnight: timedelta) -> str:
    hours, minutes = divmod(since_midnight % DAY // timedelta(minutes=1), 60)
    return f"{hours:02}:{minutes:02}"


def _stamp(instant: datetime) -> str:
    return stamp(epoch_ms(instant))


def _window(rule: Rule) -> PauseWindow:
    if not isinstance(rule, PauseWindow):
        raise TypeError("these are the rules of pause windows")
    return rule


WINDOW_RULES = Rules(
    slug="window",
    noun="pause window",
    part="windows",
    followed=WINDOWS,
    empty={"windows": []},
    keys=pause_windows.KEYS,
    parse=pause_windows.parse,
    fields=FIELDS,
    example={"scope": "*", "from": "22:00", "to": "06:00"},
    headings=(_HOURS, _DAYS, _NOW),
    cells=_cells,
    notes=_notes,
    counted=_counted,
    counts_when=(
        "Running workers of this host follow the file within seconds. Jobs that run go on; jobs that sleep"
        " because of a window that goes wake at once."
    ),
)
