"""The command line: one file per command, and the only code that prints."""

from corrdp.cli.app import main

__all__ = ["main"]
