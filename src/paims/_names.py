"""Names are data: how a text that someone else wrote is shown.

A column can be called anything: escape codes that a terminal obeys, marks that turn the direction
of writing, mathematics for Matplotlib, a page and a half. What is computed and stored keeps the
name as it is; what is shown goes through here first.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

__all__ = ["as_label", "as_variables", "listed", "shortened", "visible"]

# Joiners, which have no width and decide how letters of some scripts are drawn.
_JOINERS = "\u200c\u200d"
# Of ArviZ's data, whose variables cannot be called so.
_DIMENSIONS = ("chain", "draw")
_LONGEST_VARIABLE = 200
_LISTED = 12


def visible(text: str, keep: str = "") -> str:
    r"""A text with control characters and the like as escapes, such as ``\x1b``.

    Those that turn the direction of writing, half characters and ends of lines are among them.

    Parameters
    ----------
    text : str
    keep : str
        Characters that stay as they are in any case.
    """
    if text.isprintable():
        return text
    return "".join(c if _harmless(c) or c in keep else _escaped(c) for c in text)


def _harmless(character: str) -> bool:
    return (
        character.isprintable()
        or character in _JOINERS
        or unicodedata.category(character) == "Zs"  # spaces of other widths
    )


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def shortened(text: str, most: int) -> str:
    """A text of at most ``most`` characters: the middle of a longer one is left out."""
    if len(text) <= most:
        return text
    end = (most - 3) // 3
    return f"{text[: most - 3 - end]}...{text[len(text) - end :]}"


def listed(names: Sequence[str]) -> str:
    """The first dozen of many names, and how many more there are."""
    more = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {more} more" if more > 0 else "")


def as_label(name: str, most: int = 40) -> str:
    r"""A name as a text of Matplotlib's, which takes what stands between dollars for mathematics.

    With a backslash before every dollar it shows them as they are.
    """
    return shortened(visible(name), most).replace("$", r"\$")


def as_variables(names: Sequence[str]) -> list[str]:
    """Names as variables of NetCDF: all different, no paths, dimensions or control characters."""
    taken: set[str] = {"", ".", "..", *_DIMENSIONS}
    variables = []
    for name in names:
        plain = shortened(visible(name).replace("/", "_"), _LONGEST_VARIABLE).strip()
        variable, count = plain, 1
        while variable in taken:
            count += 1
            variable = f"{plain}_{count}"
        taken.add(variable)
        variables.append(variable)
    return variables
