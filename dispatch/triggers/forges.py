"""The words of each forge in the triggers file: what can befall a pull request and an issue there (Q 5.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dispatch.ids import SPELLINGS, Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The actions of `pull_request` and of `issue`.

    `labelled` is the one that is about labels, None where another action tells of them. `has_selectors`:
    rules about pull requests can choose by label.
    """

    pull_request: tuple[str, ...]
    issue: tuple[str, ...]
    close: str | None
    labelled: str | None
    has_selectors: bool


def _words(kind: Kind, pull_request: str, *, labelled: str | None) -> Words:
    close = SPELLINGS[kind].close_word
    closing = (close,) if close else ()
    return Words(
        pull_request=(*pull_request.split(), *closing),
        issue=closing,
        close=close,
        labelled=labelled,
        has_selectors=kind is not Kind.AZURE,
    )


WORDS: Mapping[Kind, Words] = {
    Kind.GITHUB: _words(
        Kind.GITHUB, "labeled opened synchronize reopened review_submitted", labelled="labeled"
    ),
    Kind.GITLAB: _words(Kind.GITLAB, "open update reopen approved", labelled=None),
    Kind.FORGEJO: _words(
        Kind.FORGEJO, "label_updated opened synchronized reopened", labelled="label_updated"
    ),
    Kind.AZURE: _words(Kind.AZURE, "created updated", labelled=None),
}

FORGES = tuple(WORDS)
# Those that tell of the closing of an issue.
WITH_ISSUES = tuple(kind for kind, words in WORDS.items() if words.issue)
# GitHub alone has reviews with a state.
REVIEWED = "review_submitted"
REVIEW_STATES = ("approved", "changes_requested", "commented")
