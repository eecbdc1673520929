"""Time and memory of one epoch on Adult: corrdp against Opacus' ghost clipping, one thread each.

    pip install opacus   (in an environment of its own), then
    OMP_NUM_THREADS=1 python benchmarks/networks_speed.py

One hidden layer of 64 tanh units. corrdp sums the whole table in chunks; Opacus runs batches of
2,048. Seconds are of processor time, the best of several epochs; memory is the peak of arrays
beyond the data, for Opacus that of its tensors.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

import numpy as np

from corrdp.datasets import load_adult
from corrdp.encoding import Encoder
from corrdp.erm.losses import Logistic
from corrdp.neighbours import neighbour_kinds
from corrdp.nn.gradients import Inputs, gradient_sum
from corrdp.nn.network import Network, NetworkLattice
from corrdp.nn.query import GradientQuery
from corrdp.nn.sensitivity import NetworkSensitivity
from corrdp.noise import noise_source
from corrdp.records import read_label, read_records

UNITS, BATCH, EPOCHS = 64, 2048, 7


def best(run: Callable[[], object]) -> float:
    times = []
    for _ in range(EPOCHS):
        started = time.process_time()
        run()
        times.append(time.process_time() - started)
    return min(times)


def ghost(X: np.ndarray, y: np.ndarray) -> Callable[[], object]:
    """One epoch of Opacus with ghost clipping."""
    import torch
    from opacus import PrivacyEngine

    torch.set_num_threads(1)
    data = torch.utils.data.TensorDataset(torch.tensor(X), torch.tensor(y))
    model = torch.nn.Sequential(
        torch.nn.Linear(X.shape[1], UNITS), torch.nn.Tanh(), torch.nn.Linear(UNITS, 1)
    )
    optimiser = torch.optim.SGD(model.parameters(), lr=1.0)
    loss = torch.nn.BCEWithLogitsLoss()
    loader = torch.utils.data.DataLoader(data, batch_size=BATCH)
    model, optimiser, loss, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=optimiser,
        criterion=loss,
        data_loader=loader,
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        grad_sample_mode="ghost",
    )

    def epoch() -> None:
        for features, label in loader:
            optimiser.zero_grad()
            loss(model(features), label[:, None]).backward()
            optimiser.step()

    return epoch


def main() -> None:
    adult = load_adult(frame="dict")
    schema = adult.schema
    encoder = Encoder(schema, 0.3, 7)
    records = read_records(adult.X, schema)
    label = read_label(adult.y, schema.label, records.size).astype(float)
    design = encoder.transform(records)
    network = Network(encoder, (UNITS,))
    query = GradientQuery(network, Logistic(), lattice=NetworkLattice())
    inputs = Inputs.of(design, network)
    parameters = network.initial(noise_source(0))
    table = NetworkSensitivity(query, neighbour_kinds(schema))
    ours = best(lambda: gradient_sum(query, parameters, inputs, label))
    bounds = best(lambda: table(parameters))
    tracemalloc.start()
    gradient_sum(query, parameters, inputs, label)
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    print(f"corrdp: {ours:.3f} s an epoch, {bounds:.4f} s a sensitivity table, {peak:.1f} MiB")
    try:
        dense = np.column_stack([design.scores(unit) for unit in np.eye(encoder.dimension)[:-1]])
        epoch = ghost(dense.astype(np.float32), label.astype(np.float32))
    except ImportError as error:
        print(f"Opacus is not installed here ({error})")
        return
    theirs = best(epoch)
    print(f"Opacus, ghost clipping, batches of {BATCH}: {theirs:.3f} s; ratio {ours / theirs:.2f}")


if __name__ == "__main__":
    main()
