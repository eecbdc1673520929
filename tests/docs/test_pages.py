"""Every Python block of the documentation runs, every name it lists exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import corrdp
from corrdp import audit, report
from corrdp.cli.app import COMMANDS

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = ("api", "architecture", "choosing-roles", "guarantee", "networks", "queries", "sharp-edges")
FENCE = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def page(name: str) -> str:
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PAGES)
def test_blocks_run_from_top_to_bottom(name: str) -> None:
    text = page(name)
    blocks = list(FENCE.finditer(text))
    assert blocks and sum("assert" in block[1] for block in blocks) >= len(blocks) - 2
    names: dict[str, object] = {"__name__": f"docs_{name}"}
    for block in blocks:
        line = text[: block.start()].count("\n") + 1
        # blank lines before the code make tracebacks point at the page
        code = compile("\n" * line + block[1], str(DOCS / f"{name}.md"), "exec")
        exec(code, names)


def test_every_sharp_edge_bites() -> None:
    sections = re.split(r"^## ", page("sharp-edges"), flags=re.MULTILINE)[1:]
    assert [section.split(".")[0] for section in sections] == [str(i) for i in range(1, 12)]
    for section in sections:
        code = "".join(FENCE.findall(section))
        assert "assert" in code or "raise AssertionError" in code, section[:40]


def test_api_lists_every_public_name_and_command() -> None:
    text = page("api")
    names = [name for name in corrdp.__all__ if not name.startswith("__")]
    assert [name for name in names if f"`{name}" not in text and f"{name}(" not in text] == []
    for module in (audit, report):
        assert [name for name in module.__all__ if name not in text] == []
    assert set(re.findall(r"^\| `corrdp (\w+)", text, re.MULTILINE)) <= set(COMMANDS)
    assert [name for name in COMMANDS if f"corrdp {name}" not in text] == []


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", page(name))
    for target in targets:
        assert (DOCS / target).is_file(), target
    assert "http" not in page(name)
