"""What a release of queries gives back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from corrdp.privacy.certificate import Certificate
from corrdp.privacy.ledger import Ledger
from corrdp.queries.query import Query

__all__ = ["QueryResult", "QueryResults"]


@dataclass(frozen=True, eq=False)
class QueryResult:
    """The answer to one query.

    Attributes
    ----------
    query : Query
    value : float or array
        In the column's own unit. Unbiased for the table's exact answer up to the rounding of
        numbers to the public lattice; counts and variances may be negative or broken.
    standard_error : float or array of the same shape
        Standard deviation of the noise: the distance to this table's exact answer, not to that of
        a population.
    levels : tuple of tuples of str
        Names along every axis of ``value``.
    """

    query: Query
    value: Any
    standard_error: Any
    levels: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, repr=False)
class QueryResults(Mapping[str, QueryResult]):
    """Answers by name, with the certificate of the release they share.

    ``certificate.ledger`` holds everything that was released.
    """

    results: Mapping[str, QueryResult]
    certificate: Certificate

    def __post_init__(self) -> None:
        object.__setattr__(self, "results", MappingProxyType(dict(self.results)))

    def __getitem__(self, name: str) -> QueryResult:
        return self.results[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    @property
    def ledger(self) -> Ledger:
        """What was fixed and what was released."""
        return self.certificate.ledger

    def __repr__(self) -> str:
        rows = [f"  {name}: {_short(one.value, one.standard_error)}" for name, one in self.items()]
        return "\n".join([f"QueryResults({self.certificate!r})", *rows])


def _short(value: Any, error: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g} ± {error:.2g}"
    return f"array of shape {value.shape}, ± up to {error.max():.2g}"
