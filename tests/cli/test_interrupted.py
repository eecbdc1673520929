"""Killing ``fit`` at any moment leaves the folder as it was, or complete."""

from __future__ import annotations

import os
import random
import signal
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from corrdp.cli import main
from corrdp.cli.folder import write_folder
from corrdp.errors import ConfigurationError
from corrdp.verification import verify
from tests.cli.conftest import Command

NAMES = {"certificate.json", "model.json", "plan.toml"}


def complete(out: Path) -> bool:
    """All files are there and belong together."""
    present = {path.name for path in out.iterdir()}
    return present >= NAMES and verify(out / "certificate.json").holds


def fit_in_a_child(arguments: list[str]) -> int:
    """Start ``corrdp`` in a forked process, which has everything imported; returns its id."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer Pythons dislike a fork beside threads
        child = os.fork()
    if child:
        return child
    try:
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        main(arguments)
    except SystemExit as stopped:
        os._exit(int(stopped.code or 0))
    finally:
        os._exit(70)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
def test_sigkill_at_random_moments(corrdp: Command, data: Path, plan: Path, tmp_path: Path) -> None:
    arguments = ["fit", str(data), str(plan), "-o"]
    corrdp(*arguments, tmp_path / "first")
    began = time.monotonic()
    child = fit_in_a_child([*arguments, str(tmp_path / "whole")])
    assert os.waitpid(child, 0)[1] == 0
    length = time.monotonic() - began
    assert complete(tmp_path / "whole")
    moments = random.Random(0)
    for turn in range(20):
        out = tmp_path / f"out{turn}"
        child = fit_in_a_child([*arguments, str(out)])
        time.sleep(length * moments.uniform(0.2, 1.1))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert not out.exists() or complete(out)


class Stopped(BaseException):
    """Stands for the process' end."""


def writers(mark: str, names: list[str]) -> dict[str, Callable[[Path], object]]:
    return {name: lambda path: path.write_text(mark) for name in names}


@pytest.mark.parametrize("step", range(9))
def test_an_existing_folder_never_mixes_two_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """Stop before the step-th operation on files: what stands there is of one run."""
    order = ["model.json", "plan.toml", "certificate.json"]
    out = tmp_path / "out"
    write_folder(out, writers("old", order))
    calls = 0

    def counted(method: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **options: object) -> object:
            nonlocal calls
            calls += 1
            if calls > step:
                raise Stopped
            return method(*arguments, **options)

        return call

    with monkeypatch.context() as patched:
        for name in ("unlink", "replace", "write_text"):
            patched.setattr(Path, name, counted(getattr(Path, name)))
        patched.setattr("corrdp.cli.folder.shutil.rmtree", lambda *a, **k: None)
        try:
            write_folder(out, writers("new", order))
        except Stopped:
            assert calls == step + 1
    contents = {path.name: path.read_text() for path in out.iterdir()}
    assert len(set(contents.values())) == 1
    assert "model.json" in contents


def test_a_failing_writer_leaves_nothing(tmp_path: Path) -> None:
    def full(path: Path) -> object:
        path.write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(ConfigurationError, match="No space left"):
        write_folder(tmp_path / "out", {"model.json": full})
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_is_told_and_writes_nothing(
    corrdp: Command, data: Path, plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("corrdp.linear_base.fit_linear", stop)
    done = corrdp("fit", data, plan, "-o", tmp_path / "out")
    assert done.code == 130
    assert done.err == "error: stopped; nothing was written\n"
    assert not (tmp_path / "out").exists()
