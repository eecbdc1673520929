"""The ways to train that are compared: CorrDP in its variants, and honest baselines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from corrdp.erm.published import Calibration
from corrdp.errors import ConfigurationError
from corrdp.schema import Schema

__all__ = ["METHODS", "Method", "method_named"]

Protection: TypeAlias = Literal["own", "all sensitive", "semi", "dropped"]
Distances: TypeAlias = Literal["none", "given", "published", "private"]


@dataclass(frozen=True)
class Method:
    """One row of every table.

    Attributes
    ----------
    name : str
    protection : {"own", "all sensitive", "semi", "dropped"}
        What becomes of the task's schema.
    distances : {"none", "given", "published", "private"}
    calibration : {"optimal", "published"}
    private : bool
        False: trained without noise, at ε = ∞.
    meaning : str
        One line for the reader of a table.
    """

    name: str
    protection: Protection
    distances: Distances
    calibration: Calibration
    private: bool
    meaning: str

    def __post_init__(self) -> None:
        for value, allowed in ((self.protection, Protection), (self.distances, Distances)):
            if value not in get_args(allowed):
                raise ConfigurationError(
                    f"{value!r} of {self.name!r} is not in {get_args(allowed)}"
                )

    @property
    def blind(self) -> bool:
        """Whether the roles of label and insensitive columns make no difference to it."""
        return self.protection == "all sensitive" or not self.private

    def schema(self, own: Schema) -> Schema:
        """The schema that the method declares."""
        if self.protection == "all sensitive":
            return own.all_sensitive()
        if self.protection == "semi":
            return own.insensitive_as_public()
        return own.drop_sensitive() if self.protection == "dropped" else own


METHODS = (
    Method(
        "non-private", "own", "none", "optimal", False,
        "no noise; classes with a penalty of 1e-6, which keeps rare levels finite",
    ),
    Method(
        "partial", "dropped", "none", "optimal", False,
        "sensitive columns left out, no noise: protects nobody, the other columns still tell",
    ),
    Method(
        "DP", "all sensitive", "none", "optimal", True,
        "every column and the label sensitive: ordinary DP, least noise",
    ),
    Method(
        "DP, one scale",
        "all sensitive",
        "none",
        "published",
        True,
        "ordinary DP with the same noise on every coordinate: the paper's DP",
    ),
    Method(
        "semi", "semi", "none", "optimal", True,
        "everything that is not sensitive is public: unprotected",
    ),
    Method(
        "d = 1 per column", "own", "none", "optimal", True,
        "what protecting column by column gives without any distance",
    ),
    Method(
        "CorrDP given", "own", "given", "optimal", True,
        "stated distances, least noise",
    ),
    Method(
        "CorrDP UCB", "own", "published", "optimal", True,
        "upper confidence bounds straight from the records (not accounted), least noise",
    ),
    Method(
        "CorrDP private", "own", "private", "optimal", True,
        "distances released under the same ε, least noise",
    ),
    Method(
        "published, given", "own", "given", "published", True,
        "the paper's fixed noise by distance, stated distances",
    ),
    Method(
        "published, UCB", "own", "published", "published", True,
        "the paper's fixed noise by distance, upper confidence bounds (not accounted)",
    ),
)  # fmt: skip


def method_named(name: str) -> Method:
    """A method of the table."""
    return next(method for method in METHODS if method.name == name)
