"""A folder of results that is never half-written."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from corrdp.errors import ConfigurationError

__all__ = ["check_folder", "write_folder"]


def check_folder(out: Path) -> None:
    """Refuse a place that cannot be written, before anything is spent.

    Raises
    ------
    ConfigurationError
        If it is a file, or the folder above it cannot be written.
    """
    if out.exists() and not out.is_dir():
        raise ConfigurationError(f"{out} is a file; choose another folder for --output")
    above = next(parent for parent in (out, *out.absolute().parents) if parent.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise ConfigurationError(f"{above} cannot be written; choose another --output")


def write_folder(out: Path, contents: Mapping[str, Callable[[Path], object]]) -> None:
    """Write all files to a sibling folder, then move them in place.

    A new folder appears in one step. In an existing one every file that is to be replaced but the
    first is removed before the first is replaced, so that files of two runs never stand side by
    side; the first must be able to stand alone.

    Parameters
    ----------
    out : Path
    contents : mapping of file name to a function that writes the file at a given path

    Raises
    ------
    ConfigurationError
        If the folder cannot be written.
    """
    try:
        out.absolute().parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(
            tempfile.mkdtemp(dir=out.absolute().parent, prefix=f".{out.absolute().name}.")
        )
    except OSError as error:
        raise ConfigurationError(f"cannot write {out}: {error.strerror}") from None
    try:
        for name, write in contents.items():
            write(temporary / name)
        temporary.chmod(0o755)
        if not out.exists():
            temporary.rename(out)
            return
        for name in list(contents)[1:]:
            (out / name).unlink(missing_ok=True)
        for name in contents:
            (temporary / name).replace(out / name)
    except OSError as error:
        raise ConfigurationError(f"cannot write {out}: {error.strerror}") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
