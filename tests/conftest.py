"""Fixtures that every test may use."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

ORACLES = Path(__file__).parent / "oracles"


def load_oracle(name: str) -> Any:
    """Reference values that were computed independently of the project."""
    return json.loads((ORACLES / name).read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder with the original files of the four public data sets, or skip."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    for folder in (os.environ.get("CORRDP_DATA_HOME"), beside):
        if folder and (Path(folder) / "adult_train.csv").is_file():
            return Path(folder)
    pytest.skip("the real data sets are not on this machine (set CORRDP_DATA_HOME)")
