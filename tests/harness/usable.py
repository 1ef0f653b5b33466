"""What keeps people from using a page: with a keyboard, a telephone, a zoom, in the dark, without sight."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.harness import axe
from tests.harness.browser import Browser

TAB, SPACE, ENTER = "\ue004", " ", "\ue007"
_ESCAPE = "\ue00c"
TELEPHONE = 390
# Between a telephone and a desk a table may be wider than the place that it has.
_WINDOWS = (TELEPHONE, 800, 1024, 1280)
_SCRIPT = Path(__file__).with_suffix(".js").read_text()


def marks(page: Browser) -> set[str]:
    """Name the kinds of elements that it is made of: a page without new ones looks like another."""
    return set(_asked(page, "marks"))


def slips(page: Browser, names: Sequence[str]) -> Iterator[str]:
    """Name what is found in no time: complaints of the browser, titles, live parts, what is too wide.

    What is too wide is so as the page is, or would be with forty letters for each of `names`.
    """
    yield from page.problems()
    if len(page.texts("h1")) != 1:
        yield f"not one title but {page.texts('h1')}"
    yield from _asked(page, "live")
    # Where rows begin to be side by side a table has the least place for them.
    for width in sorted({*_WINDOWS, _asked(page, "sideBySide")}):
        page.looks(width=width)
        yield from (f"at {width} px {one}" for one in _too_wide(page, names))


def barriers(page: Browser, names: Sequence[str]) -> Iterator[str]:
    """Name what keeps people out: by axe in light and dark, at 200 %, and by a focus that is not seen."""
    page.looks(width=1280)
    yield from axe.findings(page)
    # What is pressed before decides whether a focus is shown that a script sets.
    page.press(_ESCAPE)
    yield from _asked(page, "unseen")
    page.looks(width=640, scale=2, dark=True)
    yield from (f"at 200 % {one}" for one in _too_wide(page, names))
    yield from (f"dark: {one}" for one in axe.findings(page, axe.COLOURS))


def tab_to(page: Browser, name: str) -> None:
    """Press Tab until this has the focus; AssertionError where that does not come, or once was not seen."""
    outside = 0
    for _ in range(100):
        page.press(TAB)
        focused = _asked(page, "focused")
        if focused is None:
            # From the last one to the first the way leads over the browser's own controls.
            outside += 1
            assert outside == 1, f"on the way to {name} the focus is lost"
            continue
        assert focused["seen"], f"on the way to {name} the focus is not seen on {focused['name']!r}"
        if focused["name"] == name:
            return
    raise AssertionError(f"Tab does not lead to {name} on {page.url}")


def _asked(page: Browser, question: str, about: object = None) -> Any:
    return page.run(f"{_SCRIPT}\nreturn {question}({json.dumps(about)});")


def _too_wide(page: Browser, names: Sequence[str]) -> list[str]:
    """Name what is wider than its place; a chart takes a moment to become as narrow."""
    deadline = time.monotonic() + 1
    while (found := _asked(page, "wide", names)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return list(found)
