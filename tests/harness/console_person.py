"""Somebody before the console: goes by the words on a page, and notes what keeps people from using it."""

from __future__ import annotations

import contextlib
import json
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as of_dataclass
from pathlib import Path
from urllib.parse import urlsplit

from django.urls import resolve

from tests.harness import usable
from tests.harness.browser import Browser
from tests.harness.by_words import control, field, option
from tests.harness.web_process import WebProcess
from tests.harness.worker_process import until

_LINKS = """
return [...document.querySelectorAll('a[href]')].filter(one => one.origin === location.origin)
  .map(one => one.pathname + one.search)
"""


# The page's title, and whether it answers a form that was sent since the last time.
_TITLE = """
const posted = sessionStorage.posted ?? '';
const isAnswer = posted !== (sessionStorage.looked ?? '');
sessionStorage.looked = posted;
return [document.querySelector('h1')?.textContent.trim() ?? '?', isAnswer];
"""
_NEWEST = """
const [first] = document.querySelectorAll('.log-actions tbody tr');
return [...first.children].slice(1).map(one => one.textContent.replace(/\\s+/g, ' ').trim());
"""
# Asks again where the browser itself broke off, as Chromium does when a network of containers comes or goes.
_ASKS = """
const asks = async (address, given, times = 5) => {
  try { return await fetch(address, given); }
  catch (fault) { if (times > 1) return asks(address, given, times - 1); throw fault; }
};
"""
_FORGE = (
    _ASKS
    + """
const done = arguments[arguments.length - 1];
const csrf = document.querySelector('input[name=csrfmiddlewaretoken]').value;
const body = () => new URLSearchParams({csrfmiddlewaretoken: csrf, ...FIELDS});
const post = async ([name, address]) => {
  const answer = await asks(address, {method: 'POST', body: body(), redirect: 'manual'});
  return [name, answer.status, await answer.text()];
};
Promise.all(Object.entries(ADDRESSES).map(post)).then(done, error => done([[String(error), 0, '']]));
"""
)


#: What hosts, schedules and users are called on the stage.
NAMES = ("alpha", "beta", "nightly", "tidy", "weekly", "ann")
#: What a page offers to write; meanwhile the browser calls it otherwise.
_FILES = (".csv", ".json")
# Keeps where forms were sent to, over the pages that come.
_NOTES_POSTS = """
addEventListener('submit', ({target: form, submitter, defaultPrevented}) => {
  if (form.getAttribute('method') !== 'post' || defaultPrevented) return;
  const address = submitter?.getAttribute('formaction') || form.getAttribute('action') || location.href;
  const posted = JSON.parse(sessionStorage.posted ?? '[]');
  sessionStorage.posted = JSON.stringify([...posted, new URL(address, location.href).pathname]);
});
"""
_POSTED = """
const posted = JSON.parse(sessionStorage.posted ?? '[]');
delete sessionStorage.posted;
return posted;
"""
_METHODS = (
    _ASKS
    + """
const done = arguments[arguments.length - 1];
const ask = async () => {
  const answers = [];
  for (const [name, address] of Object.entries(ADDRESSES)) {
    const answer = await asks(address, {method: 'OPTIONS'});
    answers.push([name, answer.status, answer.headers.get('Allow') ?? '']);
  }
  return answers;
};
ask().then(done, error => done([[String(error), 0, '']]));
"""
)


@dataclass(slots=True, kw_only=True)
class Person:
    """Sits before a browser; `pictures` is where screenshots go, `faults` what was noted.

    Of the kinds of pages that are `judged_elsewhere` only what answers a form is judged. `posted` are the
    names of the addresses that forms were sent to, each with the role of who sent it.
    """

    web: WebProcess
    page: Browser
    pictures: Path
    judged_elsewhere: frozenset[str] = frozenset()
    role: str = ""
    faults: list[str] = of_dataclass(default_factory=list)
    posted: set[tuple[str, str]] = of_dataclass(default_factory=set)
    _marks: set[str] = of_dataclass(default_factory=set)
    _shot: set[tuple[str, str]] = of_dataclass(default_factory=set)

    def __post_init__(self) -> None:
        """Note what is sent from now on."""
        self.page.runs_on_every_page(_NOTES_POSTS)

    def enter(self, role: str) -> None:
        """Be a person of this group."""
        self._notes()
        self.role = role
        self.web.enter(self.page, role)
        self._sits_down()

    def logs_in(self, name: str, password: str) -> None:
        """Come as somebody else, by name and password."""
        self._notes()
        self.role = name
        self.page.forget()
        self.goes("")
        self.fills(**{"Username:": name, "Password:": password})
        self.follows("Log in")

    def goes(self, path: str) -> None:
        """Open a page below the console's address."""
        self.page.open(f"{self.web.url}/admin/{path}")

    def follows(self, name: str, *, within: str = "") -> None:
        """Press the button or the link of this name in the part of that name, and look at what comes."""
        self.page.follow(control(name, within=within))
        self.looks()

    def fills(self, **texts: str) -> None:
        """Type into the fields of these labels; an underscore stands for a space."""
        for label, text in texts.items():
            self.page.type(field(label.replace("_", " ")), text)

    def downloads(self, name: str) -> str:
        """Press the link of this name, which leads to a file; what came."""
        with tempfile.TemporaryDirectory() as folder:
            self.page.keeps_downloads(Path(folder))
            self.page.click(control(name))

            def files() -> list[Path]:
                return [one for one in Path(folder).iterdir() if one.suffix in _FILES]

            until(files, seconds=20, what=f"{name} is here")
            (file,) = files()
            return file.read_text()

    def chooses(self, **choices: str) -> None:
        """Choose this in the lists of these labels; an underscore stands for a space."""
        for label, choice in choices.items():
            self.page.click(option(label.replace("_", " "), choice))

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

        with contextlib.suppress(AssertionError):
            until(said, seconds=20, what=f"{self.page.url} says {words}")
        self.says(words)
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

    def may_post_to(self, addresses: Mapping[str, str]) -> set[str]:
        """Ask each address what it takes; the names of those that take a POST of this person."""
        script = _METHODS.replace("ADDRESSES", json.dumps(addresses))
        answers = {name: (status, allowed) for name, status, allowed in self.page.run_async(script)}
        # The browser complains of each refusal.
        self.page.problems()
        assert {status for status, _ in answers.values()} <= {403, 405}, (answers, self.web.said()[-2000:])
        return {name for name, (_, allowed) in answers.items() if "POST" in allowed}

    def looks(self, *, anew: bool = False) -> None:
        """Take pictures of the page, and note what keeps people from using it.

        Each kind of page once, and again where something is on it that was on none before. With `anew` its
        picture takes the place of the one that was taken.
        """
        title, is_answer = self.page.run(_TITLE)
        kind = f"{kind_of(self.page.url)} {_general(title)}"
        is_first = kind not in self.kinds()
        if anew or (self.role, kind) not in self._shot:
            self._shoots(kind)
        if kind in self.judged_elsewhere and not (is_answer or anew):
            return
        new = usable.marks(self.page) - self._marks
        if new or is_first:
            self._marks |= new
            # Barriers first: a window as it is costs nothing, another one has the page laid out anew.
            found = [*usable.barriers(self.page, NAMES), *usable.slips(self.page, NAMES)]
            if is_first:
                self._shoots(f"{kind} telephone")
            self.faults += [f"{self.role} at {self.page.url} ({title}): {one}" for one in found]
            self._sits_down()

    def kinds(self) -> set[str]:
        """Name the kinds of pages that were looked at: of an address, with a title."""
        return {kind for _, kind in self._shot}

    def links(self) -> list[str]:
        """Where the page leads to within the site."""
        return list(self.page.run(_LINKS))

    def end(self) -> None:
        """AssertionError with what was noted since the last time."""
        self._notes()
        faults, self.faults = self.faults, []
        assert not faults, "\n".join(faults)

    def _notes(self) -> None:
        """Note what was sent, before somebody else sits there."""
        if self.role:
            self.posted |= {(self.role, resolve(path).url_name or path) for path in self.page.run(_POSTED)}

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
    return re.sub(rf"\S*\d\S*|\S*:\S+|\b({'|'.join(NAMES)})\b", "*", text)
