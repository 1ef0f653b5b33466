"""axe-core in a page of the browser: what keeps people with disabilities from using it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tests.harness.browser import Browser

_AXE = Path(__file__).parent / "vendor" / "axe-4.14.1.min.js"
_SERIOUS = ("serious", "critical")
#: What depends on colours alone.
COLOURS = ("color-contrast", "link-in-text-block")
# Not style sheets: they would be copied into the page, which forbids it, and no rule asked for needs them.
_RUN = """
const done = arguments[arguments.length - 1];
axe.run(document, {resultTypes: ['violations'], preload: {assets: ['media']}, ...OPTIONS}).then(
  found => done(found.violations.map(
    one => [one.impact, one.id, one.help, one.nodes.map(node => node.html)])),
  error => done([['critical', 'axe', String(error), []]]));
"""


def findings(page: Browser, rules: Sequence[str] = ()) -> list[str]:
    """Name what is serious by these rules or all, with the beginning of the elements that it is about."""
    if not page.run("return 'axe' in window"):
        page.run(_AXE.read_text() + "; return true")
    options = {"runOnly": {"type": "rule", "values": rules}} if rules else {}
    found = page.run_async(_RUN.replace("OPTIONS", json.dumps(options)))
    return [
        f"{name}: {help_} {[element[:160] for element in elements[:3]]}"
        for impact, name, help_, elements in found
        if impact in _SERIOUS
    ]
