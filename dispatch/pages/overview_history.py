"""What came of the runs of late, out of the rollups of the run table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from dispatch.pages.charts import Chart, Kind, Series, Tone
from dispatch.pages.overview_cards import Card, day_cards
from runs import fleet_notice, rollups
from runs.rollups import Hour

CHART_HOURS = 48
_DAY_HOURS = 24


@dataclass(frozen=True, slots=True)
class History:
    """The figures of the last 24 hours, the one that goes on included, and a chart of the last 48.

    `notice` says what they lack of the fleet's runs; blank: nothing.
    """

    cards: list[Card]
    chart: Chart
    notice: str


def read(now: datetime) -> History:
    """Read the rollups up to `now` (UTC, aware)."""
    since = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=_DAY_HOURS - 1)
    day = rollups.totals(since, now)
    hours = rollups.hours(now - timedelta(hours=CHART_HOURS - 1), now)
    return History(cards=day_cards(day, since), chart=chart(hours), notice=fleet_notice.viewed())


def chart(hours: Sequence[Hour]) -> Chart:
    """Lay out how many runs ended in each hour, by outcome."""
    return Chart(
        id="runs-per-hour",
        kind=Kind.COLUMNS,
        title=f"Runs per hour by outcome, last {CHART_HOURS} h",
        labels=[f"{hour.start:%m-%d %H:%M}" for hour in hours],
        series=[
            Series("Completed", [hour.completed for hour in hours], Tone.GOOD),
            Series("Policy", [hour.policy for hour in hours], Tone.WARN),
            Series("Failed", [hour.failed for hour in hours], Tone.BAD),
        ],
        axis="Hour from (UTC)",
    )
