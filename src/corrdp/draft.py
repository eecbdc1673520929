"""A first ``plan.toml`` from a file, for a person to correct and confirm.

Everything that was taken from the records carries ``confirmed = false``; training refuses such
entries by name, because bounds or levels learned from private records are a leak.
"""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from corrdp.errors import DataError
from corrdp.tables import FileOptions, column_chunks
from corrdp.tables.profile import ColumnProfile, profile_columns

__all__ = ["Draft", "draft_plan", "outward"]

MISSING_LEVEL = "missing"
WIDTH = 88
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_WHOLE = re.compile(r"-?(0|[1-9]\d{0,14})")


@dataclass(frozen=True)
class Draft:
    """The text of a plan, and what the person who edits it should know.

    Attributes
    ----------
    text : str
        Content of ``plan.toml``.
    records : int
    kinds : dict of str to str
        Kind that was drafted for each column.
    warnings : tuple of str
        One line each.
    """

    text: str
    records: int
    kinds: dict[str, str]
    warnings: tuple[str, ...]


def outward(low: float, high: float) -> tuple[float, float]:
    """Bounds rounded away from the data to one leading digit of their width.

    Examples
    --------
    >>> outward(17.0, 90.0), outward(-0.43, 0.91), outward(3.0, 3.5)
    ((10.0, 90.0), (-0.5, 1.0), (3.0, 3.5))
    """
    step = 10.0 ** math.floor(math.log10(max(high - low, 1e-300)) + 1e-9)
    if high - low < 2 * step:
        step /= 10.0
    below, above = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    return min(low, round(below * step, digits)), max(high, round(above * step, digits))


def draft_plan(path: Path, label: str, options: FileOptions, distances: str | None = None) -> Draft:
    """Profile a file and write the plan's first version.

    Parameters
    ----------
    path : Path
    label : str
        Column that is to be predicted.
    options : FileOptions
    distances : str, optional
        Source of the distances that the plan names, such as ``"private"``; None leaves them to
        be given by hand.

    Raises
    ------
    DataError
        If there is no such label, or nothing that could be predicted or learned from.
    """
    file, chunks = column_chunks(path, options)
    profiles = profile_columns(chunks, "." if file is None else file.decimal)
    if not profiles:
        raise DataError(f"{path.name}: holds no records")
    if label not in {profile.name for profile in profiles}:
        names = ", ".join(repr(profile.name) for profile in profiles)
        raise DataError(
            f"{path.name}: no column {label!r} to predict; the first line reads {names}; pass "
            "--names a,b,c if that is a record"
        )
    marks = sorted(_number_marks(profiles) | set(options.missing))
    if file is not None:
        separator = file.separator if file.separator != "," else None
        decimal = file.decimal if file.decimal != "." else None
        options = FileOptions(options.names, options.skip_rows, separator, decimal, tuple(marks))
    writer = _Writer(path, marks, profiles[0].size)
    for profile in profiles:
        if profile.name != label:
            writer.column(profile)
    writer.label(next(profile for profile in profiles if profile.name == label))
    if set(writer.kinds.values()) == {"ignored"}:
        raise DataError(f"{path.name}: no column besides {label!r} that could be learned from")
    writer.rest(options, distances)
    kinds = {p.name: writer.kinds.get(p.name, "label") for p in profiles}
    return Draft("\n".join(writer.lines) + "\n", writer.size, kinds, tuple(writer.warnings))


def _number_marks(profiles: Sequence[ColumnProfile]) -> set[str]:
    """Marks that stand for a missing number in some column."""
    numeric = [p for p in profiles if p.numeric and p.shape in ("number", "levels", "constant")]
    return {mark for profile in numeric for mark in profile.marks}


class _Writer:
    """Collects the lines of the plan."""

    def __init__(self, path: Path, marks: Sequence[str], size: int) -> None:
        self.marks, self.size, self.name = marks, size, path.name
        self.model = "logistic"
        self.kinds: dict[str, str] = {}
        self.warnings: list[str] = []
        self.lines = [
            f"# Plan for {_comment(path.name)}, drafted by corrdp init.",
            "#",
            "# Bounds and levels below were taken from the file. As they stand they are a leak:",
            "# check each against public knowledge (a questionnaire, a law, a manual), correct it,",
            "# choose the role, then set confirmed = true. corrdp fit refuses until you have.",
            "#",
            "# Bounds (low, high) were rounded outward; state what is possible, not what occurs:",
            "# values outside are clamped. Level lists must hold every level that is possible;",
            '# with other = true every value that is not listed becomes the level "other".',
            "#",
            '# role = "sensitive"     what must not be learned about a person (the default)',
            '#        "insensitive"   protected as much as it tells about the sensitive columns',
            '#        "public"        known to everybody anyway: not protected at all',
            "#",
            '# kind = "ignored" leaves a column out: identifiers, and what gives the label away.',
        ]

    def warn(self, message: str) -> None:
        self.warnings.append(message)

    def column(self, profile: ColumnProfile) -> None:
        shape = profile.shape
        self.lines += ["", f"[columns.{_key(profile.name)}]"]
        if shape == "number":
            self.kinds[profile.name] = "numeric"
            self._bounds(profile)
        elif shape == "levels":
            self.kinds[profile.name] = "categorical"
            self._levels(profile)
        else:
            self.kinds[profile.name] = "ignored"
            reason = _REASONS[shape]
            self.lines += [f"# {reason}", 'kind = "ignored"']
            self.warn(f"column {profile.name!r}: {reason}")
            if shape == "text" and profile.mixed:
                self.warn(
                    f"column {profile.name!r} mixes numbers and texts such as "
                    f"{profile.oddity[:40]!r}: correct them to use it as a number"
                )

    def _bounds(self, profile: ColumnProfile) -> None:
        low, high = outward(profile.low, profile.high)
        kind = "whole numbers" if profile.whole else "numbers"
        self.lines += [
            f"# {kind}; in the file {_number(profile.low)} to {_number(profile.high)}",
            'kind = "numeric"',
            f"low = {_number(low)}",
            f"high = {_number(high)}",
        ]
        missing = profile.cells_missing(self.marks)
        if missing:
            middle = _number((low + high) / 2)
            self.lines.append(
                f"missing = {middle}  # {missing} cells are empty: this stands for them"
            )
        self._close()

    def _levels(self, profile: ColumnProfile) -> None:
        levels: list[Any] = [_level(cell) for cell in profile.level_list(self.marks)]
        missing = profile.cells_missing(self.marks)
        if missing:
            levels.append(MISSING_LEVEL)
        self.lines += [
            f"# {len(levels)} levels in the file",
            'kind = "categorical"',
            *_listed("levels", levels),
        ]
        if missing:
            self.lines.append(f'missing = "{MISSING_LEVEL}"  # {missing} cells are empty')
        self._close()

    def _close(self) -> None:
        self.lines += ['role = "sensitive"', "confirmed = false"]

    def label(self, profile: ColumnProfile) -> None:
        shape = profile.shape
        if shape == "id" and profile.numeric:
            shape = "number"  # a measured quantity may well differ in every row
        self.lines += ["", "[label]", f"name = {_text(profile.name)}"]
        if shape == "levels":
            levels = [_level(cell) for cell in profile.level_list(self.marks)]
            self.lines += ["# the last level is the positive class", *_listed("levels", levels)]
            if len(levels) != 2:
                self.warn(f"label {profile.name!r} has {len(levels)} classes; two are supported")
        elif shape == "number":
            self.model = "ridge"
            low, high = outward(profile.low, profile.high)
            self.lines += [
                f"# in the file from {_number(profile.low)} to {_number(profile.high)}; values "
                "outside are clamped",
                f"low = {_number(low)}",
                f"high = {_number(high)}",
            ]
        else:
            raise DataError(
                f"{self.name}: label {profile.name!r} cannot be predicted: {_REASONS[shape]}"
            )
        self.lines.append("# a sensitive label costs nearly all of the gain over ordinary privacy")
        self._close()
        missing = profile.cells_missing(self.marks)
        if missing:
            self.warn(f"label {profile.name!r} has {missing} empty cells: drop these records")

    def rest(self, options: FileOptions, distances: str | None) -> None:
        # at most a tenth of 1/n: n is public under substitution
        delta = 10.0 ** -(math.ceil(math.log10(max(self.size, 2))) + 1)
        self.lines += [
            "",
            "# Columns that are functions of each other form a group with one distance:",
            "# [[groups]]",
            '# columns = ["a", "b"]',
            "",
            "[privacy]",
            "# loss allowed for the sensitive columns; below 1 is strong, above 5 is weak",
            "epsilon = 1.0",
            f"# probability of a larger loss; below 1/n = {1 / self.size:.2g}",
            f"delta = {delta:.0e}",
            "# record_epsilon = 4.0    # also ordinary privacy of the whole record at this loss",
            "# records_per_person = 1  # rows that one person may own",
        ]
        self._distances(distances)
        self.lines += ["", "[training]", "# every default is a function of public numbers alone"]
        self.lines += [f'model = "{self.model}"']
        layout = options.to_dict()
        if layout:
            self.lines += ["", "# how the CSV files are laid out", "[file]"]
            self.lines += tomli_w.dumps(layout).splitlines()

    def _distances(self, source: str | None) -> None:
        if source is not None:
            self.lines += [
                "# how much a column tells about the sensitive ones, from 0 (nothing) to 1;",
                "# estimated privately as a part of epsilon",
                f'distances = "{source}"',
            ]
            return
        self.lines += [
            "",
            "# How much an insensitive column tells about the sensitive ones, from 0 (nothing)",
            "# to 1 (everything; also what is assumed for a column that is not listed):",
            "[privacy.distances]",
            "# age = 0.3",
        ]


_REASONS = {
    "text": "more different texts than a model can use; group them into a few levels to use it",
    "date": "holds dates; turn them into a number (an age, a duration) to use them",
    "id": "differs in every row like an identifier: it must not enter a model",
    "constant": "holds the same value everywhere: nothing can be learned from it",
    "empty": "is empty in every row",
}


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _text(name)


def _text(value: str) -> str:
    """A TOML basic string; JSON escapes the same characters except DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _comment(value: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in value)


def _number(value: float) -> str:
    if float(value).is_integer() and abs(value) < 1e15:
        return str(int(value))
    return repr(float(value))


def _level(cell: str) -> str | int:
    return int(cell) if _WHOLE.fullmatch(cell) and cell != "-0" else cell


def _listed(key: str, levels: Sequence[str | int]) -> list[str]:
    """A TOML array, wrapped to lines of readable length."""
    items = [_text(level) if isinstance(level, str) else str(level) for level in levels]
    one_line = f"{key} = [{', '.join(items)}]"
    if len(one_line) <= WIDTH:
        return [one_line]
    body = textwrap.wrap(
        "\0".join(items).replace(" ", "\1").replace("\0", ", ") + ",",
        WIDTH - 4,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [f"{key} = [", *(f"    {line}".replace("\1", " ") for line in body), "]"]
