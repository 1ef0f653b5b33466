from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.printed import harmless


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"plain\ttext\n", "plain\ttext\n"),
        (b"\x1b[1;32mgreen\x1b[0m", "green"),
        (b"\x1b]0;a title\x07shown \x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "shown link"),
        (b"\x1bP+q\x1b\\\x1b(B\x1b7x", "x"),
        (b"10%\r50%\r100%\r\nend\r", "10%\n50%\n100%\nend\n"),
        (b"a\x00b\x08c\x7f\xc2\x9d", "a\ufffdb\ufffdc\ufffd\ufffd"),
        ("a\u202eb\u2066c\u200bd\ufeff".encode(), "a\ufffdb\ufffdc\ufffdd\ufffd"),
        (b"\xff\xfe\xc3", "\ufffd\ufffd\ufffd"),
        ("ünïcode 漢字 🙂".encode(), "ünïcode 漢字 🙂"),
        (b"\x1b", ""),
        (b"<script>", "<script>"),
    ],
)
def test_what_steers_a_terminal_is_gone_and_the_rest_stays(data, text):
    assert harmless(data) == text


@given(st.binary(max_size=200) | st.text("\x1b[]()0;m\x07\x9b\\a\r\n\u202e", max_size=60).map(str.encode))
def test_nothing_but_lines_of_visible_text_is_left(data):
    text = harmless(data)

    assert not [c for c in text if c not in "\n\t" and unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"}]
    assert not set(text) & set("\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
