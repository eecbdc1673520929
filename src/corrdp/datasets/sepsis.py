"""UCI Sepsis Survival Minimal Clinical Records: does the patient leave the hospital alive?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from corrdp.datasets.cache import PinnedFile, fetch, zip_member
from corrdp.datasets.dataset import (
    Array,
    Dataset,
    Frame,
    choose_roles,
    make_frame,
    parse_table,
    split_label,
)
from corrdp.errors import ConfigurationError
from corrdp.schema import Categorical, Label, Numeric, Role, Schema

__all__ = ["load_sepsis"]

USUAL = ("sex_0male_1female",)
SCHEMA = Schema(
    {
        "age_years": Numeric(0, 100),
        "sex_0male_1female": Categorical((0, 1)),
        # a bin for every episode: nothing is averaged
        "episode_number": Numeric(1, 5, bins=(1.0, 1.5, 2.5, 3.5, 4.5, 5.0)),
    },
    Label("hospital_outcome_1alive_0dead", (0, 1)),
)
NAMES = (*SCHEMA.columns, SCHEMA.label.name)

_HASHES = {
    "primary": "6ba4ebd256fa3b5f6c0d42444a3e6b9a4b90d6e493c9efdfedcb2ef7470d4b0f",
    "study": "d3302756c0e16d78acf8f1ed7d9692afeafe02d5b224b5aa694598e1b7443001",
    "validation": "37a21fbbc2626131d318391af2e91c454316e18b11043175171b4b8d8a04a7a7",
}
FILES = {
    cohort: PinnedFile(
        f"sepsis_{cohort}.csv",
        sha256,
        "https://archive.ics.uci.edu/static/public/827/"
        "sepsis+survival+minimal+clinical+records.zip",
        zip_member(f"sepsis_survival_{cohort}_cohort.csv"),
    )
    for cohort, sha256 in _HASHES.items()
}


def load_sepsis(
    *,
    frame: Frame = "pandas",
    sensitive: Sequence[str] = USUAL,
    label_role: Role = "insensitive",
    cohort: Literal["primary", "study"] = "primary",
) -> Dataset:
    """Sepsis: 110,204 hospital admissions, 92.645 % of them survived.

    A record is an admission, not a person (84,811 persons, up to five admissions each, no
    identifier): see ``records_per_person``. The test set is another hospital's cohort.

    Parameters
    ----------
    frame : {"pandas", "polars", "pyarrow", "dict"}
        Kind of table for ``X`` and ``X_test``.
    sensitive : sequence of str
        Sensitive columns; the others are insensitive.
    label_role : {"insensitive", "sensitive", "public"}
    cohort : {"primary", "study"}
        The study cohort is a subset of the primary one (19,051 admissions).

    Returns
    -------
    Dataset
        Without distances: no comparison gives any. Accuracy says nothing here: compare AUC,
        balanced accuracy and log-loss.

    Raises
    ------
    DatasetError
        If the files are not on disk and cannot be downloaded, or have another hash.
    """
    if cohort not in ("primary", "study"):
        raise ConfigurationError(f"cohort={cohort!r} is unknown; use 'primary' or 'study'")
    schema = choose_roles(SCHEMA, sensitive, label_role)
    X, y = split_label(_table(cohort), schema)
    X_test, y_test = split_label(_table("validation"), schema)
    return Dataset(
        name="sepsis",
        X=make_frame(X, frame),
        y=y,
        schema=schema,
        X_test=make_frame(X_test, frame),
        y_test=y_test,
        description="Admissions with sepsis in Norway; the label is leaving the hospital alive.",
        licence="CC BY 4.0",
        source=("https://archive.ics.uci.edu/dataset/827/sepsis+survival+minimal+clinical+records"),
    )


def _table(cohort: str) -> dict[str, Array]:
    _, content = fetch(FILES[cohort])
    return parse_table(content, NAMES, skip_lines=1)
