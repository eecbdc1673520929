"""UCI Adult: does a person earn more than 50,000 dollars a year?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from corrdp.datasets.cache import PinnedFile, fetch, zip_member
from corrdp.datasets.dataset import (
    Array,
    Dataset,
    Frame,
    choose_roles,
    given_distances,
    make_frame,
    parse_table,
    split_label,
)
from corrdp.schema import Categorical, Ignored, Label, Numeric, Role, Schema

__all__ = ["load_adult"]

USUAL = ("race", "sex")
GIVEN = {
    "age": 0.3,
    "capital-gain": 0.25,
    "capital-loss": 0.15,
    "education-num": 0.5,
    "hours-per-week": 0.5,
    "income": 0.31,
}

_URL = "https://archive.ics.uci.edu/static/public/2/adult.zip"
TRAIN = (
    PinnedFile(
        "adult.data",
        "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
        _URL,
        zip_member("adult.data"),
    ),
    PinnedFile(
        "adult_train.csv", "f2c62076f19504d99a38b22badf445a7f42530ade6b827acf78dd143fbce38bb"
    ),
)
TEST = (
    PinnedFile(
        "adult.test",
        "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
        _URL,
        zip_member("adult.test"),
    ),
    PinnedFile(
        "adult_test.csv", "f6b1801c5d231515ea5ff04d4444997bacd57e04876e94710cb9b9bd5549c033"
    ),
)

# order of the columns in the file
NAMES = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
)

UNKNOWN = "?"  # the documentation's mark in workclass, occupation and native-country
_WORKCLASS = (
    "Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov Without-pay Never-worked"
)
_MARITAL_STATUS = (
    "Married-civ-spouse Divorced Never-married Separated Widowed Married-spouse-absent "
    "Married-AF-spouse"
)
_OCCUPATION = (
    "Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty "
    "Handlers-cleaners Machine-op-inspct Adm-clerical Farming-fishing Transport-moving "
    "Priv-house-serv Protective-serv Armed-Forces"
)
_RELATIONSHIP = "Wife Own-child Husband Not-in-family Other-relative Unmarried"
_RACE = "White Asian-Pac-Islander Amer-Indian-Eskimo Other Black"
_COUNTRY = (
    "United-States Cambodia England Puerto-Rico Canada Germany Outlying-US(Guam-USVI-etc) India "
    "Japan Greece South China Cuba Iran Honduras Philippines Italy Poland Jamaica Vietnam Mexico "
    "Portugal Ireland France Dominican-Republic Laos Ecuador Taiwan Haiti Columbia Hungary "
    "Guatemala Nicaragua Scotland Thailand Yugoslavia El-Salvador Trinadad&Tobago Peru Hong "
    "Holand-Netherlands"
)

# education is a function of education-num, fnlwgt a survey weight: both unused
SCHEMA = Schema(
    {
        "age": Numeric(17, 90, bins=(17, 24, 34, 44, 54, 90)),
        "workclass": Categorical((*_WORKCLASS.split(), UNKNOWN)),
        "fnlwgt": Ignored(),
        "education": Ignored(),
        "education-num": Numeric(1, 16, bins=(1, 8, 9, 12, 16)),
        "marital-status": Categorical(tuple(_MARITAL_STATUS.split())),
        "occupation": Categorical((*_OCCUPATION.split(), UNKNOWN)),
        "relationship": Categorical(tuple(_RELATIONSHIP.split())),
        "race": Categorical(tuple(_RACE.split())),
        "sex": Categorical(("Female", "Male")),
        "capital-gain": Numeric(0, 10_000, bins=(0, 0, 10_000)),
        "capital-loss": Numeric(0, 2_500, bins=(0, 0, 2_500)),
        "hours-per-week": Numeric(1, 99, bins=(1, 34, 40, 99)),
        "native-country": Categorical((*_COUNTRY.split(), UNKNOWN)),
    },
    Label("income", ("<=50K", ">50K")),
)


def load_adult(
    *,
    frame: Frame = "pandas",
    sensitive: Sequence[str] = USUAL,
    label_role: Role = "insensitive",
) -> Dataset:
    """Adult: 32,561 training and 16,281 test records, income above 50,000 dollars or not.

    Parameters
    ----------
    frame : {"pandas", "polars", "pyarrow", "dict"}
        Kind of table for ``X`` and ``X_test``.
    sensitive : sequence of str
        Sensitive columns; the others are insensitive.
    label_role : {"insensitive", "sensitive", "public"}

    Returns
    -------
    Dataset
        With given distances for ``race, sex`` and a label that is not sensitive; unknown values
        are the level ``?``.

    Raises
    ------
    DatasetError
        If the files are not on disk and cannot be downloaded, or have another hash.
    """
    schema = choose_roles(SCHEMA, sensitive, label_role)
    X, y = split_label(_table(TRAIN), schema)
    X_test, y_test = split_label(_table(TEST), schema)
    return Dataset(
        name="adult",
        X=make_frame(X, frame),
        y=y,
        schema=schema,
        X_test=make_frame(X_test, frame),
        y_test=y_test,
        distances=given_distances(schema, USUAL, GIVEN, default=1.0),
        description="Census records of 1994; the label is yearly income above 50,000 dollars.",
        licence="CC BY 4.0",
        source="https://archive.ics.uci.edu/dataset/2/adult",
    )


def _table(forms: tuple[PinnedFile, PinnedFile]) -> dict[str, Array]:
    """Either form of the file: the original, or the one with a header."""
    form, content = fetch(*forms)
    # the headered forms start with names, the original test file with a remark
    skip = 0 if form.name == "adult.data" else 1
    columns = parse_table(content, NAMES, skip_lines=skip)
    columns["income"] = _without_dot(columns["income"])
    return columns


def _without_dot(labels: Array) -> Array:
    """The original test file ends its labels in a full stop."""
    return np.char.rstrip(labels, ".")
