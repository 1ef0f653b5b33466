"""Where on a page something is, by the words that a person reads there or is read out: XPaths."""

from __future__ import annotations

_CONTROLS = "self::a or self::button or self::summary or self::input[@type='submit']"


def control(name: str, *, within: str = "") -> str:
    """Find a link or a button by its name, within the part of the page of that name."""
    said = f"normalize-space(.)={_quoted(name)} or @value={_quoted(name)}"
    named = f"@aria-label={_quoted(name)} or (not(@aria-label) and ({said}))"
    part = f"//*[@aria-label={_quoted(within)}]" if within else ""
    return f"{part}//*[{_CONTROLS}][{named}]"


def field(label: str) -> str:
    """Find what is typed into or ticked by its label."""
    labels = f"//label[normalize-space(.)={_quoted(label)}]"
    by_name = f"//*[self::input or self::textarea][@aria-label={_quoted(label)}]"
    return f"{by_name}|//*[@id={labels}/@for]|{labels}//input"


def option(label: str, choice: str) -> str:
    """Find what is to be chosen in the list of this label, which may stand within it."""
    labels = f"//label[normalize-space(text()[1])={_quoted(label)}]"
    wanted = f"option[normalize-space(.)={_quoted(choice)}]"
    return f"{labels}//select/{wanted}|//select[@id={labels}/@for]/{wanted}"


def _quoted(text: str) -> str:
    assert '"' not in text
    return f'"{text}"'
