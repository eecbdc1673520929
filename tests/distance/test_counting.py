"""Contingency tables against a naive count, in bounded memory, with bad codes refused."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from corrdp.distance import counting
from corrdp.distance.counting import contingency_table, contingency_tables
from corrdp.distance.private import one_row_per_person
from corrdp.errors import DataError


def naive(levels, cells, shape):
    table = np.zeros(shape, dtype=np.int64)
    for level, cell in zip(levels, cells):
        table[level, cell] += 1
    return table


@pytest.mark.parametrize("kind", ["int8", "uint8", "int32", "int64", "uint64"])
def test_equals_the_naive_count_across_chunks(monkeypatch, kind):
    monkeypatch.setattr(counting, "CHUNK", 7)
    rng = np.random.default_rng(4)
    cells = rng.integers(0, 10, 100).astype(kind)
    columns = [rng.integers(0, size, 100).astype(kind) for size in (2, 5, 100)]
    found = contingency_tables(columns, cells, [2, 5, 100], 10)
    for table, column, size in zip(found, columns, (2, 5, 100)):
        assert (table == naive(column, cells, (size, 10))).all()
        assert table.dtype == np.int64 and table.sum() == 100


def test_declared_levels_without_records_are_rows_of_zeros():
    table = contingency_table(np.array([0, 0]), np.array([1, 1]), (4, 3))
    assert table.tolist() == [[0, 2, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert contingency_table(np.array([], int), np.array([], int), (2, 2)).sum() == 0


def test_memory_does_not_grow_with_the_records():
    rng = np.random.default_rng(0)
    cells = rng.integers(0, 10, 2_000_000).astype(np.int8)
    column = rng.integers(0, 16, len(cells)).astype(np.int8)
    tracemalloc.start()
    contingency_tables([column] * 3, cells, [16] * 3, 10)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4_000_000  # a single int64 code per record would be 16 MB


@pytest.mark.parametrize("code", [-1, 3, 400])
def test_codes_outside_the_declaration_are_refused(code):
    good = np.array([0, 1, 2, 1])
    bad = np.array([0, 1, 2, code])
    with pytest.raises(DataError, match="column 0"):
        contingency_table(bad, good, (3, 3))
    with pytest.raises(DataError, match="sensitive cells"):
        contingency_table(good, bad, (3, 3))


def test_missing_values_texts_and_lengths_are_refused():
    good = np.array([0, 1])
    for bad in (np.array([0.0, np.nan]), np.array(["a", "b"]), np.array([[0, 1]]), [0, 1]):
        with pytest.raises(DataError, match="integer"):
            contingency_table(bad, good, (2, 2))
        with pytest.raises(DataError, match="integer"):
            contingency_table(good, bad, (2, 2))
    with pytest.raises(DataError, match="3 codes for 2"):
        contingency_table(np.array([0, 1, 1]), good, (2, 2))


def test_one_row_per_person_is_the_first_one():
    persons = np.array(["b", "a", "b", "c", "a"])
    assert one_row_per_person(persons).tolist() == [0, 1, 3]
    with pytest.raises(DataError, match="missing"):
        one_row_per_person(np.array([1.0, np.nan]))
    with pytest.raises(DataError, match="identifier"):
        one_row_per_person(np.array([]))
