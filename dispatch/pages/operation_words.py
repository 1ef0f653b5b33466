"""What a page says of a background action, in words and with the tone of its colour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dispatch.console.instants import span, stamp
from dispatch.pages.operation_state import Progress, State

_TITLES: Mapping[str, str] = {
    "stop": "Stop running jobs",
    "stop-host": "Stop the jobs of a host",
    "cancel": "Cancel jobs",
    "reroute": "Reroute jobs",
}
_GOOD, _WARN, _BAD = "good", "warn", "bad"


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """An action as its page and the list of actions lay it out. `tone` is good, warn, bad or blank."""

    progress: Progress
    title: str
    tone: str
    headline: str
    began: str
    counted: str

    @property
    def is_polled(self) -> bool:
        """Whether the page should look again: it may go on, or be found to go on after all."""
        return self.progress.state in {State.RUNNING, State.INTERRUPTED}


def told(progress: Progress) -> Told:
    """Put an action into words."""
    tone, headline = _headline(progress)
    began = "" if progress.started_ms is None else stamp(progress.started_ms)
    of = "" if progress.total is None else f" of {progress.total}"
    counted = f"{progress.done}{of} done" if progress.done or progress.total else ""
    title = _TITLES.get(progress.kind, progress.kind)
    return Told(progress=progress, title=title, tone=tone, headline=headline, began=began, counted=counted)


def _headline(progress: Progress) -> tuple[str, str]:
    result = progress.result
    match progress.state:
        case State.RUNNING:
            return "", "Under way."
        case State.INTERRUPTED:
            return _WARN, (
                f"Interrupted: the web process that does this has been silent{_silence(progress)}."
                " What it had asked for by then stands. Repeating the action is safe."
            )
        case State.DONE if result is not None:
            return (_GOOD if result.is_good else _WARN), result.summary
        case State.FAILED if result is not None:
            return _BAD, result.summary
    return _WARN, f"It is {progress.state.value}; what came of it cannot be read."


def _silence(progress: Progress) -> str:
    if progress.beat_ms is None or progress.now_ms is None:
        return ""
    return f" for {span(progress.now_ms - progress.beat_ms)}"
