"""Somebody before the console: goes by the words on a page, and notes what keeps people from using it."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as of_dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tests.harness import usable
from tests.harness.browser import Browser
from tests.harness.by_words import control, field
from tests.harness.web_process import WebProcess
from tests.harness.worker_process import until

_LINKS = """
return [...document.querySelectorAll('a[href]')].filter(one => one.origin === location.origin)
  .map(one => one.pathname + one.search)
"""


_TITLE = "return document.querySelector('h1')?.textContent.trim() ?? '?'"
_NEWEST = """
const [first] = document.querySelectorAll('.log-actions tbody tr');
return [...first.children].slice(1).map(one => one.textContent.replace(/\\s+/g, ' ').trim());
"""
_FORGE = """
const done = arguments[arguments.length - 1];
const csrf = document.querySelector('input[name=csrfmiddlewaretoken]').value;
const body = () => new URLSearchParams({csrfmiddlewaretoken: csrf, ...FIELDS});
const post = async ([name, address]) => {
  const answer = await fetch(`/admin/${address}`, {method: 'POST', body: body(), redirect: 'manual'});
  return [name, answer.status, await answer.text()];
};
Promise.all(Object.entries(ADDRESSES).map(post)).then(done, error => done([[String(error), 0, '']]));
"""


@dataclass(slots=True, kw_only=True)
class Person:
    """Sits before a browser; `pictures` is where screenshots go, `faults` what was noted."""

    web: WebProcess
    page: Browser
    pictures: Path
    role: str = ""
    faults: list[str] = of_dataclass(default_factory=list)
    _marks: set[str] = of_dataclass(default_factory=set)
    _shot: set[tuple[str, str]] = of_dataclass(default_factory=set)

    def enter(self, role: str) -> None:
        """Be a person of this group."""
        self.role = role
        self.web.enter(self.page, role)
        self._sits_down()

    def goes(self, path: str) -> None:
        """Open a page below the console's address."""
        self.page.open(f"{self.web.url}/admin/{path}")

    def follows(self, name: str) -> None:
        """Press the button or the link of this name, and look at the page that comes."""
        self.page.follow(control(name))
        self.looks()

    def fills(self, **texts: str) -> None:
        """Type into the fields of these labels; an underscore stands for a space."""
        for label, text in texts.items():
            self.page.type(field(label.replace("_", " ")), text)

    def ticks(self, *labels: str) -> None:
        """Tick the boxes of these labels."""
        for label in labels:
            self.page.click(field(label))

    def says(self, *words: str) -> str:
        """All that is to be read; AssertionError where one of these is not."""
        (text,) = self.page.texts("main")
        missing = [one for one in words if one not in text]
        assert not missing, (missing, text)
        return text

    def until_says(self, words: str, *, again: bool = False) -> None:
        """Wait until the page says so by itself, or opened `again` and again; and look at it."""

        def said() -> bool:
            if again:
                self.page.open(self.page.url)
            return words in self.page.texts("main")[0]

        until(said, seconds=20, what=f"{self.page.url} says {words}")
        self.looks(anew=True)

    def newest(self) -> list[str]:
        """Read the log's newest line: who, action, target, reason, before, after."""
        self.page.open(f"{self.web.url}/admin/log/")
        return list(self.page.run(_NEWEST))

    def logs(self, *line: str) -> list[str]:
        """Wait until the log's newest line is so (who, action, target, reason); its before and after."""
        newest: list[str] = []

        def is_there() -> bool:
            newest[:] = self.newest()
            return newest[: len(line)] == list(line)

        with contextlib.suppress(AssertionError):
            until(is_there, seconds=5, what="the line")
        assert newest[: len(line)] == list(line), newest
        return newest[4:]

    def forges(self, addresses: Mapping[str, str], fields: Mapping[str, str]) -> list[tuple[str, int, str]]:
        """Post this to each address, with a token that is in order; the answers' status and text by name."""
        script = _FORGE.replace("ADDRESSES", json.dumps(addresses)).replace("FIELDS", json.dumps(fields))
        answers = [tuple(one) for one in self.page.run_async(script)]
        # The browser complains of each refusal.
        self.page.problems()
        return answers

    def looks(self, *, anew: bool = False) -> None:
        """Take pictures of the page, and note what keeps people from using it.

        Each kind of page once, and again where something is on it that was on none before. With `anew` its
        picture takes the place of the one that was taken.
        """
        title = self.page.run(_TITLE)
        kind = f"{kind_of(self.page.url)} {_general(title)}"
        is_first = kind not in {known for _, known in self._shot}
        if anew or (self.role, kind) not in self._shot:
            self._shoots(kind)
        new = usable.marks(self.page) - self._marks
        if new or is_first:
            self._marks |= new
            # Barriers first: a window as it is costs nothing, another one has the page laid out anew.
            found = [*usable.barriers(self.page), *usable.slips(self.page)]
            if is_first:
                self._shoots(f"{kind} telephone")
            self.faults += [f"{self.role} at {self.page.url} ({title}): {one}" for one in found]
            self._sits_down()

    def links(self) -> list[str]:
        """Where the page leads to within the site."""
        return list(self.page.run(_LINKS))

    def end(self) -> None:
        """AssertionError with what was noted since the last time."""
        faults, self.faults = self.faults, []
        assert not faults, "\n".join(faults)

    def _sits_down(self) -> None:
        """Look through a window of a desk; operators like it dark."""
        self.page.looks(width=1280, dark=self.role == "operator")

    def _shoots(self, kind: str) -> None:
        self._shot.add((self.role, kind))
        name = re.sub("[^a-z0-9]+", "-", kind.lower()).strip("-")
        self.page.screenshot(self.pictures / self.role / f"{name}.png")


def kind_of(address: str) -> str:
    """Name the page by its address; of each kind one is enough, whatever it is about."""
    there = urlsplit(address)
    kind = "/".join(_general(part) for part in there.path.split("/") if part)
    # Lists that refresh themselves are other lists.
    return f"{kind}/live" if "live=1" in there.query else kind


def _general(text: str) -> str:
    return re.sub(r"\S*\d\S*|\S*:\S+|\b(alpha|beta|nightly|tidy|weekly)\b", "*", text)
