"""What keeps people from using the page that a browser shows: with a keyboard, a telephone, a zoom, in the dark."""

from __future__ import annotations

import time
from collections.abc import Iterator

from tests.harness import axe
from tests.harness.browser import Browser

TAB = "\ue004"
TELEPHONE = 390
_FITS = "return document.documentElement.scrollWidth <= innerWidth"
#: An element that is fetched again, and what is told or lost then.
_LIVE = """
const parts = [...document.querySelectorAll('[hx-get]')].flatMap(part => {
  const chosen = part.getAttribute('hx-select-oob');
  return chosen ? [...document.querySelectorAll(chosen)] : [part];
});
const focusable = 'a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex="0"]';
return parts.flatMap(part => [
  ...[...part.querySelectorAll('[role=alert]')].map(one => ['an alert each time', one]),
  ...[...part.querySelectorAll(focusable)].filter(one => !one.id).map(one => ['loses the focus', one]),
]).map(([what, one]) => `${what}: ${one.outerHTML.slice(0, 120)}`);
"""
_FOCUS = """
const focusable = 'a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex="0"]';
const faults = [];
for (const one of document.querySelectorAll(focusable)) {
  if (!one.checkVisibility() || one.disabled) continue;
  one.focus({preventScroll: true});
  const {outlineStyle, outlineWidth} = getComputedStyle(one);
  const seen = document.activeElement === one && outlineStyle !== 'none' && parseFloat(outlineWidth) > 0;
  if (!seen) faults.push(`the focus is not seen: ${one.outerHTML.slice(0, 120)}`);
}
document.activeElement.blur();
return faults;
"""
_MARKS = """
const name = one => `${one.localName}.${[...one.classList].sort().join('.')}[${one.getAttribute('role') ?? ''}]`;
const mark = one => one.parentElement ? `${name(one.parentElement)}>${name(one)}` : name(one);
return [...new Set([...document.querySelectorAll('body *')].map(mark))];
"""


def marks(page: Browser) -> set[str]:
    """Name the kinds of elements that it is made of: a page without new ones looks like another."""
    return set(page.run(_MARKS))


def slips(page: Browser) -> Iterator[str]:
    """Name what is found in no time: complaints of the browser, titles, live parts, the width of a telephone."""
    yield from page.problems()
    if len(page.texts("h1")) != 1:
        yield f"not one title but {page.texts('h1')}"
    yield from page.run(_LIVE)
    page.looks(width=TELEPHONE)
    if not _fits(page):
        yield "wider than a telephone"


def barriers(page: Browser) -> Iterator[str]:
    """Name what keeps people out: by axe in light and dark, zoomed to 200 %, and by a focus that is not seen."""
    page.looks(width=1280)
    yield from axe.findings(page)
    # What is pressed before decides whether a focus is shown that a script sets.
    page.press(TAB)
    yield from page.run(_FOCUS)
    page.looks(width=640, scale=2, dark=True)
    if not _fits(page):
        yield "wider than the window at 200 %"
    yield from (f"dark: {one}" for one in axe.findings(page, axe.COLOURS))


def _fits(page: Browser) -> bool:
    """Whether it is no wider than its window; a chart takes a moment to become as narrow."""
    deadline = time.monotonic() + 1
    while not (fits := page.run(_FITS)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return bool(fits)
