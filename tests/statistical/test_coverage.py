"""Coverage by simulation: limits cover, and procedures with a planted fault are caught.

The populations, methods and faults are those of ``benchmarks/coverage.py``; the full run with
2,000 draws is printed there.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from corrdp.distance.events import MAX_ENUMERATED_CELLS


def _benchmark():
    path = Path(__file__).resolve().parents[2] / "benchmarks" / "coverage.py"
    spec = importlib.util.spec_from_file_location("coverage_benchmark", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


BENCHMARK = _benchmark()
DESIGNS = {design.name: design for design in BENCHMARK.designs()}
SMALL = ("2 × 2, few records", "2 × 2, rare level", "4 × 5, cells near 0 and 1")
CASES = [
    (name, method)
    for name, design in DESIGNS.items()
    for method in BENCHMARK.METHODS
    if design.conditional.shape[1] <= MAX_ENUMERATED_CELLS or method not in BENCHMARK.ENUMERATED
]


@pytest.mark.parametrize(("name", "method"), CASES)
def test_limits_cover(name, method):
    draws = 400 if name in SMALL else 6 if name.startswith("20") else 25
    found = BENCHMARK.coverage(DESIGNS[name], BENCHMARK.METHODS[method], draws, seed=11)
    assert found >= BENCHMARK.acceptable(draws)


FAULT_DRAWS = 200


@pytest.fixture(scope="module")
def faults():
    return {name: (wrong, right) for name, wrong, right in BENCHMARK.faults(FAULT_DRAWS)}


@pytest.mark.parametrize(
    "name",
    [
        "total n for n_a (H)",
        "noise omitted",
        "γ not split over 20 columns",
        "merged by sample totals",
    ],
)
def test_planted_faults_are_caught(faults, name):
    wrong, right = faults[name]
    assert wrong < BENCHMARK.acceptable(FAULT_DRAWS) <= right
