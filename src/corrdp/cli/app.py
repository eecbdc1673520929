"""The table of commands, and what happens around each of them."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from corrdp.cli import console
from corrdp.errors import CorrDPError, CorrDPWarning
from corrdp.version import __version__

__all__ = ["COMMANDS", "build", "main"]

# name → module whose `run` is the command; they are listed in this order
COMMANDS: dict[str, str] = {
    "demo": "corrdp.cli.demo",
    "init": "corrdp.cli.init",
    "distances": "corrdp.cli.distances",
    "plan": "corrdp.cli.plan",
    "fit": "corrdp.cli.fit",
    "predict": "corrdp.cli.predict",
    "verify": "corrdp.cli.verify",
    "report": "corrdp.cli.report",
    "audit": "corrdp.cli.audit",
    "experiments": "corrdp.cli.experiments",
}

USER_ERROR = 2
STOPPED = 130


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"corrdp {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Correlation-aware differential privacy for tables.

    Mark the sensitive columns; every other column is protected as much as it tells about them.
    Start with `corrdp demo`, or with `corrdp init data.csv --label NAME` for your own file.
    """


def build() -> typer.Typer:
    """The application with every command of the table."""
    app = typer.Typer(name="corrdp", pretty_exceptions_enable=False, rich_markup_mode=None)
    app.callback()(_root)
    for name, module in COMMANDS.items():
        app.command(name)(importlib.import_module(module).run)
    return app


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point: runs a command and exits with its code.

    Exit codes: 0; 1 when `verify` finds that something does not hold; 2 for whatever the user
    can mend, with one line on stderr; 130 when stopped.
    """
    given = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    console.prepare_streams()
    with warnings.catch_warnings():
        warnings.simplefilter("always", CorrDPWarning)
        warnings.showwarning = console.show_warning
        code = _run(given)
    sys.exit(code)


def _run(given: list[str]) -> int:
    as_json = "--json" in given
    try:
        code = build()(given, prog_name="corrdp", standalone_mode=False)
    except CorrDPError as error:
        return console.fail(str(error), type(error).__name__, USER_ERROR, as_json)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            return console.pipe_closed()
        reason = f"{error.filename or 'file'}: {error.strerror or error}"
        return console.fail(reason, type(error).__name__, USER_ERROR, as_json)
    except (KeyboardInterrupt, typer.Abort):
        code = STOPPED
    except MemoryError:
        message = "not enough memory for this table; use fewer columns or records"
        return console.fail(message, "MemoryError", USER_ERROR, as_json)
    except Exception as error:
        usage = _usage_message(error)
        if usage is None:
            raise
        return console.fail(usage, "UsageError", USER_ERROR, as_json)
    if code == STOPPED:  # also what Typer makes of an interrupt
        return console.fail("stopped; nothing was written", "Stopped", STOPPED, as_json)
    return code if isinstance(code, int) else 0


def _usage_message(error: Any) -> str | None:
    """One line for a wrong command line; None for any other exception."""
    if not (hasattr(error, "format_message") and hasattr(error, "exit_code")):
        return None
    context = getattr(error, "ctx", None)
    path = getattr(context, "command_path", "corrdp")
    text = " ".join(str(error.format_message()).split()).rstrip(".")
    return f"{text}; see {path} --help" if text else f"see {path} --help"
