"""What a cap on the whole record's loss costs: Adult at ε = .5, as a markdown table.

python benchmarks/record_cap.py --seeds 10
"""

from __future__ import annotations

import argparse

from comparison import interval, load, private


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    task = load("adult", "insensitive")
    print("| record_epsilon | certified ordinary DP | accuracy | log-loss |")
    print("|---|---|---|---|")
    for cap in (None, 2.0, 1.0, 0.5):
        runs = [
            private(task, task.schema, task.distances, 0.5, seed, record_epsilon=cap)
            for seed in range(options.seeds)
        ]
        joint = runs[0][1]().joint["record"]
        accuracy = interval([run[0]["accuracy"] for run in runs])
        loss = interval([run[0]["log-loss"] for run in runs])
        print(f"| {cap or 'none'} | {joint:.4g} | {accuracy} | {loss} |", flush=True)


if __name__ == "__main__":
    main()
