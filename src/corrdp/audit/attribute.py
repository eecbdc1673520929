"""How much a model tells about one person's sensitive value, beyond what its columns tell.

Two measurements, both for an attacker who knows everything but what is to be guessed:

* :func:`infer_attribute` — the attacker guesses s from the output and the record's other values.
  Success cannot beat the prior P(s|u) by more than (1 − prior)·τ(ε_S, δ).
* :func:`belief_shift_lower_bound` — the mechanism's direct use of s is held fixed and s is
  guessed through column i alone: belief moves by at most d_i·τ(ε_i, δ) (THEORY T3).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corrdp.audit.bounds import lower_limit
from corrdp.errors import ConfigurationError
from corrdp.privacy import gdp

__all__ = ["AttributeInference", "belief_shift_lower_bound", "infer_attribute"]

FloatArray: TypeAlias = NDArray[np.float64]
# (position of the true value, seed) → log likelihood of every possible value, up to a constant
LogLikelihood: TypeAlias = Callable[[int, int | None], ArrayLike]


@dataclass(frozen=True)
class AttributeInference:
    """Result of :func:`infer_attribute`.

    Attributes
    ----------
    success : float
        Share of right guesses.
    prior : float
        Share of right guesses without the output: the largest prior probability.
    advantage : float
        (success − prior)/(1 − prior): 0 for no help, 1 for certainty.
    lower_limit : float
        Lower confidence limit of the advantage, 0 if the output helped nothing.
    bound : float
        τ(ε_S, δ), which the advantage cannot exceed when the claim is true.
    trials : int
    confidence : float
    """

    success: float
    prior: float
    advantage: float
    lower_limit: float
    bound: float
    trials: int
    confidence: float

    @property
    def violated(self) -> bool:
        """Whether the attack did better than the claim allows."""
        return self.lower_limit > self.bound


def infer_attribute(
    attack: LogLikelihood,
    prior: Sequence[float],
    epsilon: float,
    delta: float,
    *,
    trials: int = 1000,
    confidence: float = 0.95,
    random_state: int | None = None,
) -> AttributeInference:
    """Guess a record's sensitive value from a model trained with it.

    Parameters
    ----------
    attack : callable
        ``attack(truth, seed)`` trains with the record's sensitive value set to the one at
        position ``truth`` and returns the attacker's log likelihood of every value.
    prior : sequence of float
        P(s | the record's other values), positive, adding up to one.
    epsilon, delta : float
        The claim for the sensitive columns; ``epsilon`` may be ``inf``.
    trials : int
        In each of which the value is drawn from the prior.
    confidence : float
    random_state : int, optional

    Raises
    ------
    ConfigurationError
        The prior is no distribution, or a parameter is out of range.
    """
    chances = _distribution("prior", prior)
    best = float(chances.max())
    if not best < 1:
        raise ConfigurationError(f"prior={prior!r} leaves nothing to guess")
    truths = _draws(chances, trials, random_state)
    hits = 0
    for trial, truth in enumerate(truths.tolist()):
        likelihood = np.asarray(attack(truth, _trial_seed(random_state, trial)), dtype=np.float64)
        if likelihood.shape != chances.shape or np.isnan(likelihood).any():
            raise ConfigurationError(f"the attack must return {len(chances)} numbers, none NaN")
        with np.errstate(divide="ignore"):
            hits += int(np.argmax(likelihood + np.log(chances)) == truth)
    limit = float(lower_limit(hits, trials, 1.0 - confidence))
    return AttributeInference(
        success=hits / trials,
        prior=best,
        advantage=(hits / trials - best) / (1.0 - best),
        lower_limit=max(0.0, (limit - best) / (1.0 - best)),
        bound=float(gdp.tau(epsilon, delta)),
        trials=trials,
        confidence=confidence,
    )


def belief_shift_lower_bound(
    attack: LogLikelihood,
    column_prior: Sequence[float],
    sensitive_given_column: ArrayLike,
    *,
    trials: int = 1000,
    confidence: float = 0.95,
    random_state: int | None = None,
) -> float:
    """How far an output moves the belief over s through one column, with confidence from below.

    The observer knows nothing about the person; the mechanism's own use of s is held fixed. The
    mean over outputs of TV(P(s | output), P(s)) is at most d_i·τ(ε_i, δ) (THEORY T3).

    Parameters
    ----------
    attack : callable
        ``attack(value, seed)`` runs the mechanism with the column's value at position ``value``
        and returns the log likelihood of every value of the column.
    column_prior : sequence of float
        P(u).
    sensitive_given_column : array of shape (values of u, values of s)
        P(s | u), rows adding up to one.
    trials, confidence, random_state
        As for :func:`infer_attribute`.

    Returns
    -------
    float
        Mean shift less its Hoeffding margin √(ln(1/(1 − confidence))/(2·trials)), at least 0.
    """
    chances = _distribution("column_prior", column_prior)
    channel = np.asarray(sensitive_given_column, dtype=np.float64)
    for row in channel:
        _distribution("sensitive_given_column", row)
    if len(channel) != len(chances):
        raise ConfigurationError(
            f"sensitive_given_column has {len(channel)} rows for {len(chances)} values"
        )
    before = chances @ channel
    total = 0.0
    for trial, value in enumerate(_draws(chances, trials, random_state).tolist()):
        likelihood = np.asarray(attack(value, _trial_seed(random_state, trial)), dtype=np.float64)
        weight = chances * np.exp(likelihood - likelihood.max())
        total += 0.5 * float(np.abs(weight @ channel / weight.sum() - before).sum())
    margin = math.sqrt(math.log(1.0 / (1.0 - confidence)) / (2.0 * trials))
    return max(0.0, total / trials - margin)


def _distribution(name: str, values: ArrayLike) -> FloatArray:
    chances = np.asarray(values, dtype=np.float64)
    sums_to_one = chances.ndim == 1 and len(chances) >= 2 and abs(chances.sum() - 1.0) < 1e-9
    if not sums_to_one or not (chances >= 0).all():
        raise ConfigurationError(f"{name}={values!r} must be two or more probabilities, sum one")
    return chances


def _draws(chances: FloatArray, trials: int, random_state: int | None) -> NDArray[np.int64]:
    from corrdp.noise import noise_source

    if isinstance(trials, bool) or not isinstance(trials, int) or trials < 1:
        raise ConfigurationError(f"trials={trials!r} must be a whole number >= 1")
    uniform = noise_source(random_state).child("truth").uniform(trials)
    drawn = np.searchsorted(np.cumsum(chances)[:-1], uniform, side="right")
    return np.asarray(drawn, dtype=np.int64)


def _trial_seed(random_state: int | None, trial: int) -> int | None:
    return None if random_state is None else (random_state << 32) + trial + 1
