"""Counts, sums, means, histograms and moments under correlation-aware privacy (THEORY T5, T11)."""

from __future__ import annotations

from corrdp.queries.moments import SecondMoments
from corrdp.queries.query import (
    ContingencyTable,
    Count,
    Covariance,
    Histogram,
    Mean,
    Query,
    Sum,
    Variance,
)
from corrdp.queries.release import release
from corrdp.queries.results import QueryResult, QueryResults

__all__ = [
    "ContingencyTable",
    "Count",
    "Covariance",
    "Histogram",
    "Mean",
    "Query",
    "QueryResult",
    "QueryResults",
    "SecondMoments",
    "Sum",
    "Variance",
    "release",
]
