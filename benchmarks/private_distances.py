"""What privately estimated distances cost: Adult, test log-loss, as a markdown table.

    python benchmarks/private_distances.py --seeds 20

Every row spends the same (ε, δ) in total; the private rows pay for the estimate out of it.
"""

from __future__ import annotations

import argparse
import warnings

from comparison import Task, interval, load, metrics, private, recipe

from corrdp import Distances
from corrdp.distance import EstimateSettings
from corrdp.erm.fit import fit_linear
from corrdp.noise import noise_source
from corrdp.privacy.budgets import PrivacyTarget
from corrdp.privacy.declaration import Declaration
from corrdp.verification import certify


def estimated(
    task: Task, epsilon: float, seed: int, settings: EstimateSettings
) -> tuple[float, float]:
    """Test log-loss and the certified loss of the sensitive columns."""
    schema = task.schema.binned() if settings.resolution == "binned" else task.schema
    target = PrivacyTarget(epsilon, task.delta)
    declaration = Declaration(schema, target, task.train.records.size, Distances({}), True)
    theta, done, ledger = fit_linear(
        declaration, recipe(task), task.train, noise_source(seed), estimate=settings
    )
    certificate = certify(ledger)
    assert certificate.holds and certificate.joint["sensitive"] <= epsilon
    score = done.encoder.transform(task.test.records).scores(theta)
    return metrics(task, score)["log-loss"], float(certificate.joint["sensitive"] or 0.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    task, seeds = load("adult", "insensitive"), range(options.seeds)
    smooth = EstimateSettings(resolution="assume-smooth")
    print("| distances | ε = .1 | ε = .5 |")
    print("|---|---|---|")
    schemas = {
        "DP (all sensitive)": (task.schema.all_sensitive(), {}),
        "d = 1": (task.schema, {}),
        "given": (task.schema, task.distances),
        "semi (insensitive public)": (task.schema.insensitive_as_public(), {}),
    }
    for name, (schema, distances) in schemas.items():
        cells = [
            interval([private(task, schema, distances, e, s)[0]["log-loss"] for s in seeds])
            for e in (0.1, 0.5)
        ]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    chosen = {
        "private, default": EstimateSettings(),
        "private, smooth": smooth,
        "private, binned": EstimateSettings(resolution="binned"),
    }
    for name, settings in chosen.items():
        cells = [interval([estimated(task, e, s, settings)[0] for s in seeds]) for e in (0.1, 0.5)]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
