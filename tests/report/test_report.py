"""The report says all that the certificate says, nothing about records, and stays inert."""

from __future__ import annotations

import json
import math
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corrdp import (
    Categorical,
    CorrDPLogisticRegression,
    Distance,
    Distances,
    Label,
    Numeric,
    Schema,
)
from corrdp.errors import ConfigurationError, MissingExtraError
from corrdp.report import report_html, summarise, write_report
from corrdp.report.names import listed, visible
from corrdp.report.summary import best_guess, percent

HOSTILE = (
    "<script>alert(1)</script>",
    "\"quoted' & <b>bold</b>",
    "two\nlines\tand tab",
    "\u202eevil\u2066",
    "עברית",
    "x" * 3000,
    "{{ 7 * 7 }}{% raw %}",
    "a|b `code` [link](javascript:alert(1)) | *",
)


def table(n: int = 400) -> tuple[dict[str, Any], np.ndarray]:
    rng = np.random.default_rng(5)
    return (
        {
            "age": 20.0 + 50.0 * rng.random(n),
            "city": rng.choice(["Aa", "Bb"], n),
            "smoker": rng.choice(["yes", "no"], n),
            "region": rng.choice(["N", "S"], n),
        },
        rng.integers(0, 2, n),
    )


def schema(**roles: Any) -> Schema:
    return Schema(
        {
            "age": Numeric(18, 90, role="insensitive"),
            "city": Categorical(["Aa", "Bb"], role=roles.get("city", "insensitive")),
            "smoker": Categorical(["yes", "no"]),
            "region": Categorical(["N", "S"], role="public"),
        },
        Label("ill", [0, 1], role=roles.get("label", "insensitive")),
    )


DISTANCES = Distances(
    {"age": Distance(0.3, "public", low=0.12345, high=0.2987), "ill": Distance(0.25)}, gamma=0.05
)


def fitted(shape: Schema, X: Any, y: Any, **parameters: Any) -> Any:
    settings = {"epsilon": 4.0, "delta": 1e-5, "steps": 3, "distances": DISTANCES, **parameters}
    return CorrDPLogisticRegression(shape, **settings).fit(X, y).certificate_


@pytest.fixture(scope="module")
def certificate() -> Any:
    X, y = table()
    return fitted(schema(), X, y)


class Page(HTMLParser):
    """Text, tags, and the exact numbers of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text, self.tags, self.numbers, self.attributes = "", [], [], []
        self.names: list[str] = []
        self._name: str | None = None
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag == "data":
            self.numbers.append(float(dict(attrs)["value"]))
        if tag == "bdi":
            self._name = ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "bdi" and self._name is not None:
            self.names.append(self._name)
            self._name = None

    def handle_data(self, data: str) -> None:
        self.text += "" if self.tags[-1:] == ["style"] else data
        if self._name is not None:
            self._name += data


def numbers_of(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [n for item in value.values() for n in numbers_of(item)]
    if isinstance(value, (list, tuple)):
        return [n for item in value for n in numbers_of(item)]
    if value == "inf":
        return [math.inf]
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return [float(value)] if number else []


def test_page_holds_every_column_and_number_of_the_certificate(certificate: Any) -> None:
    page = Page(report_html(summarise(certificate)))
    claims = certificate.claims()
    numbers = numbers_of(claims)
    assert len(numbers) > 25 and math.inf in numbers
    assert set(numbers) <= set(page.numbers)
    assert {column["name"] for column in claims["columns"]} <= set(page.names)
    for sentence in claims["assumptions"]:
        assert sentence in page.text
    assert certificate.to_dict()["digest"] in page.text


def test_page_holds_no_data_value(certificate: Any) -> None:
    X, _ = table()
    html = report_html(summarise(certificate))
    shown = [f"{value:.6g}"[:6] for value in X["age"]]
    assert len(set(shown)) > 300
    assert not [value for value in shown if value in html]


def test_page_needs_neither_network_nor_script(certificate: Any) -> None:
    page = Page(report_html(summarise(certificate, metrics={"accuracy": 0.5})))
    assert not {"script", "link", "img", "iframe", "object"} & set(page.tags)
    urls = [v for k, v in page.attributes if k in ("src", "href", "action")]
    assert urls == [] and page.tags.count("svg") == 3
    assert not [k for k, _ in page.attributes if k.startswith("on")]


def test_first_screen_says_what_how_strongly_and_what_not(certificate: Any) -> None:
    page = Page(report_html(summarise(certificate)))
    first = page.text[: page.text.index("Column by column")]
    holds = certificate.joint["sensitive"]
    assert "smoker" in first and percent(best_guess(holds, 1e-5)) in first
    assert "What is not" in first and "Public columns (region) are not protected" in first


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_and_levels_are_shown_and_inert(name: str, certificate: Any) -> None:
    X, y = table()
    level = name.strip()
    shape = Schema(
        {
            name: Numeric(18, 90, role="insensitive"),
            "city": Categorical([level, "b"], role="insensitive"),
            "s": Categorical(["yes", "no"]),
        },
        Label("y" + name, [0, 1], role="insensitive"),
    )
    city = np.where(X["city"] == "Aa", level, "b")
    found = fitted(shape, {name: X["age"], "city": city, "s": X["smoker"]}, y, distances=None)
    html = report_html(summarise(found, comparison=[_point(name)]))
    page = Page(html)
    harmless = Page(report_html(summarise(certificate, comparison=[_point("m")])))
    assert set(page.tags) <= set(harmless.tags)
    assert visible(name) in page.names and visible("y" + name) in page.names
    assert visible(level) in page.names
    assert "\u202e" not in html and "<script" not in html
    fragment = Page(found._repr_html_())
    assert set(fragment.tags) == {"div", "p", "table", "thead", "tbody", "tr", "th", "td", "bdi"}
    assert visible(name) in fragment.text


def _point(method: str) -> dict[str, Any]:
    return {"method": method, "epsilon": 1.0, "accuracy": 0.8}


def test_markdown_has_a_row_for_each_column_and_escapes_names(certificate: Any) -> None:
    lines = certificate.to_markdown().splitlines()
    rows = [line for line in lines if line.startswith("| ")]
    assert len(rows) == 2 + len(certificate.columns) + 3
    X, y = table()
    shape = Schema(
        {HOSTILE[7]: Numeric(18, 90), "s": Categorical(["yes", "no"])}, Label("y", [0, 1])
    )
    found = fitted(shape, {HOSTILE[7]: X["age"], "s": X["smoker"]}, y, distances=None)
    row = next(line for line in found.to_markdown().splitlines() if line.startswith("| a"))
    assert len(re.findall(r"(?<!\\)\|", row)) == 8
    assert r"\[link\]" in row and r"\`code\`" in row


def test_a_seeded_run_and_a_broken_one_say_so_first() -> None:
    X, y = table()
    seeded = fitted(schema(), X, y, random_state=1)
    assert summarise(seeded)["state"] == "not private"
    assert "Not private" in Page(report_html(summarise(seeded))).text[:400]
    assert "NOT PRIVATE" in seeded.to_markdown()[:40]
    from dataclasses import replace

    broken = replace(seeded, holds=False, problems=("step 3 exceeds its budget",))
    text = Page(report_html(summarise(broken))).text
    assert "does not hold" in text and "step 3 exceeds its budget" in text


def test_edges_follow_the_run() -> None:
    X, y = table()
    zero = fitted(schema(), X, y, distances={"age": 0.0, "city": 0.0, "ill": 0.0})
    free = fitted(schema(label="public"), X, y, distances={"age": 0.0, "city": 0.0})
    titles = {edge["title"] for edge in summarise(zero)["edges"]}
    assert {"Columns at distance 0", "Columns do not add up"} <= titles
    assert "The label is sensitive" not in titles
    assert any("no protection" in text for text in summarise(free)["unprotected"])
    other = summarise(fitted(schema(label="sensitive", city="sensitive"), X, y, distances=None))
    titles = {edge["title"] for edge in other["edges"]}
    assert "The label is sensitive" in titles and "Columns do not add up" not in titles


def test_ordinary_privacy_is_not_said_to_be_weaker_for_the_whole_record() -> None:
    found = fitted(schema().all_sensitive(), *table(), distances=None)
    summary = summarise(found)
    assert any("just as well" in text for text in summary["protected"])
    assert not any("Several columns" in text for text in summary["unprotected"])


def test_queries_predict_nothing() -> None:
    from corrdp.queries import Mean, release

    X, y = table()
    found = release(
        X,
        schema(),
        [Mean("age")],
        epsilon=1.0,
        mechanism="laplace",
        distances={"age": 0.5},
        label=y,
    ).certificate
    summary = summarise(found)
    assert summary["trained"]["releases"] == ["answers to queries"]
    text = Page(report_html(summary)).text
    assert "predicting" not in text and "Answers to queries" in text and summary["noise"] == []


def test_write_report_is_one_file_and_refuses_bad_points(certificate: Any, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    points = [_point("a"), {**_point("b"), "epsilon": math.inf}]
    write_report(certificate, out, comparison=points)
    assert out.read_text(encoding="utf-8").count("<svg") == 4
    for bad in (
        {"method": "a"},
        {**_point("a"), "epsilon": -1.0},
        {**_point("a"), "accuracy": "x"},
    ):
        with pytest.raises(ConfigurationError, match="comparison"):
            write_report(certificate, tmp_path / "other.html", comparison=[bad])
    assert not (tmp_path / "other.html").exists()


def test_missing_jinja_names_the_extra(certificate: Any, monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=r"corrdp\[report\]"):
        write_report(certificate, tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()
    assert "smoker" in certificate._repr_html_()


def test_summary_is_plain_and_combination_lists_its_parts(certificate: Any) -> None:
    from corrdp import Certificate

    both = summarise(Certificate.combine(certificate, certificate))
    assert len(both["trained"]["releases"]) == 2
    assert json.dumps(both["claims"], allow_nan=False)


def test_guess_and_words() -> None:
    # two equally likely values: ε = ln 3 lets one be guessed with probability 3/4
    assert best_guess(math.log(3), 0.0) == pytest.approx(0.75)
    assert percent(0.7401) == "75\u00a0%" and percent(1.0) == "100\u00a0%"
    assert percent(0.99995) == "almost 100\u00a0%"
    assert listed([str(i) for i in range(9)]) == "0, 1, 2, 3, 4 and 4 more"
