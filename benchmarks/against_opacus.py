"""Logistic regression on Adult: corrdp's full batches against 10 epochs of Opacus, in one run.

    pip install opacus   (in an environment of its own), then
    python benchmarks/against_opacus.py

Opacus accounts for adding or removing a record, corrdp for substituting one, which is the
stronger promise at the same ε (one substitution is a removal and an addition).
"""

from __future__ import annotations

import time
import warnings

import numpy as np
import torch
from comparison import Task, load, metrics, private
from opacus import PrivacyEngine

from corrdp.encoding import Encoder
from corrdp.erm.fit import default_scale

EPOCHS, BATCH, RATE, CLIP = 10, 512, 2.0, 1.0


def dense(task: Task, part: object) -> np.ndarray:
    encoder = Encoder(task.schema, default_scale(len(task.schema.used)))
    design = encoder.transform(part.records)  # type: ignore[attr-defined]
    columns = [design.scores(unit) for unit in np.eye(encoder.dimension)[:-1]]
    return np.column_stack(columns).astype(np.float32)


def opacus(task: Task, epsilon: float, seed: int) -> tuple[dict[str, float], float]:
    """Test metrics and seconds of one private fit."""
    torch.manual_seed(seed)
    X = torch.tensor(dense(task, task.train))
    y = torch.tensor(task.train.scaled.astype(np.float32))
    started = time.perf_counter()
    model = torch.nn.Linear(X.shape[1], 1)
    optimiser = torch.optim.SGD(model.parameters(), lr=RATE)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X, y), batch_size=BATCH)
    engine = PrivacyEngine(accountant="prv")
    model, optimiser, loader = engine.make_private_with_epsilon(
        module=model,
        optimizer=optimiser,
        data_loader=loader,
        target_epsilon=epsilon,
        target_delta=task.delta,
        epochs=EPOCHS,
        max_grad_norm=CLIP,
    )
    loss = torch.nn.BCEWithLogitsLoss()
    for _ in range(EPOCHS):
        for features, label in loader:
            optimiser.zero_grad()
            if len(label):
                loss(model(features)[:, 0], label).backward()
                optimiser.step()
    seconds = time.perf_counter() - started
    with torch.no_grad():
        score = model(torch.tensor(dense(task, task.test)))[:, 0].numpy().astype(float)
    return metrics(task, score), seconds


def main() -> None:
    warnings.simplefilter("ignore")
    task = load("adult", "insensitive")
    print("| ε | library | accuracy | log-loss | seconds |")
    print("|---|---|---|---|---|")
    for epsilon in (0.1, 0.5, 1.0):
        runs = {"Opacus, 10 epochs": [opacus(task, epsilon, s) for s in range(3)]}
        for name, schema, distances in (
            ("corrdp, CorrDP", task.schema, task.distances),
            ("corrdp, ordinary DP", task.schema.all_sensitive(), {}),
        ):
            found = []
            for seed in range(3):
                started = time.perf_counter()
                result = private(task, schema, distances, epsilon, seed)[0]
                found.append((result, time.perf_counter() - started))
            runs[name] = found
        for name, found in runs.items():
            accuracy = np.mean([one[0]["accuracy"] for one in found])
            loss = np.mean([one[0]["log-loss"] for one in found])
            seconds = np.min([one[1] for one in found])
            print(f"| {epsilon:g} | {name} | {accuracy:.4f} | {loss:.4f} | {seconds:.2f} |")


if __name__ == "__main__":
    main()
