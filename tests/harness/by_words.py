"""Where on a page something is, by the words that a person reads there or is read out: XPaths."""

from __future__ import annotations

_CONTROLS = "self::a or self::button or self::summary or self::input[@type='submit']"


def control(name: str) -> str:
    """Find a link or a button by its name."""
    said = f"normalize-space(.)={_quoted(name)} or @value={_quoted(name)}"
    named = f"@aria-label={_quoted(name)} or (not(@aria-label) and ({said}))"
    return f"//*[{_CONTROLS}][{named}]"


def field(label: str) -> str:
    """Find what is typed into or ticked by its label."""
    labels = f"//label[normalize-space(.)={_quoted(label)}]"
    by_name = f"//*[self::input or self::textarea][@aria-label={_quoted(label)}]"
    return f"{by_name}|//*[@id={labels}/@for]|{labels}//input"


def _quoted(text: str) -> str:
    assert '"' not in text
    return f'"{text}"'
