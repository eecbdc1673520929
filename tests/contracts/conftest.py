"""Runs every contract once per estimator."""

from __future__ import annotations

import pytest

from tests.contracts.cases import CASES, Case


@pytest.fixture(params=CASES.values(), ids=CASES.keys())
def case(request: pytest.FixtureRequest) -> Case:
    """One estimator with its schema and data."""
    return request.param  # type: ignore[no-any-return]
