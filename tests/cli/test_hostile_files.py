"""Files as they come: each ends in a model, or in one line that says what to do.

The user's path is always the same: init, confirm everything, fit.
"""

from __future__ import annotations

import datetime
import tomllib
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Command, Finished, as_csv, rows

N = 300


def walk(corrdp: Command, data: Path, label: str = "rich", *options: str) -> Finished:
    """init → confirm all → fit; returns the first step that fails, or the last."""
    plan = data.with_name("drafted.toml")
    drafted = corrdp("init", data, "--label", label, "-o", plan, *options)
    if drafted.code:
        return drafted
    text = plan.read_text(encoding="utf-8").replace("confirmed = false", "confirmed = true")
    text = text.replace("epsilon = 1.0", "epsilon = 5.0").replace(
        "[training]", "[training]\nsteps = 5"
    )
    plan.write_text(text, encoding="utf-8")
    done = corrdp("fit", data, plan, "-o", data.with_name("out"))
    return Finished(done.code, done.out, drafted.out + drafted.err + done.err)


def columns(data: Path) -> dict[str, dict[str, object]]:
    """Columns of the drafted plan."""
    plain = tomllib.loads(data.with_name("drafted.toml").read_text(encoding="utf-8"))
    found: dict[str, dict[str, object]] = plain["columns"]
    return found


def refused(done: Finished, *words: str) -> None:
    """Exit code 2 and one line."""
    assert done.code == 2
    assert len(done.err.splitlines()) == 1
    for word in words:
        assert word in done.err


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "hostile.csv"


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(("\ufeff" + as_csv(rows(N))).encode(), id="BOM"),
        pytest.param(as_csv(rows(N)).encode("utf-16"), id="UTF-16"),
        pytest.param(as_csv(rows(N), separator=";").encode(), id="semicolons"),
        pytest.param(as_csv(rows(N), separator="\t").encode(), id="tabs"),
        pytest.param(as_csv(rows(N), separator="|").encode(), id="bars"),
        pytest.param(as_csv(rows(N), end="\r\n").encode(), id="Windows line ends"),
        pytest.param(as_csv(rows(N), end="\r").encode(), id="old Mac line ends"),
        pytest.param(as_csv(rows(N), end="\n\n").encode(), id="empty lines"),
        pytest.param(as_csv(rows(N), end="\n   \n").encode(), id="blank lines"),
        pytest.param(as_csv(rows(N)).rstrip("\n").encode(), id="no line end at the end"),
        pytest.param(as_csv(rows(N)).replace(",", " , ").encode(), id="padding"),
        pytest.param(
            as_csv(rows(N)).replace("office", '"office, ""big"""\u0020').encode(),
            id="quotes in quotes",
        ),
        pytest.param(
            as_csv(rows(N)).replace("office", '"two\nlines"').encode(), id="line end in a cell"
        ),
    ],
)
def test_layouts_end_in_a_model(corrdp: Command, path: Path, content: bytes) -> None:
    path.write_bytes(content)
    done = walk(corrdp, path)
    assert done.code == 0, done.err
    assert f"{N} records" in done.out
    assert list(columns(path)) == ["age", "job", "sex"]


def test_quoted_commas_stay_in_their_cell(corrdp: Command, path: Path) -> None:
    path.write_text(as_csv(rows(N)), encoding="utf-8")
    assert walk(corrdp, path).code == 0
    assert columns(path)["job"]["levels"] == ["field, sea", "none", "office"]


def test_latin_1(corrdp: Command, path: Path) -> None:
    path.write_bytes(as_csv(rows(N)).replace("office", "Büro").encode("latin-1"))
    assert walk(corrdp, path).code == 0
    assert "Büro" in columns(path)["job"]["levels"]  # type: ignore[operator]


def test_decimal_commas(corrdp: Command, path: Path) -> None:
    table = [[age + ",5", *rest] for age, *rest in rows(N)]
    text = as_csv([list(row) for row in table], separator=";")
    path.write_text(text, encoding="utf-8")
    assert walk(corrdp, path).code == 0
    assert columns(path)["age"]["kind"] == "numeric"


def test_column_named_with_quotes_and_greek(corrdp: Command, path: Path) -> None:
    path.write_text(as_csv(rows(N), header='"ε ""x""",job,sex,rich'), encoding="utf-8")
    done = walk(corrdp, path)
    assert done.code == 0, done.err
    assert next(iter(columns(path))) == 'ε "x"'
    assert 'ε "x"' in done.out


def test_names_that_toml_would_trip_over(corrdp: Command, path: Path) -> None:
    path.write_text(as_csv(rows(N), header="a.b,back\\slash,#,rich"), encoding="utf-8")
    assert walk(corrdp, path).code == 0
    assert list(columns(path)) == ["a.b", "back\\slash", "#"]


def test_duplicate_header(corrdp: Command, path: Path) -> None:
    path.write_text(as_csv(rows(N), header="age,age,sex,rich"), encoding="utf-8")
    refused(walk(corrdp, path), "['age']", "more than once", "rename")


def test_ragged_row_names_its_line(corrdp: Command, path: Path) -> None:
    lines = as_csv(rows(N)).splitlines()
    lines[7] = "44,office,F"
    path.write_text("\n".join(lines), encoding="utf-8")
    refused(walk(corrdp, path), "line 8", "3 fields for 4 columns")


def test_unclosed_quote(corrdp: Command, path: Path) -> None:
    path.write_text(as_csv([*rows(N), ["30", '"office', "F", "no"]]) + "x" * 200_000)
    refused(walk(corrdp, path), "quote")


def test_mixed_types_become_levels_or_are_explained(corrdp: Command, path: Path) -> None:
    table = rows(N)
    table[5][0] = "forty"
    path.write_text(as_csv(table), encoding="utf-8")
    done = walk(corrdp, path)
    assert done.code == 0
    assert "'age' mixes numbers and texts such as 'forty'" in done.err
    assert columns(path)["age"]["kind"] == "ignored"


def test_text_in_a_numeric_column_names_line_and_value(
    corrdp: Command, path: Path, plan: Path
) -> None:
    table = rows(N)
    table[5][0] = "forty"
    path.write_text(as_csv(table), encoding="utf-8")
    refused(corrdp("fit", path, plan), "line 7", "'age'", "'forty'")


def test_na_marks_are_found(corrdp: Command, path: Path) -> None:
    table = rows(N)
    for row in table[::10]:
        row[0] = "NA"
    path.write_text(as_csv(table), encoding="utf-8")
    assert walk(corrdp, path).code == 0
    assert "missing" in columns(path)["age"]
    scored = corrdp("predict", path.with_name("out"), path, "--json")
    assert scored.data["records"] == N


def test_missing_cells_get_a_public_rule(corrdp: Command, path: Path) -> None:
    table = rows(N)
    for row in table[::10]:
        row[0] = row[1] = ""
    path.write_text(as_csv(table), encoding="utf-8")
    assert walk(corrdp, path).code == 0
    assert columns(path)["age"]["missing"] == 50
    assert columns(path)["job"]["missing"] == "missing"


def test_missing_label(corrdp: Command, path: Path) -> None:
    table = rows(N)
    table[3][3] = ""
    path.write_text(as_csv(table), encoding="utf-8")
    drafted = corrdp("init", path, "--label", "rich", "-o", path.with_name("p.toml"))
    assert "drop these records" in drafted.out
    done = walk(corrdp, path)
    assert done.code == 2
    assert "'rich'" in done.err.splitlines()[-1]


def test_columns_that_cannot_be_used_are_ignored_with_a_reason(corrdp: Command, path: Path) -> None:
    start = datetime.date(2020, 1, 1)
    rng = np.random.default_rng(0)
    days = [str(start + datetime.timedelta(int(d))) for d in rng.integers(0, 900, N)]
    names = [f"name {k}" for k in rng.integers(0, 200, N)]
    table = [
        [f"{i + 1000}", day, "same", "", name, *row]
        for i, (day, name, row) in enumerate(zip(days, names, rows(N)))
    ]
    header = "person,visit,country,remark,surname,age,job,sex,rich"
    path.write_text(as_csv(table, header), encoding="utf-8")
    done = walk(corrdp, path)
    assert done.code == 0, done.err
    for name, reason in {
        "person": "differs in every row",
        "visit": "dates",
        "country": "same value everywhere",
        "remark": "empty in every row",
        "surname": "more different texts",
    }.items():
        assert columns(path)[name] == {"kind": "ignored"}
        assert any(name in line and reason in line for line in done.err.splitlines())


def test_row_index_without_a_name(corrdp: Command, path: Path) -> None:
    table = [[str(i), *row] for i, row in enumerate(rows(N))]
    path.write_text(as_csv(table, ",age,job,sex,rich"), encoding="utf-8")
    assert walk(corrdp, path).code == 0
    assert columns(path)["unnamed 1"] == {"kind": "ignored"}


def test_no_header(corrdp: Command, path: Path) -> None:
    table = [[*row[:1], *row] for row in rows(N)]
    path.write_text(as_csv(table, ",".join(table[0])), encoding="utf-8")
    numbers = path.with_name("numbers.csv")
    numbers.write_text("1,2,a\n3,4,b\n", encoding="utf-8")
    refused(walk(corrdp, numbers), "--names")
    names = "age,years,job,sex,rich"
    assert walk(corrdp, path, "rich", "--names", names).code == 0
    assert list(columns(path)) == names.split(",")[:-1]
    # the plan remembers the names: predict needs no option
    assert corrdp("predict", path.with_name("out"), path, "--json").data["records"] == N + 1


def test_remark_before_the_header(corrdp: Command, path: Path) -> None:
    path.write_text("| exported on Monday\n" + as_csv(rows(N)), encoding="utf-8")
    assert walk(corrdp, path, "rich", "--skip-rows", "1").code == 0


def test_remark_above_records_of_known_width(corrdp: Command, path: Path) -> None:
    body = as_csv(rows(N)).split("\n", 1)[1]
    path.write_text("|remark\n" + body, encoding="utf-8")
    done = walk(corrdp, path, "rich", "--names", "age,job,sex,rich")
    assert done.code == 0
    assert f"{N} records" in done.out
    path.write_text("|remark\n" + as_csv(rows(N)), encoding="utf-8")
    done = walk(corrdp, path, "rich", "--names", "age,job,sex,rich", "--force")
    assert f"{N} records" in done.out


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", ("is empty",)),
        ("\n\n", ("is empty",)),
        ("age,job,sex,rich\n", ("no records",)),
        ("age\n1\n2\n", ("one column", "--separator")),
        ("a,rich\n1,x\n2,x\n", ("'rich'", "same value")),
        ("a,b\n1,x\n2,y\n", ("'rich'", "'a', 'b'")),
        ("a,rich\nx,1\nx,0\n", ("no column besides",)),
        ("a,rich\n1,0\x00\n", ("hostile.csv",)),
    ],
)
def test_hopeless_files(corrdp: Command, path: Path, content: str, words: tuple[str, ...]) -> None:
    path.write_text(content, encoding="utf-8")
    refused(walk(corrdp, path), *words)


def test_one_class_trains_like_any_other_table(corrdp: Command, path: Path, plan: Path) -> None:
    table = [[*row[:3], "no"] for row in rows(N)]
    path.write_text(as_csv(table), encoding="utf-8")
    assert corrdp("fit", path, plan, "-o", path.with_name("out")).code == 0


def test_unknown_level_and_columns(corrdp: Command, path: Path, plan: Path) -> None:
    path.write_text(as_csv([*rows(N), ["30", "moon", "F", "no"]]), encoding="utf-8")
    refused(corrdp("fit", path, plan), "'job'", "'moon'", "other")
    path.write_text(as_csv(rows(N), header="age,job,gender,rich"), encoding="utf-8")
    refused(corrdp("fit", path, plan), "['sex']", "['gender']")
    path.write_text(as_csv(rows(N), header="a,b,c,d"), encoding="utf-8")
    refused(corrdp("fit", path, plan), "--names")


def test_parquet(corrdp: Command, tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    age, job, sex, rich = zip(*rows(N))
    ages = [None if i % 9 == 0 else int(a) for i, a in enumerate(age)]
    when = [datetime.date(2020, 1, 1)] * (N - 1) + [datetime.date(2021, 1, 1)]
    table = arrow.table(
        {
            "age": ages,
            "job": arrow.array(job).dictionary_encode(),
            "sex": sex,
            "when": when,
            "flag": [r == "yes" for r in rich],
            "rich": rich,
        }
    )
    data = tmp_path / "data.parquet"
    parquet.write_table(table, data)
    done = walk(corrdp, data)
    assert done.code == 0, done.err
    assert columns(data)["when"] == {"kind": "ignored"}
    assert columns(data)["flag"]["levels"] == ["False", "True"]
    assert corrdp("predict", tmp_path / "out", data, "--json").data["records"] == N


def test_broken_parquet(corrdp: Command, tmp_path: Path) -> None:
    data = tmp_path / "data.parquet"
    data.write_bytes(b"PAR1 and then nothing of the kind")
    refused(corrdp("init", data, "--label", "x", "-o", tmp_path / "p.toml"), "Parquet")


def test_a_column_name_with_an_escape_code_does_not_reach_the_terminal(
    corrdp: Command, path: Path
) -> None:
    path.write_text(as_csv(rows(N), header="\x1b[31mage,job,sex,rich"), encoding="utf-8")
    done = walk(corrdp, path)
    assert done.code == 0
    assert "\x1b" not in done.out + done.err


@pytest.mark.slow
def test_a_million_rows(corrdp: Command, path: Path, plan: Path) -> None:
    lines = as_csv(rows(10_000)).splitlines(keepends=True)
    path.write_text(lines[0] + "".join(lines[1:]) * 100, encoding="utf-8")
    text = (
        plan.read_text(encoding="utf-8").replace("1e-4", "1e-7").replace("steps = 20", "steps = 2")
    )
    plan.write_text(text, encoding="utf-8")
    done = corrdp("fit", path, plan, "-o", path.with_name("out"), "--json")
    assert done.data["records"] == 1_000_000
