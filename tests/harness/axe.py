"""axe-core in a page of the browser: what keeps people with disabilities from using it."""

from __future__ import annotations

from pathlib import Path

from tests.harness.browser import Browser

_AXE = Path(__file__).parent / "vendor" / "axe-4.14.1.min.js"
_SERIOUS = ("serious", "critical")
_RUN = """
const done = arguments[arguments.length - 1];
axe.run(document, {resultTypes: ['violations']}).then(
  found => done(found.violations.map(
    one => [one.impact, one.id, one.help, one.nodes.map(node => node.html)])),
  error => done([['critical', 'axe', String(error), []]]));
"""


def findings(page: Browser) -> list[str]:
    """Name what is serious, each with the beginning of the elements that it is about."""
    page.run(_AXE.read_text() + "; return true")
    found = page.run_async(_RUN)
    return [
        f"{name}: {help_} {[element[:160] for element in elements[:3]]}"
        for impact, name, help_, elements in found
        if impact in _SERIOUS
    ]
