"""Whatever the user can mend: exit code 2, one line that names it, nothing written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import PLAN, Command, Finished


def refused(done: Finished, *words: str) -> None:
    """One line on stderr with these words, and nothing else."""
    assert done.code == 2
    assert done.out == ""
    assert len(done.err.splitlines()) == 1
    for word in words:
        assert word in done.err


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("high = 90", "high = 90\nconfirmed = false", ("'age'", "confirmed = true")),
        ("steps = 20", "stpes = 20", ("stpes", "[training]")),
        ("steps = 20", "epsilon = 1", ("epsilon", "[privacy]")),
        ("steps = 20", "steps = 0", ("steps=0",)),
        ("steps = 20", 'model = "forest"', ("forest", "logistic")),
        ("steps = 20", 'model = "ridge"', ("'rich'", "logistic")),
        ("epsilon = 2.0", "epsilon = -1", ("epsilon=-1",)),
        ("epsilon = 2.0", "epsilom = 1", ("epsilom", "epsilon")),
        ("epsilon = 2.0", "epsilon = nan", ("epsilon=nan",)),
        ("delta = 1e-4", "delta = 0.5", ("delta=0.5", "1/n")),
        ("age = 0.2", "age = 1.5", ("'age'", "1.5")),
        ("age = 0.2", "agee = 0.2", ("agee",)),
        ("[label]", "[lable]", ("[label]",)),
        ("low = 17", "low = 17 17", ("TOML",)),
        ('role = "insensitive"\n\n[columns.job]', 'role = "secret"\n\n[columns.job]', ("secret",)),
        ('name = "rich"', 'name = "poor"', ("poor",)),
        ("[training]", "[file]\nskip = 1\n[training]", ("skip", "skip_rows")),
        ("[training]", "[privcy]\n[training]", ("privcy",)),
        ("[training]", "[privacy.estimate]\nshare = 0.1\n[training]", ("estimate", "private")),
    ],
)
def test_wrong_plan(
    corrdp: Command,
    data: Path,
    plan: Path,
    tmp_path: Path,
    old: str,
    new: str,
    words: tuple[str, ...],
) -> None:
    assert old in PLAN
    plan.write_text(PLAN.replace(old, new, 1), encoding="utf-8")
    refused(corrdp("fit", data, plan, "-o", tmp_path / "out"), *words)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("fit",),
        ("nonsense",),
        ("fit", "data.csv", "plan.toml", "--sed", "1"),
        ("init", "data.csv"),
        ("plan", "plan.toml", "--records", "many"),
        ("plan", "plan.toml", "--records", "0"),
    ],
)
def test_wrong_command_line(corrdp: Command, arguments: tuple[str, ...]) -> None:
    refused(corrdp(*arguments), "--help")


def test_files_that_are_not_there(corrdp: Command, data: Path, plan: Path, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    refused(corrdp("fit", gone, plan), "gone", "check the path")
    refused(corrdp("fit", data, gone), "gone", "init")
    refused(corrdp("fit", data, plan, "-o", data), "is a file")
    refused(corrdp("fit", data, plan, "-o", data / "out"), "--output")
    refused(corrdp("fit", data, plan, "-o", tmp_path / "out", "--test", gone), "gone")
    refused(corrdp("fit", tmp_path, plan), "cannot be read")
    refused(corrdp("predict", tmp_path, data), "model.json")
    refused(corrdp("verify", gone), "certificate.json")
    assert not (tmp_path / "out").exists()


def test_damaged_files(corrdp: Command, data: Path, plan: Path, tmp_path: Path) -> None:
    broken = tmp_path / "model.json"
    broken.write_text("{", encoding="utf-8")
    refused(corrdp("predict", broken, data), "cannot be read as a model")
    assert corrdp("verify", broken).code == 1
    plan.write_bytes(b"\xff\xfe")
    refused(corrdp("fit", data, plan), "UTF-8")


def test_errors_are_json_too(corrdp: Command, data: Path, plan: Path) -> None:
    plan.write_text(PLAN.replace("steps = 20", "stpes = 20"), encoding="utf-8")
    for arguments in (("fit", data, plan, "--json"), ("fit", "--json")):
        done = corrdp(*arguments)
        assert done.code == 2
        assert set(json.loads(done.out)) == {"error"}
        assert len(done.err.splitlines()) == 1


def test_init_keeps_an_existing_plan(corrdp: Command, data: Path, plan: Path) -> None:
    refused(corrdp("init", data, "--label", "rich", "-o", plan), "--force")
    assert plan.read_text(encoding="utf-8") == PLAN


def test_ways_to_measure_exclude_each_other(corrdp: Command, data: Path, plan: Path) -> None:
    refused(corrdp("distances", data, plan, "--exact", "--public", data), "--exact")
    refused(corrdp("distances", data, plan, "--exact", "-o", "x.json"), "--output")
