"""The picture of distances between levels: whole files, hostile names, clear errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from corrdp.errors import ConfigurationError
from corrdp.report.heat_map import Panel, draw_heat_map, panel_of

COUNTS = np.array([[[30, 10], [5, 35], [0, 0]]])


def test_panel_holds_total_variation_between_levels() -> None:
    panel = panel_of("c", ["a", "b", "never"], COUNTS)
    assert panel.matrix[0, 1] == pytest.approx(0.75 - 0.125)
    assert (panel.matrix[2, :2] == 1.0).all() and (np.diag(panel.matrix) == 0).all()


@pytest.mark.parametrize(("name", "start"), [("map.png", b"\x89PNG"), ("map.svg", b"<?xml")])
def test_draws_png_and_svg(tmp_path: Path, name: str, start: bytes) -> None:
    hostile = panel_of('ε "x" $^<b>', ["$\\frac", "b\n", "long" * 30], COUNTS)
    wide = Panel("wide", tuple(map(str, range(40))), np.zeros((40, 40)))
    draw_heat_map([hostile, wide], tmp_path / name, "title")
    assert (tmp_path / name).read_bytes().startswith(start)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_refuses_other_files_and_nothing_to_draw(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"\.png or \.svg"):
        draw_heat_map([panel_of("c", ["a", "b", "c"], COUNTS)], tmp_path / "map.pdf", "t")
    with pytest.raises(ConfigurationError, match="no column"):
        draw_heat_map([], tmp_path / "map.png", "t")
    assert list(tmp_path.iterdir()) == []
