"""Attacks on single training steps of a neural network (THEORY T12, T13)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from corrdp.allocation import allocate
from corrdp.audit.pairs import Columns, worst_pair
from corrdp.audit.run import Attack, Claim
from corrdp.audit.steps import StepDraw
from corrdp.errors import ConfigurationError
from corrdp.nn.account import decode_single, read_setup
from corrdp.nn.gradients import Chunk, Inputs, gradient_sum
from corrdp.nn.query import GradientQuery
from corrdp.privacy import gdp
from corrdp.privacy.certificate import Certificate
from corrdp.privacy.estimate import declaration_of
from corrdp.records import read_records

__all__ = ["network_attacks"]

FloatArray: TypeAlias = NDArray[np.float64]
EFFORT, POPULATION = 20, 120


def network_attacks(
    certificate: Certificate,
    *,
    kinds: Sequence[str] | None = None,
    population: int = POPULATION,
) -> list[Attack]:
    """The first and the last step of a certificate's network, for every kind with a budget.

    Parameters
    ----------
    certificate : Certificate
    kinds : sequence of str, optional
        Only these kinds.
    population : int
        Pairs tried in each round of the search for the worst pair.

    Raises
    ------
    ConfigurationError
        If the certificate has no full-batch network with optimal calibration.
    """
    ledger = certificate.ledger
    entries, releases = ledger.of_type("network-budget"), ledger.of_type("network-release")
    setup = read_setup(entries[0]) if entries else None
    plain = setup is not None and setup.base is None and setup.sampling is None
    if setup is None or not releases or not plain:
        raise ConfigurationError(
            "the certificate holds no full-batch run of a network with optimal calibration; audit "
            "this one with corrdp.audit.audit(fit, pairs, claims)"
        )
    declaration = declaration_of(ledger)
    table = setup.table(declaration)
    budget = np.array([one.mu_squared for one in declaration.budgets()]) / setup.plan.steps
    iterates = decode_single(releases[0]["iterates"])
    attacks = []
    for name, parameters in (("first step", iterates[0]), ("last step", iterates[-2])):
        network = table.query.network
        sigma = allocate(table(parameters), budget, network.dimensions).sigma
        embed = _Embedding(table.query, parameters, network.spread(sigma))
        for kind, limit in zip(declaration.kinds, budget.tolist(), strict=True):
            if math.isinf(limit) or (kinds is not None and kind.name not in kinds):
                continue
            pair = worst_pair(declaration.schema, kind, embed, population=population)
            sums = embed.contributions(pair.columns, pair.label)
            draw = StepDraw(sums, embed.noise, _spacing(table.query))
            mu = math.sqrt(limit)
            claim = Claim(float(gdp.epsilon(mu, certificate.delta)), certificate.delta, mu)
            reach = pair.mu_squared / limit
            attacks.append(Attack(name, kind.name, claim, draw, reach, EFFORT))
    return attacks


def _spacing(query: GradientQuery) -> float:
    if query.lattice is None:
        raise ConfigurationError("a private network has a lattice")
    return query.lattice.spacing


@dataclass(frozen=True)
class _Embedding:
    """Clipped, rounded contributions of single records at one point, in units of the noise."""

    query: GradientQuery
    parameters: FloatArray
    noise: FloatArray

    def contributions(self, columns: Columns, label: FloatArray) -> FloatArray:
        """Of every record, shape (records, parameters)."""
        network = self.query.network
        design = network.encoder.transform(read_records(columns, network.encoder.schema))
        single = Inputs.of(design, network, chunk=1)
        return np.array(
            [
                gradient_sum(self.query, self.parameters, _alone(chunk), label[i : i + 1])
                for i, chunk in enumerate(single.chunks)
            ]
        )

    def __call__(self, columns: Columns, label: FloatArray) -> FloatArray:
        own = self.contributions(columns, label)
        return np.divide(own, self.noise, out=np.zeros_like(own), where=self.noise > 0)


def _alone(chunk: Chunk) -> Inputs:
    """A table of one record."""
    return Inputs(1, (Chunk(slice(0, 1), chunk.hidden, chunk.skip),))
