"""UCI Default of Credit Card Clients: will the client default next month?"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from corrdp.datasets.cache import PinnedFile, fetch
from corrdp.datasets.dataset import (
    Dataset,
    Frame,
    choose_roles,
    given_distances,
    make_frame,
    parse_table,
    split_label,
)
from corrdp.schema import Categorical, Column, Ignored, Label, Numeric, Role, Schema

__all__ = ["load_credit"]

USUAL = ("SEX", "MARRIAGE", "AGE")
LABEL = "default.payment.next.month"

_STATUS = ("PAY_0", "PAY_2", "PAY_3", "PAY_4", "PAY_5", "PAY_6")
_BILLS = tuple(f"BILL_AMT{month}" for month in range(1, 7))
_PAYMENTS = tuple(f"PAY_AMT{month}" for month in range(1, 7))
_COLUMNS: dict[str, Column] = {
    "ID": Ignored(),
    "LIMIT_BAL": Numeric(0, 1_000_000),
    "SEX": Categorical((1, 2)),
    "EDUCATION": Categorical((1, 2, 3, 4), other=True),
    "MARRIAGE": Categorical((1, 2, 3), other=True),
    "AGE": Numeric(18, 80),
    **dict.fromkeys(_STATUS, Numeric(-2, 9)),
    **dict.fromkeys(_BILLS, Numeric(-100_000, 500_000)),
    **dict.fromkeys(_PAYMENTS, Numeric(0, 100_000)),
}
SCHEMA = Schema(_COLUMNS, Label(LABEL, (0, 1)))
NAMES = (*_COLUMNS, LABEL)


def _short(value: str) -> str:
    """A whole number as the pinned file writes it: ``1e+05`` where that is shorter."""
    if not value.endswith("00000"):
        return value
    digits = value.lstrip("-")
    significant = digits.rstrip("0")
    fraction = f".{significant[1:]}" if len(significant) > 1 else ""
    sign = value[: len(value) - len(digits)]
    scientific = f"{sign}{significant[0]}{fraction}e+{len(digits) - 1:02d}"
    return scientific if len(scientific) < len(value) else value


def from_uci(content: bytes) -> bytes:
    """UCI's CSV file (columns X1 to X23, Y) rewritten as the pinned file.

    The same numbers under readable names, so the pinned hash proves that nothing was changed.
    """
    header, *rows = csv.reader(io.StringIO(content.decode("utf-8-sig")))
    if len(header) != len(NAMES):
        raise ValueError(f"expected {len(NAMES)} columns, found {len(header)}")
    lines = [",".join(f'"{name}"' for name in NAMES)]
    lines.extend(",".join(map(_short, row)) for row in rows)
    return ("\n".join(lines) + "\n").encode()


FILE = PinnedFile(
    "UCI_Credit_Card.csv",
    "a0f0ab49d6326671d6cd83be5c88dcf18007025fe9a53ecd699119c871176ca1",
    "https://archive.ics.uci.edu/static/public/350/data.csv",
    from_uci,
)


def load_credit(
    *,
    frame: Frame = "pandas",
    sensitive: Sequence[str] = USUAL,
    label_role: Role = "insensitive",
) -> Dataset:
    """Credit: 30,000 credit card clients, 22.12 % of whom default in the next month.

    The pinned file is the well-known CSV form with readable names, ``UCI_Credit_Card.csv``. The
    source publishes a workbook and a CSV file under other names; the latter is downloaded and
    rewritten, and kept only if it then has the pinned hash. If it has not, the error names the
    file and the hash to place in the data folder.

    Parameters
    ----------
    frame : {"pandas", "polars", "pyarrow", "dict"}
        Kind of table for ``X``.
    sensitive : sequence of str
        Sensitive columns; the others are insensitive.
    label_role : {"insensitive", "sensitive", "public"}

    Returns
    -------
    Dataset
        With given distances for ``SEX, MARRIAGE, AGE`` and a label that is not sensitive.
        Accuracy sits near the majority (77.9 %): compare log-loss and AUC.

    Raises
    ------
    DatasetError
        If the file is not on disk and cannot be downloaded, or has another hash.
    """
    schema = choose_roles(SCHEMA, sensitive, label_role)
    _, content = fetch(FILE)
    X, y = split_label(parse_table(content, NAMES, skip_lines=1), schema)
    return Dataset(
        name="credit",
        X=make_frame(X, frame),
        y=y,
        schema=schema,
        distances=given_distances(schema, USUAL, {LABEL: 0.2}, default=0.3),
        description="Credit card clients in Taiwan, 2005; the label is default next month.",
        licence="CC BY 4.0",
        source="https://archive.ics.uci.edu/dataset/350/default+of+credit+card+clients",
    )
