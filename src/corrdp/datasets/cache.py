"""Pinned files: found on disk or downloaded, checked by SHA-256, stored in one step.

A file counts only with the right name and the right hash, so what a loader returns never depends
on where the file came from. The network is touched in :func:`download` and nowhere else.
"""

from __future__ import annotations

import hashlib
import http.client
import io
import os
import sys
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from corrdp.errors import CorrDPError

__all__ = ["DatasetError", "PinnedFile", "data_home", "download", "fetch", "zip_member"]

HOME_VARIABLE = "CORRDP_DATA_HOME"
TIMEOUT = 60.0


class DatasetError(CorrDPError):
    """A public data set could not be had; the message names file, hash and folder."""


@dataclass(frozen=True)
class PinnedFile:
    """A file whose content is known beforehand.

    Parameters
    ----------
    name : str
        File name in the data folder.
    sha256 : str
        64 lower-case hexadecimal digits.
    url : str, optional
        Where it can be downloaded; None for a form that is only recognised on disk.
    extract : callable, optional
        From the downloaded bytes to the file's bytes; the identity by default.
    """

    name: str
    sha256: str
    url: str | None = None
    extract: Callable[[bytes], bytes] = bytes

    def __post_init__(self) -> None:
        if len(self.sha256) != 64 or set(self.sha256) - set("0123456789abcdef"):
            raise DatasetError(f"{self.name}: sha256={self.sha256!r} is not a SHA-256; correct it")


def data_home() -> Path:
    """The folder of the data files: ``CORRDP_DATA_HOME``, else the platform's cache folder."""
    chosen = os.environ.get(HOME_VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        cache = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        cache = Path.home() / "Library" / "Caches"
    else:
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "corrdp"


def fetch(*forms: PinnedFile) -> tuple[PinnedFile, bytes]:
    """The first accepted form that is on disk, else the first form, downloaded and stored.

    Returns
    -------
    (PinnedFile, bytes)
        Which form it is, and its content with exactly the pinned hash.

    Raises
    ------
    DatasetError
        No form can be had, or what was found or downloaded has another hash. A download with the
        wrong hash is not kept; a file of somebody else's is left where it is.
    """
    folder = data_home()
    wrong = []
    for form in forms:
        path = folder / form.name
        if not path.is_file():
            continue
        content = path.read_bytes()
        found = _sha256(content)
        if found == form.sha256:
            return form, content
        wrong.append(f"{path} has SHA-256 {found}, expected {form.sha256}; remove or replace it")
    if wrong:
        raise DatasetError(wrong[0])
    content = _obtain(forms[0], folder)
    _store(content, folder / forms[0].name)
    return forms[0], content


def download(url: str) -> bytes:
    """Everything behind a URL; the only function here that uses the network."""
    request = urllib.request.Request(url, headers={"User-Agent": "corrdp"})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
            return bytes(response.read())
    except urllib.error.HTTPError as error:
        error.close()  # it holds the connection
        raise


def zip_member(ending: str) -> Callable[[bytes], bytes]:
    """Extractor of the one member whose name ends so, looking into archives in the archive."""

    def extract(archive: bytes) -> bytes:
        found = _find_member(archive, ending)
        if found is None:
            raise ValueError(f"the archive has no member {ending!r}")
        return found

    return extract


def _find_member(archive: bytes, ending: str) -> bytes | None:
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        for member in opened.namelist():
            if member.endswith(ending):
                return opened.read(member)
        for member in opened.namelist():
            if member.endswith(".zip"):
                found = _find_member(opened.read(member), ending)
                if found is not None:
                    return found
    return None


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _obtain(form: PinnedFile, folder: Path) -> bytes:
    """Download, extract and check; line ends are made ``\\n`` where only that gives the hash."""
    by_hand = (
        f"place a file {form.name} with SHA-256 {form.sha256} in {folder}, "
        f"or point {HOME_VARIABLE} at a folder that holds it"
    )
    if form.url is None:
        raise DatasetError(f"{form.name} cannot be downloaded; {by_hand}")
    try:
        content = form.extract(download(form.url))
    except (OSError, http.client.HTTPException) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise DatasetError(f"no download from {form.url} ({reason}); {by_hand}") from None
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        reason = " ".join(str(error).split())
        raise DatasetError(f"{form.url} gave an unusable file ({reason}); {by_hand}") from None
    for candidate in (content, content.replace(b"\r\n", b"\n")):
        if _sha256(candidate) == form.sha256:
            return candidate
    raise DatasetError(
        f"{form.name} from {form.url} has SHA-256 {_sha256(content)}, expected {form.sha256}; "
        f"nothing was kept: {by_hand}"
    )


def _store(content: bytes, path: Path) -> None:
    """Write beside the target, then rename: readers see all of the file or none of it."""
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as out:
            temporary = Path(out.name)
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        temporary.replace(path)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise DatasetError(
            f"cannot write {path} ({error.strerror}); point {HOME_VARIABLE} at a writable folder"
        ) from None
