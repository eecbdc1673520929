"""The package's front door: what it names, and what importing it does not load."""

from __future__ import annotations

import subprocess
import sys

import pytest

import corrdp

HEAVY = (
    "numpy",
    "scipy",
    "sklearn",
    "torch",
    "matplotlib",
    "pandas",
    "polars",
    "pyarrow",
    "jinja2",
)


def loaded_after(code: str) -> set[str]:
    """Heavy packages in a fresh interpreter after running the code."""
    script = f"import sys\n{code}\nprint(*sorted(m for m in sys.modules if '.' not in m))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split()) & set(HEAVY)


def test_import_loads_nothing_heavy() -> None:
    assert loaded_after("import corrdp") == set()


def test_schema_needs_no_arrays() -> None:
    assert loaded_after("from corrdp import Schema, Numeric, Categorical, Label") == set()


def test_estimators_load_no_extra() -> None:
    extras = {"torch", "matplotlib", "jinja2"}
    assert not loaded_after("from corrdp import CorrDPRidge, load, verify") & extras


@pytest.mark.parametrize("name", corrdp.__all__)
def test_every_name_is_there(name: str) -> None:
    value = getattr(corrdp, name)
    assert value is not None
    assert name in dir(corrdp)
    assert name == "__version__" or (value.__doc__ or "").strip()


def test_every_name_is_typed() -> None:
    """The names for type checkers are the ones that are imported lazily."""
    import ast
    from pathlib import Path

    tree = ast.parse(Path(corrdp.__file__).read_text(encoding="utf-8"))
    typed = {a.asname for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) for a in n.names}
    assert set(corrdp.__all__) - {"__version__"} <= typed


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Epsilon'"):
        _ = corrdp.Epsilon
    assert not hasattr(corrdp, "epsilon")


def test_version() -> None:
    from importlib.metadata import version

    assert corrdp.__version__ == version("corrdp")
