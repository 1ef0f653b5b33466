"""What a host says of itself, as texts for the registry: asked anew each time, under the content rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hosts import content
from pidispatch_site import log

Fact = object | Callable[[], object]


class Facts:
    """Values, and callables that are asked each time; not safe for several threads at once."""

    def __init__(self, facts: Mapping[str, Fact]) -> None:
        self._facts = dict(facts)
        self._refused: set[str] = set()

    def texts(self) -> dict[str, str]:
        """Ask for all of them; what cannot be told, or must not be, is blank and logged once per field."""
        return {field: self._text(field, fact) for field, fact in self._facts.items()}

    def _text(self, field: str, fact: Fact) -> str:
        try:
            text = content.text_of(fact() if callable(fact) else fact)
        except Exception:  # noqa: BLE001 - whatever a part cannot tell now must not cost the beat
            return self._refuse(field, "unreadable")
        reason = content.refusal(text)
        return text if reason is None else self._refuse(field, reason)

    def _refuse(self, field: str, reason: str) -> str:
        if field not in self._refused:
            self._refused.add(field)
            log.event("host_registry_field_refused", field=field, reason=reason)
        return ""
