"""The real job image, built once a machine by the product's own build script."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

IMAGE = Path(__file__).resolve().parents[2] / "image"

#: A name of its own: a test does not replace the image that somebody works with.
TAG = "pi-job:test"


class ImageUnavailableError(Exception):
    """The image cannot be made here; the text says what is missing."""


def build_job_image() -> str:
    """Build the image unless it is up to date (some 100 s the first time, 0.2 s then) and return its tag."""
    script = ["bash", str(IMAGE / "build.sh")]
    done = subprocess.run(
        script, env={**os.environ, "TAG": TAG}, capture_output=True, text=True, timeout=900, check=False
    )
    if done.returncode != 0:
        raise ImageUnavailableError(done.stderr.strip() or done.stdout.strip())
    return TAG
