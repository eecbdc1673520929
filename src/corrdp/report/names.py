"""Names from other people's tables, made safe to show: every character visible, none active."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

__all__ = ["listed", "short", "visible"]

_MARKS = {"\n": "↵", "\r": "↵", "\t": "⇥"}
# joiners that scripts and emoji need; they reorder nothing
_HARMLESS = "\u200c\u200d"


def visible(text: str) -> str:
    """The text with line breaks, control and direction characters replaced by visible marks.

    Examples
    --------
    >>> visible("a\\nb\\u202e")
    'a↵b⟨U+202E⟩'
    """
    return "".join(_mark(character) for character in text)


def _mark(character: str) -> str:
    if character in _MARKS:
        return _MARKS[character]
    category = unicodedata.category(character)
    if category in ("Cc", "Cf", "Cs", "Zl", "Zp") and character not in _HARMLESS:
        return f"⟨U+{ord(character):04X}⟩"
    return character


def short(text: str, width: int) -> str:
    """At most ``width`` visible characters, the cut shown by an ellipsis."""
    shown = visible(text)
    return shown if len(shown) <= width else shown[: width - 1] + "…"


def listed(names: Sequence[str], most: int = 6) -> str:
    """Names as a phrase: ``a, b and c``, or ``a, b and 4 more``."""
    shown = [short(name, 40) for name in names]
    if len(shown) > most:
        shown = [*shown[: most - 1], f"{len(names) - most + 1} more"]
    if len(shown) < 2:
        return "".join(shown)
    return ", ".join(shown[:-1]) + " and " + shown[-1]
