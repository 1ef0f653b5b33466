"""Reads what the overview shows, part by part: what cannot be seen costs its part and is said there."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from django.conf import settings

from dispatch.console import budget, fleet, schedules, triggers_file
from dispatch.console.adoption import is_fresh
from dispatch.console.budget import CapsInForce
from dispatch.console.fleet_facts import FleetFacts
from dispatch.console.fleet_findings import warnings
from dispatch.console.schedule_facts import Overview
from dispatch.console.schedule_runs import last_runs
from dispatch.console.schedule_settling import settling
from dispatch.console.triggers_file import TriggersFile
from dispatch.doctor.bounded import within
from dispatch.pages import followed, overview_history
from dispatch.pages.banner import switch_state
from dispatch.pages.doctor_rounds import ROUNDS
from dispatch.pages.overview_budget import Bar, bars, scope_notes, unlimited
from dispatch.pages.overview_cards import Card, fleet_cards
from dispatch.pages.overview_findings import Concerns, Missed, concerns, missed
from dispatch.pages.overview_history import History
from dispatch.pages.sight import Sight, Unseen
from dispatch.pages.switch_state import SwitchState
from dispatch.pages.veil import veiled
from hosts.rows import Unreachable
from pidispatch_site.errors import PidispatchError

# A network file system may give no answer.
_FILES_SECONDS = 0.4


@dataclass(frozen=True, slots=True)
class Now:
    """What changes by the second. `notices` say what is missing."""

    switch: SwitchState
    cards: list[Card]
    bars: list[Bar]
    unlimited: str
    scopes: list[str]
    notices: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Care:
    """What somebody should look after; `missed` is None where `missed_unseen` says why."""

    concerns: Concerns
    missed: Missed | None
    missed_unseen: str


def read_now(seen: Sight) -> Now:
    """Read switch, counts and budget."""
    facts = seen.read(fleet.read)
    caps, why = _caps()
    spent = seen.read(lambda client: budget.read(client, caps)) if caps else None
    notices = [f"The budget is not shown: {why}"] if why else []
    if seen.fault:
        notices = [f"{_veiled(seen.fault)} What stands there is not shown."]
    shown = bars(spent) if isinstance(spent, budget.Budget) else []
    return Now(
        switch=switch_state(facts),
        cards=fleet_cards(facts) if isinstance(facts, FleetFacts) else [],
        bars=[one for one in shown if one.is_limited],
        unlimited=unlimited(shown) if shown else "",
        scopes=scope_notes(spent) if isinstance(spent, budget.Budget) else [],
        notices=notices,
    )


def read_history(seen: Sight) -> History:
    """Read what came of the runs of late; of `seen` it asks nothing."""
    return overview_history.read(datetime.now(UTC))


def read_care(seen: Sight) -> Care:
    """Read the warnings of the fleet and the schedules; take what the doctor found last."""
    facts = seen.read(fleet.read)
    now = warnings(facts) if isinstance(facts, FleetFacts) else None
    overview = _schedules(seen, facts)
    return Care(
        concerns=concerns(
            now,
            ROUNDS.look(settings.PIDISPATCH_ENVIRONMENT),
            _veiled,
            with_schedules=isinstance(overview, Unseen),
            sees_hosts=isinstance(facts, FleetFacts) and not isinstance(facts.roster, Unreachable),
        ),
        missed=missed(overview, _veiled) if isinstance(overview, Overview) else None,
        missed_unseen=_veiled(overview.why) if isinstance(overview, Unseen) else "",
    )


def _schedules(seen: Sight, facts: FleetFacts | Unseen) -> Overview | Unseen:
    if isinstance(facts, Unseen):
        return facts
    try:
        file = within(_FILES_SECONDS, lambda: triggers_file.read(settings.PIDISPATCH_ENVIRONMENT))
    except TimeoutError:
        return Unseen("The triggers file gives no answer.")
    except PidispatchError as error:
        return Unseen(str(error))
    # The runs are asked for in between: what goes on beyond a page's time must not hold the database.
    begun = seen.read(lambda client: schedules.begin(client, facts, file))
    if isinstance(begun, Unseen):
        return begun
    last = begun.last(last_runs)
    overview = seen.read(lambda client: schedules.finish(client, begun, last))
    return settling(overview) if isinstance(overview, Overview) and _is_new(file) else overview


def _is_new(file: TriggersFile) -> bool:
    path = file.path
    try:
        return path is not None and is_fresh(within(_FILES_SECONDS, lambda: followed.standing(path).age_ms))
    except TimeoutError:
        return False


def _caps() -> tuple[CapsInForce | None, str]:
    """Give the caps in force on this host, or why there are none."""
    try:
        return within(_FILES_SECONDS, lambda: budget.caps_in_force(settings.PIDISPATCH)), ""
    except TimeoutError:
        return None, "the settings file gives no answer."
    except PidispatchError:
        # It quotes what stands in variables and files.
        return None, "the settings of this host do not load; `manage.py doctor` on this machine says why."


def _veiled(text: str) -> str:
    return veiled(text, settings.PIDISPATCH_ENVIRONMENT)
