"""Run attacks on neighbouring tables many times and compare what they find with the claim."""

from __future__ import annotations

import hashlib
import math
import textwrap
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from corrdp.audit.bounds import epsilon_lower_bound, mu_lower_bound
from corrdp.errors import ConfigurationError

__all__ = ["Attack", "AuditReport", "Claim", "Finding", "audit", "run_attacks"]

FloatArray: TypeAlias = NDArray[np.float64]
Draw: TypeAlias = Callable[[int, int, int | None], FloatArray]
Verdict: TypeAlias = Literal["consistent", "violated", "out of reach", "no claim"]
CHUNK = 50


@dataclass(frozen=True)
class Claim:
    """What is claimed for a kind of change.

    Attributes
    ----------
    epsilon, delta : float
        The claimed (ε, δ); ``epsilon`` may be ``inf``.
    mu : float, optional
        The claimed μ of Gaussian DP; it is what is tested where it is given.
    """

    epsilon: float
    delta: float
    mu: float | None = None

    def __post_init__(self) -> None:
        if not (self.epsilon >= 0 and 0 <= self.delta < 1):
            raise ConfigurationError(f"claim ({self.epsilon!r}, {self.delta!r}) is not a loss")
        if self.mu is not None and not self.mu >= 0:
            raise ConfigurationError(f"mu={self.mu!r} must be a number >= 0")

    @property
    def value(self) -> float:
        """The number that a lower bound is compared with."""
        return self.epsilon if self.mu is None else self.mu

    def lower_bound(self, a: FloatArray, b: FloatArray, confidence: float) -> float:
        """Lower confidence bound in the claim's own measure."""
        if self.mu is None:
            return epsilon_lower_bound(a, b, self.delta, confidence)
        return mu_lower_bound(a, b, confidence)


@dataclass(frozen=True)
class Attack:
    """Two neighbouring tables, a mechanism and what an attacker computes from its output.

    Attributes
    ----------
    name : str
        What is attacked, for the table.
    kind : str
        Neighbour kind that the two tables differ by.
    claim : Claim
    draw : callable
        ``draw(side, count, seed)`` runs the mechanism ``count`` times on table 0 or 1 and returns
        the attacker's statistics, shape (count, statistics). Every call gets another seed; None
        asks for operating-system entropy.
    reach : float, optional
        Share of the claimed μ² that this pair can use; 1 where the pair attains the bound.
    effort : int
        Runs for every run that is asked for; more than 1 for mechanisms that cost little.
    """

    name: str
    kind: str
    claim: Claim
    draw: Draw
    reach: float | None = None
    effort: int = 1


@dataclass(frozen=True)
class Finding:
    """One row of an audit: claim, lower bound, verdict.

    Attributes
    ----------
    attack, kind : str
    measure : {"epsilon", "mu"}
    claimed, lower_bound : float
        In that measure.
    delta : float
    runs : int
        On either side.
    reach : float or None
        Share of the claimed μ² that the pair can use.
    verdict : {"consistent", "violated", "out of reach", "no claim"}
        ``"out of reach"``: so many runs could not have shown a loss above the claim.
    """

    attack: str
    kind: str
    measure: Literal["epsilon", "mu"]
    claimed: float
    lower_bound: float
    delta: float
    runs: int
    reach: float | None
    verdict: Verdict


@dataclass(frozen=True)
class AuditReport:
    """Findings of an audit; ``str()`` is a table.

    Attributes
    ----------
    findings : tuple of Finding
    confidence : float
        For all rows together: each is tested at 1 − (1 − confidence)/rows.
    complete : bool
        False when the time limit came first.
    """

    findings: tuple[Finding, ...]
    confidence: float
    complete: bool

    @property
    def violated(self) -> tuple[Finding, ...]:
        """Rows whose lower bound exceeds the claim."""
        return tuple(one for one in self.findings if one.verdict == "violated")

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; infinity is ``"inf"``."""
        rows = []
        for one in self.findings:
            row = dict(vars(one))
            row["claimed"] = "inf" if math.isinf(one.claimed) else one.claimed
            rows.append(row)
        return {"confidence": self.confidence, "complete": self.complete, "findings": rows}

    def __str__(self) -> str:
        from corrdp.report.summarise import format_loss, text_table

        header = ["attack", "kind", "measure", "claim", "lower bound", "runs", "verdict"]
        rows = [
            [
                one.attack,
                one.kind,
                "μ" if one.measure == "mu" else f"ε at δ={one.delta:g}",
                format_loss(one.claimed),
                f"{one.lower_bound:.3g}",
                str(one.runs),
                one.verdict.upper() if one.verdict == "violated" else one.verdict,
            ]
            for one in self.findings
        ]
        foot = (
            f"Each lower bound holds with {self.confidence:.0%} confidence for all rows together. "
            "An audit can refute a claim, it cannot prove one."
        )
        if not self.complete:
            foot += " The time limit came first: fewer runs than asked for."
        return text_table(header, rows) + "\n\n" + textwrap.fill(foot, 80)


def run_attacks(
    attacks: Sequence[Attack],
    *,
    runs: int = 1000,
    confidence: float = 0.95,
    time_limit: float | None = None,
    n_jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
    random_state: int | None = None,
) -> AuditReport:
    """Run every attack and say which claims do not survive.

    Parameters
    ----------
    attacks : sequence of Attack
    runs : int
        On either side of every attack, at least 4.
    confidence : float
        For all attacks together.
    time_limit : float, optional
        Seconds after which no new runs start; what was run so far is judged.
    n_jobs : int
        Processes (joblib); -1 takes all cores.
    progress : callable, optional
        Called as ``progress(done, total)`` in chunks.
    random_state : int, optional
        For reproducible audits; None draws from the operating system.

    Raises
    ------
    ConfigurationError
        Nothing to run, or a parameter out of range.
    """
    if not attacks:
        raise ConfigurationError("there is nothing to audit: no kind has a finite claim to test")
    if isinstance(runs, bool) or not isinstance(runs, int) or runs < 4:
        raise ConfigurationError(f"runs={runs!r} must be a whole number >= 4")
    if not 0 < confidence < 1:
        raise ConfigurationError(f"confidence={confidence!r} must lie strictly between 0 and 1")
    outputs, complete = _collect(attacks, runs, time_limit, n_jobs, progress, random_state)
    single = 1.0 - (1.0 - confidence) / len(attacks)
    findings = [
        _finding(attack, *pair, single) for attack, pair in zip(attacks, outputs, strict=True)
    ]
    return AuditReport(tuple(findings), confidence, complete)


def _collect(
    attacks: Sequence[Attack],
    runs: int,
    time_limit: float | None,
    n_jobs: int,
    progress: Callable[[int, int], None] | None,
    random_state: int | None,
) -> tuple[list[tuple[FloatArray, FloatArray]], bool]:
    """Outputs of both sides of every attack, in chunks that visit all attacks in turn."""
    deadline = math.inf if time_limit is None else time.monotonic() + time_limit
    parts: list[tuple[list[FloatArray], list[FloatArray]]] = [([], []) for _ in attacks]
    counts = [CHUNK] * (runs // CHUNK) + ([runs % CHUNK] if runs % CHUNK else [])
    done, complete = 0, True
    with Parallel(n_jobs=n_jobs) as parallel:
        for round_, count in enumerate(counts):
            # the clock alone decides when to stop, never an output
            if round_ > 0 and time.monotonic() > deadline:
                complete = False
                break
            jobs = [
                delayed(attack.draw)(
                    side, count * attack.effort, _seed(random_state, round_, i, side)
                )
                for i, attack in enumerate(attacks)
                for side in (0, 1)
            ]
            results = parallel(jobs)
            for position, result in enumerate(results):
                parts[position // 2][position % 2].append(_matrix(result))
            done += 2 * count * len(attacks)
            if progress is not None:
                progress(done, 2 * runs * len(attacks))
    return [(np.vstack(a), np.vstack(b)) for a, b in parts], complete


def _seed(random_state: int | None, *position: int) -> int | None:
    """A different whole number for every chunk."""
    if random_state is None:
        return None
    words = hashlib.sha256(repr((random_state, *position)).encode()).digest()
    return int.from_bytes(words[:7], "big")


def _matrix(result: FloatArray) -> FloatArray:
    array = np.asarray(result, dtype=np.float64)
    return array[:, None] if array.ndim == 1 else array


def _finding(attack: Attack, a: FloatArray, b: FloatArray, confidence: float) -> Finding:
    claim = attack.claim
    found = claim.lower_bound(a, b, confidence)
    runs = min(len(a), len(b))
    verdict: Verdict = "consistent"
    if math.isinf(claim.value):
        verdict = "no claim"
    elif found > claim.value:
        verdict = "violated"
    elif claim.lower_bound(np.zeros(runs), np.ones(runs), confidence) <= claim.value:
        verdict = "out of reach"
    return Finding(
        attack.name,
        attack.kind,
        "epsilon" if claim.mu is None else "mu",
        claim.value,
        found,
        claim.delta,
        runs,
        attack.reach,
        verdict,
    )


def audit(
    fit: Callable[[Any, int | None], Any],
    pairs: Sequence[tuple[str, Any, Any]],
    claims: Sequence[Claim],
    *,
    runs: int = 1000,
    confidence: float = 0.95,
    time_limit: float | None = None,
    n_jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
    random_state: int | None = None,
) -> AuditReport:
    """Audit any function of a table: a query, an estimator's fit, a pipeline.

    Parameters
    ----------
    fit : callable
        ``fit(table, seed)`` runs the mechanism once and returns numbers (a scalar or an array),
        the same number of them in every run.
    pairs : sequence of (kind, table, neighbouring table)
        For every kind the pair that the mechanism tells apart best.
    claims : sequence of Claim
        One for each pair.
    runs, confidence, time_limit, n_jobs, progress, random_state
        As for :func:`run_attacks`.

    Examples
    --------
    >>> import numpy as np
    >>> def noisy_count(table, seed):
    ...     return len(table) + np.random.default_rng(seed).normal(scale=2.0)
    >>> report = audit(
    ...     noisy_count,
    ...     [("<record>", [1] * 10, [1] * 9)],
    ...     [Claim(5.0, 1e-6, mu=0.25)],
    ...     runs=2000,
    ...     random_state=1,
    ... )
    >>> report.findings[0].verdict
    'violated'
    """
    if len(pairs) != len(claims):
        raise ConfigurationError(f"{len(pairs)} pairs but {len(claims)} claims: pass one for each")
    attacks = [
        Attack("fit", kind, claim, _Repeated(fit, (one, other)))
        for (kind, one, other), claim in zip(pairs, claims, strict=True)
    ]
    return run_attacks(
        attacks,
        runs=runs,
        confidence=confidence,
        time_limit=time_limit,
        n_jobs=n_jobs,
        progress=progress,
        random_state=random_state,
    )


@dataclass(frozen=True)
class _Repeated:
    """``draw`` of a function that runs once (a class, so that processes can share it)."""

    fit: Callable[[Any, int | None], Any]
    tables: tuple[Any, Any]

    def __call__(self, side: int, count: int, seed: int | None) -> FloatArray:
        seeds = [None if seed is None else seed + i for i in range(count)]
        table = self.tables[side]
        return np.array([np.ravel(self.fit(table, s)) for s in seeds], dtype=np.float64)
