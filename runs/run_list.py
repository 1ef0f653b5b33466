"""What the list of runs shows: the filter form, the lines, the ways to other pages. Values for a template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.contrib.admin.utils import quote
from django.urls import reverse

from runs import walk, wording
from runs.history import MAX_CHOICES, Page
from runs.list_address import NEWER_THAN, OLDER_THAN, Asked
from runs.models import Run
from runs.walk import NONE, Facet

#: Facets of few values are chosen from; of the others one may type a value that is not offered.
CHOSEN = (Facet.OUTCOME, Facet.REASON, Facet.KIND, Facet.HOST)
TYPED = (Facet.FLOW, Facet.MODEL)
#: Whose values are read from the table.
READ = (Facet.REASON, Facet.KIND, Facet.HOST, *TYPED)


@dataclass(frozen=True, slots=True)
class Choice:
    """One value that a facet offers."""

    value: str
    label: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class Select:
    """A facet as the filter form shows it; `given` is what was asked for."""

    name: str
    label: str
    choices: Sequence[Choice]
    given: str


@dataclass(frozen=True, slots=True)
class Listed:
    """A run as a line of the list."""

    run: Run
    url: str | None
    about: str
    outcome: str
    ended: str
    took: str
    turns: str
    tokens: str
    cost: str


def selects(facets: Sequence[Facet], asked: Asked, values: Mapping[Facet, Sequence[str]]) -> list[Select]:
    """Lay out the facets; a value that was asked for is offered, whether there is one or not."""
    return [_select(facet, asked.query.facets.get(facet, ""), values.get(facet, ())) for facet in facets]


def listed(run: Run) -> Listed:
    """Put a run into a line."""
    tokens = run.tokens if isinstance(run.tokens, dict) else {}
    return Listed(
        run=run,
        url=url_of(run.job_id),
        about=" · ".join(part for part in (run.target, run.flow, run.model) if part),
        outcome=wording.outcome_name(run.outcome),
        ended=wording.moment(run.ended_at),
        took=wording.span(run.started_at, run.ended_at),
        turns=wording.amount(run.turns),
        tokens=wording.amount(tokens.get("total")),
        cost=wording.dollars(tokens.get("cost")),
    )


def url_of(job_id: str) -> str | None:
    """Give the address of a run's page."""
    # A record without an id is kept, but has no page: its address would be the list's.
    return reverse("admin:runs_run_change", args=[quote(job_id)]) if job_id else None


def neighbours(asked: Asked, page: Page) -> dict[str, str | None]:
    """Make the addresses of the pages beside this one, with the same filters."""
    return {
        "older": asked.address(**{OLDER_THAN: page.older}) if page.older else None,
        "newer": asked.address(**{NEWER_THAN: page.newer}) if page.newer else None,
        "newest": asked.address(),
    }


def looked_to(page: Page) -> str:
    """Say that the search for the filter's runs ended early, and how to go on; blank when it did not."""
    if page.looked_to is None:
        return ""
    moment = wording.moment_of(page.looked_to.position)
    return (
        f"Values that seldom meet: {walk.FARTHEST:,} runs were looked at, to {moment} UTC. Go on with the"
        " link below, or bound the time."
    )


def _select(facet: Facet, given: str, values: Sequence[str]) -> Select:
    offered = [outcome.value for outcome in wording.OUTCOMES] if facet is Facet.OUTCOME else values
    labels = {value: wording.outcome_name(value) if facet is Facet.OUTCOME else value for value in offered}
    if facet is not Facet.OUTCOME:
        labels[NONE] = "none"
    if given:
        labels.setdefault(given, given)
    choices = [Choice(value, label, value == given) for value, label in labels.items()]
    label = facet.value.capitalize()
    if len(values) >= MAX_CHOICES:
        label += f" (first {MAX_CHOICES})"
    return Select(facet.value, label, choices, given)
