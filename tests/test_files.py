"""Files are whole or not there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from corrdp.errors import ConfigurationError
from corrdp.files import write_bytes, write_text


def test_makes_folders_and_overwrites(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "ü.json"
    write_text(path, "ä\n")
    write_bytes(path, b"second")
    assert path.read_bytes() == b"second"
    assert [p.name for p in path.parent.iterdir()] == ["ü.json"]


def test_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.json"
    write_text(path, "old")

    def full_disk(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(ConfigurationError, match=r"cannot write .*model\.json: No space left"):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_interrupt_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_text(tmp_path / "model.json", "new")
    assert list(tmp_path.iterdir()) == []


def test_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigurationError, match="cannot write"):
        write_text(tmp_path / "file" / "model.json", "x")
    with pytest.raises(ConfigurationError, match="cannot write"):
        write_text(tmp_path, "x")
