"""Medical Cost Personal: what does a year of insurance cost?"""

from __future__ import annotations

from collections.abc import Sequence

from corrdp.datasets.cache import PinnedFile, fetch
from corrdp.datasets.dataset import (
    Dataset,
    Frame,
    choose_roles,
    make_frame,
    parse_table,
    split_label,
)
from corrdp.schema import Categorical, Label, Numeric, Role, Schema

__all__ = ["load_medical_cost"]

USUAL = ("sex", "smoker")
FILE = PinnedFile(
    "insurance.csv",
    "505c1cbc2e63d0363bac59501563df2530aadf4cdb9cfee226f4ef32f5468281",
    "https://raw.githubusercontent.com/stedy/Machine-Learning-with-R-datasets/master/insurance.csv",
)
SCHEMA = Schema(
    {
        "age": Numeric(18, 64),
        "sex": Categorical(("female", "male")),
        "bmi": Numeric(15, 55),
        # a bin for every number of children: nothing is averaged
        "children": Numeric(0, 5, bins=(0.0, 0.5, 1.5, 2.5, 3.5, 4.5, 5.0)),
        "smoker": Categorical(("no", "yes")),
        "region": Categorical(("northeast", "northwest", "southeast", "southwest")),
    },
    Label("charges", low=0, high=65_000),
)
NAMES = (*SCHEMA.columns, SCHEMA.label.name)


def load_medical_cost(
    *,
    frame: Frame = "pandas",
    sensitive: Sequence[str] = USUAL,
    label_role: Role = "insensitive",
) -> Dataset:
    """Medical cost: 1,338 insured persons and their yearly charges (mean 13,270.42).

    Parameters
    ----------
    frame : {"pandas", "polars", "pyarrow", "dict"}
        Kind of table for ``X``.
    sensitive : sequence of str
        Sensitive columns; the others are insensitive. Charges tell almost everything about
        ``smoker``, so CorrDP equals DP with the usual choice; ``("sex", "bmi")`` shows a
        difference.
    label_role : {"insensitive", "sensitive", "public"}

    Returns
    -------
    Dataset
        Without distances: no comparison gives any.

    Raises
    ------
    DatasetError
        If the file is not on disk and cannot be downloaded, or has another hash.
    """
    schema = choose_roles(SCHEMA, sensitive, label_role)
    _, content = fetch(FILE)
    X, y = split_label(parse_table(content, NAMES, skip_lines=1), schema)
    return Dataset(
        name="medical_cost",
        X=make_frame(X, frame),
        y=y,
        schema=schema,
        description="Insured persons and their yearly charges; the values are probably simulated.",
        licence="unclear (public domain or DbCL)",
        source="https://github.com/stedy/Machine-Learning-with-R-datasets",
    )
