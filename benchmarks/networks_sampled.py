"""Networks on full batches against Poisson-sampled ones, on Adult at equal ε, as a Markdown table.

    CORRDP_DATA_HOME=... python benchmarks/networks_sampled.py [--epsilon .1] [--seeds 3]

Given distances, default network; test log-loss and AUC as mean and range over seeds. Noise is that
of a step on the mean gradient, root mean square over steps and summed over parameters, divided by
√T so that runs of different length compare, in units of the full batches'.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from typing import Any

import numpy as np
from sklearn.metrics import log_loss, roc_auc_score

from corrdp import CorrDPMLPClassifier
from corrdp.datasets import load_adult
from corrdp.errors import UtilityWarning
from corrdp.nn.account import read_setup
from corrdp.privacy.estimate import declaration_of
from corrdp.privacy.ledger import decode_array

VARIANTS: dict[str, dict[str, Any]] = {
    "full batches": {},
    "sampled, default rate": {"solver": "sgd"},
    "sampled, q = .2": {"solver": "sgd", "sample_rate": 0.2},
    "sampled, q = .01": {"solver": "sgd", "sample_rate": 0.01},
}


def noise(model: Any) -> tuple[float, float, int]:
    """Noise as above, rate, steps."""
    ledger = model.certificate_.ledger
    setup = read_setup(ledger.one("network-budget"))
    sigma = decode_array(ledger.one("network-release")["sigma"])
    dimensions = setup.table(declaration_of(ledger)).query.network.dimensions
    rate = 1.0 if setup.sampling is None else setup.sampling.rate
    spread = math.sqrt(float((sigma**2 @ dimensions).mean())) / rate
    return spread / math.sqrt(setup.plan.steps), rate, setup.plan.steps


def shown(values: list[float]) -> str:
    return f"{np.mean(values):.4f} ({min(values):.4f} to {max(values):.4f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epsilon", type=float, default=0.1)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore", UtilityWarning)
    data = load_adult()
    print("| | rate | steps | noise | record ε | log-loss | AUC | CPU s |\n|" + "---|" * 8)
    base = math.nan
    for name, settings in VARIANTS.items():
        losses, areas, seconds = [], [], []
        for seed in range(options.seeds):
            model = CorrDPMLPClassifier(
                data.schema,
                epsilon=options.epsilon,
                distances=data.distances,
                random_state=seed,
                **settings,
            )
            started = time.process_time()
            model.fit(data.X, data.y)
            seconds.append(time.process_time() - started)
            assert model.certificate_.holds
            truth = np.asarray(data.y_test) == model.classes_[1]
            likely = model.predict_proba(data.X_test)[:, 1]
            losses.append(float(log_loss(truth, likely)))
            areas.append(float(roc_auc_score(truth, likely)))
        spread, rate, steps = noise(model)
        base = spread if math.isnan(base) else base
        record = model.certificate_.joint["record"]
        print(
            f"| {name} | {rate:.3f} | {steps} | {spread / base:.2f} | {record:.3f} | "
            f"{shown(losses)} | {shown(areas)} | {np.median(seconds):.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
