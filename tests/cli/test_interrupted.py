"""Killing ``fit`` at any moment leaves the folder as it was, or complete."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from corrdp.cli.folder import write_folder
from corrdp.errors import ConfigurationError
from corrdp.verification import verify
from tests.cli.conftest import Command

NAMES = ["certificate.json", "model.json", "plan.toml"]


def complete(out: Path) -> bool:
    """All files are there and belong together."""
    present = sorted(path.name for path in out.iterdir()) if out.exists() else []
    return present == NAMES and verify(out / "certificate.json").holds


def start(arguments: list[str]) -> subprocess.Popen[bytes]:
    code = "import sys; from corrdp.cli import main; main(sys.argv[1:])"
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=dict(os.environ),
    )


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_sigkill_at_random_moments(data: Path, plan: Path, tmp_path: Path) -> None:
    arguments = ["fit", str(data), str(plan), "-o"]
    began = time.monotonic()
    assert start([*arguments, str(tmp_path / "whole")]).wait(timeout=300) == 0
    length = time.monotonic() - began
    assert complete(tmp_path / "whole")
    moments = random.Random(0)
    for turn in range(6):
        out = tmp_path / f"out{turn}"
        process = start([*arguments, str(out)])
        time.sleep(length * moments.uniform(0.5, 1.0))
        process.kill()
        process.wait(timeout=60)
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
    def stop(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("corrdp.linear_model.fit_linear", stop)
    done = corrdp("fit", data, plan, "-o", tmp_path / "out")
    assert done.code == 130
    assert done.err == "error: stopped; nothing was written\n"
    assert not (tmp_path / "out").exists()
