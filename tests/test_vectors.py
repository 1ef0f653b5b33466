"""The test vectors are data from elsewhere, used unchanged: a case that fails is never mended in its file."""

from __future__ import annotations

import hashlib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VECTORS = ROOT / "tests" / "vectors"
#: Where they were copied from, on a machine that has it; as `sha256sum` writes them they are known anywhere.
ORIGIN = ROOT.parent / "shared" / "vectors"
KNOWN = ROOT / "tests" / "vectors.sha256"


def _sums(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _known() -> dict[str, str]:
    lines = (line.split("  ", 1) for line in KNOWN.read_text().splitlines())
    return {name: digest for digest, name in lines}


def test_the_vectors_are_those_that_were_copied():
    assert _sums(VECTORS) == _known()


def test_the_vectors_are_those_of_their_origin_where_it_is_at_hand():
    assert not ORIGIN.exists() or _sums(ORIGIN) == _sums(VECTORS)
