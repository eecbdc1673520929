"""Pinned files: cache hits, wrong hashes, broken and impossible downloads."""

from __future__ import annotations

import hashlib
import http.server
import io
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from corrdp.datasets import DatasetError, cache, data_home
from corrdp.datasets.cache import PinnedFile, fetch, zip_member
from corrdp.errors import CorrDPError

CONTENT = b"a,b\n1,2\n"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Site(http.server.ThreadingHTTPServer):
    """Serves ``pages``; a page in ``cut`` promises more bytes than it sends."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.pages: dict[str, bytes] = {}
        self.cut: set[str] = set()
        self.asked: list[str] = []

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_port}{path}"


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Site

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        page = self.server.pages.get(self.path)
        if page is None:
            self.send_error(404)
            return
        extra = 100 if self.path in self.server.cut else 0
        self.send_response(200)
        self.send_header("Content-Length", str(len(page) + extra))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with Site() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    monkeypatch.setenv("CORRDP_DATA_HOME", str(folder))
    return folder


def contents(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def one_line(caught: pytest.ExceptionInfo[DatasetError]) -> str:
    text = str(caught.value)
    assert "\n" not in text
    assert isinstance(caught.value, CorrDPError)
    return text


def test_download_is_checked_and_cached(site: Site, home: Path) -> None:
    site.pages["/t.csv"] = CONTENT
    form = PinnedFile("t.csv", SHA256, site.url("/t.csv"))
    assert fetch(form) == (form, CONTENT)
    assert contents(home) == ["t.csv"]
    site.pages.clear()
    assert fetch(form) == (form, CONTENT)
    assert site.asked == ["/t.csv"]


def test_a_file_on_disk_needs_no_network(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home.mkdir()
    (home / "other.csv").write_bytes(CONTENT)
    monkeypatch.setattr(cache, "download", lambda url: pytest.fail("used the network"))
    first = PinnedFile("t.csv", "0" * 64, "http://127.0.0.1/none")
    second = PinnedFile("other.csv", SHA256)
    assert fetch(first, second) == (second, CONTENT)


def test_a_good_form_is_preferred_to_a_wrong_one(home: Path) -> None:
    home.mkdir()
    (home / "t.csv").write_bytes(b"something else")
    (home / "other.csv").write_bytes(CONTENT)
    second = PinnedFile("other.csv", SHA256)
    assert fetch(PinnedFile("t.csv", SHA256), second) == (second, CONTENT)


def test_wrong_hash_of_a_download(site: Site, home: Path) -> None:
    site.pages["/t.csv"] = CONTENT + b"3,4\n"
    with pytest.raises(DatasetError) as caught:
        fetch(PinnedFile("t.csv", SHA256, site.url("/t.csv")))
    text = one_line(caught)
    assert SHA256 in text and hashlib.sha256(CONTENT + b"3,4\n").hexdigest() in text
    assert contents(home) == []


def test_wrong_hash_on_disk_is_named_and_not_deleted(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.mkdir()
    (home / "t.csv").write_bytes(b"mine")
    monkeypatch.setattr(cache, "download", lambda url: pytest.fail("used the network"))
    with pytest.raises(DatasetError) as caught:
        fetch(PinnedFile("t.csv", SHA256, "http://127.0.0.1/t.csv"))
    text = one_line(caught)
    assert SHA256 in text and hashlib.sha256(b"mine").hexdigest() in text
    assert str(home / "t.csv") in text
    assert (home / "t.csv").read_bytes() == b"mine"


def test_half_download_leaves_nothing(site: Site, home: Path) -> None:
    site.pages["/t.csv"] = CONTENT
    site.cut.add("/t.csv")
    with pytest.raises(DatasetError) as caught:
        fetch(PinnedFile("t.csv", SHA256, site.url("/t.csv")))
    assert "IncompleteRead" in one_line(caught)
    assert contents(home) == []


def test_half_an_archive_leaves_nothing(site: Site, home: Path) -> None:
    site.pages["/t.zip"] = zipped({"t.csv": CONTENT * 50})[:100]
    with pytest.raises(DatasetError, match="unusable file"):
        fetch(PinnedFile("t.csv", SHA256, site.url("/t.zip"), zip_member("t.csv")))
    assert contents(home) == []


@pytest.mark.parametrize("path", ["/missing", None])
def test_no_network_names_file_hash_and_folder(site: Site, home: Path, path: str | None) -> None:
    url = site.url(path) if path else "http://127.0.0.1:9/closed"
    with pytest.raises(DatasetError) as caught:
        fetch(PinnedFile("t.csv", SHA256, url))
    text = one_line(caught)
    for part in ("t.csv", SHA256, str(home), url, "CORRDP_DATA_HOME"):
        assert part in text
    assert contents(home) == []


def test_a_form_without_address_says_what_to_place(home: Path) -> None:
    with pytest.raises(DatasetError, match=r"cannot be downloaded; place a file t\.csv") as caught:
        fetch(PinnedFile("t.csv", SHA256))
    assert SHA256 in one_line(caught)


def test_failed_write_leaves_nothing(
    site: Site, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.pages["/t.csv"] = CONTENT

    def broken(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", broken)
    with pytest.raises(DatasetError, match=r"cannot write .*No space left"):
        fetch(PinnedFile("t.csv", SHA256, site.url("/t.csv")))
    assert contents(home) == []


def test_home_that_is_no_folder(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("CORRDP_DATA_HOME", str(tmp_path / "file"))
    site.pages["/t.csv"] = CONTENT
    with pytest.raises(DatasetError, match="writable folder"):
        fetch(PinnedFile("t.csv", SHA256, site.url("/t.csv")))


def test_line_ends_are_mended_only_towards_the_hash(site: Site, home: Path) -> None:
    site.pages["/t.csv"] = CONTENT.replace(b"\n", b"\r\n")
    assert fetch(PinnedFile("t.csv", SHA256, site.url("/t.csv")))[1] == CONTENT
    assert (home / "t.csv").read_bytes() == CONTENT


def test_member_of_an_archive_in_an_archive(home: Path) -> None:
    inner = zipped({"folder/x_primary.csv": CONTENT})
    outer = zipped({"readme.txt": b"-", "data.zip": inner})
    assert zip_member("_primary.csv")(outer) == CONTENT
    with pytest.raises(ValueError, match="no member"):
        zip_member("absent.csv")(outer)


def test_data_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("CORRDP_DATA_HOME", str(tmp_path))
    assert data_home() == tmp_path
    monkeypatch.setenv("CORRDP_DATA_HOME", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert data_home() == tmp_path / "x" / "corrdp"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert data_home() == Path.home() / ".cache" / "corrdp"
    monkeypatch.setattr("sys.platform", "darwin")
    assert data_home() == Path.home() / "Library" / "Caches" / "corrdp"


def test_a_malformed_hash_is_refused() -> None:
    with pytest.raises(DatasetError, match="not a SHA-256"):
        PinnedFile("t.csv", SHA256.upper())


def zipped(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()
