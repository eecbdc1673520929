"""Printing: text for people on stdout, remarks on stderr, one JSON object with ``--json``."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO, TypeAlias

__all__ = [
    "Output",
    "fail",
    "note",
    "pipe_closed",
    "plain",
    "prepare_streams",
    "show_warning",
    "steps_bar",
]

Progress: TypeAlias = Callable[[int, int], None]


class Output:
    """What a command says: lines as it goes, or one JSON object at its end."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json

    def line(self, text: str = "") -> None:
        """Text for people; silent with ``--json``."""
        if not self.as_json:
            print(printable(text), flush=True)

    def result(self, data: Mapping[str, Any]) -> None:
        """The command's result as JSON; silent without ``--json``."""
        if self.as_json:
            print(json.dumps(plain(data), ensure_ascii=False, allow_nan=False))


def printable(text: str) -> str:
    """Control characters from column names or cells never reach the terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else "·" for c in text)


def plain(value: Any) -> Any:
    """JSON values: infinity is the text ``"inf"``, NaN is null, paths are texts."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value


def note(text: str) -> None:
    """A remark on stderr."""
    print(printable(text), file=sys.stderr, flush=True)


def fail(message: str, kind: str, code: int, as_json: bool) -> int:
    """One line on stderr, with ``--json`` also an object on stdout; returns the exit code."""
    line = " ".join(message.split())
    note(f"error: {line}")
    if as_json:
        print(json.dumps({"error": {"type": kind, "message": line}}, ensure_ascii=False))
    return code


def show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """A warning as one line on stderr, without the place in the code."""
    note(f"warning: {' '.join(str(message).split())}")


def prepare_streams() -> None:
    """Characters that the terminal cannot show become question marks, never an error."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def pipe_closed() -> int:
    """The reader of our output went away: be silent about it."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    return 0


@contextmanager
def steps_bar(text: str, out: Output) -> Iterator[Progress | None]:
    """A bar of training steps on a terminal; it shows steps and never a loss."""
    if out.as_json or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Remaining())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(text, total=None)

        def update(step: int, steps: int) -> None:
            bar.update(task, completed=step, total=steps)

        yield update
