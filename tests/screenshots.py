"""`python -m tests.screenshots FOLDER`: the README's pictures of the console, over the demo's data."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.harness.browser import Browser, browser, missing

ROOT = Path(__file__).resolve().parents[1]
MANAGE = (sys.executable, str(ROOT / "manage.py"))
# A completed run of the past, which started follow-up jobs.
_RUNS = "/admin/runs/run/?flow=audit&outcome=completed"
_FIRST_RUN = "return document.querySelector('#content tbody a[href*=\"/runs/run/\"]').href"
_HEIGHT = "return Math.ceil(document.querySelector('#content').getBoundingClientRect().bottom) + 20"
# Nobody scrolls a picture.
_NO_BAR = "document.documentElement.style.overflow = 'hidden'"
_DOCTOR_WAS_THERE = "document.body.innerText.includes('The doctor looked')"
_ROWS = "document.querySelector('#content tbody tr') !== null"
_CHARTS = "document.querySelector('canvas') !== null"
_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Picture:
    """A page at an address; `when` is JavaScript that holds once it is whole, `most` its height."""

    name: str
    path: str
    most: int
    when: str
    dark: bool = False


PICTURES = (
    Picture("overview", "/admin/", 1200, _DOCTOR_WAS_THERE),
    Picture("overview-dark", "/admin/", 1200, _DOCTOR_WAS_THERE, dark=True),
    Picture("fleet", "/admin/fleet/", 1200, _ROWS),
    Picture("kill-switch", "/admin/switch/", 1200, _ROWS),
    Picture("run", _RUNS, 1150, _ROWS),
    Picture("insights", "/admin/insights/", 1150, _CHARTS),
)


def main(folder: Path) -> None:
    """Take them all."""
    if program := missing():
        sys.exit(f"{program} is not installed")
    with tempfile.TemporaryDirectory() as profile, demo() as link, browser(Path(profile)) as page:
        page.open(link)
        page.follow("form [type=submit]")
        origin = link.partition("/login/")[0]
        for picture in PICTURES:
            take(page, origin, picture, folder / f"{picture.name}.png")


@contextmanager
def demo() -> Iterator[str]:
    """Have the demo's data for as long as the block lasts; give the link that logs in."""
    played = subprocess.run([*MANAGE, "demo", "--data"], cwd=ROOT, capture_output=True, text=True)
    end = re.search(r"demo --end (\S+)", played.stdout)
    if end is None:
        sys.exit(played.stdout + played.stderr)
    try:
        yield re.findall(r"^ +(https?://\S+/login/\S+)$", played.stdout, re.MULTILINE)[0]
    finally:
        subprocess.run([*MANAGE, "demo", "--end", end[1]], cwd=ROOT, check=True)


def take(page: Browser, origin: str, picture: Picture, path: Path) -> None:
    """Open a page, wait until all of it is drawn, and write its picture."""
    page.looks(width=1280, height=picture.most, dark=picture.dark)
    page.open(origin + picture.path)
    if picture.path == _RUNS:
        page.open(page.run(_FIRST_RUN))
    deadline = time.monotonic() + _SECONDS
    while not page.run(f"return {picture.when}"):
        assert time.monotonic() < deadline, f"{picture.name}: never {picture.when}"
        time.sleep(0.2)
    page.run(_NO_BAR)
    page.looks(width=1280, height=min(page.run(_HEIGHT), picture.most), dark=picture.dark)
    # The charts are drawn anew for another width.
    time.sleep(1)
    page.screenshot(path)
    if shrink := shutil.which("pngquant"):
        subprocess.run([shrink, "--force", "--ext", ".png", "--speed", "1", str(path)], check=True)
    print(path, path.stat().st_size // 1024, "kB")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
