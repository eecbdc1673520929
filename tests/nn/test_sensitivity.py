"""No block moves further than its bound, bounds are attained, and every term is needed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from corrdp.errors import ConfigurationError
from corrdp.neighbours import NeighbourKind
from corrdp.nn import movement as movement_module
from corrdp.nn import sensitivity as sensitivity_module
from corrdp.nn.query import GradientQuery, norm_bound
from corrdp.nn.residual import ClippedResidual, ResidualRule, Softmax
from corrdp.nn.sensitivity import NetworkSensitivity

from .tiny import build, grid, movements, random_parameters, table_of, worst_ratio

WIDTHS = [(1,), (3,), (2, 2), (3, 2, 2)]
SHAPES = ["tanh", "sigmoid", "softplus", "relu"]
ROLES = ["insensitive", "sensitive", "public"]


def random_case(rng):
    """One configuration: every option is drawn."""
    classes = int(rng.choice([2, 2, 3, 0]))
    hidden = WIDTHS[rng.integers(len(WIDTHS))]
    output_weights = str(rng.choice(["fixed", "trained"]))
    count = len(hidden) + (output_weights == "trained")
    weighted = classes > 0 and rng.random() < 0.5
    return build(
        classes=classes,
        hidden=hidden,
        activation=str(rng.choice(SHAPES)),
        label_role=str(rng.choice(ROLES)),
        sensitive_path=str(rng.choice(["skip", "hidden"])),
        output_weights=output_weights,
        bits=(3, 3, 3) if rng.random() < 0.5 else None,
        class_weights=tuple(rng.uniform(0.2, 3.0, classes)) if weighted else None,
        clips=tuple(rng.uniform(0.2, 3.0, count)) if rng.random() < 0.7 else (),
    )


@pytest.mark.parametrize("seed", range(36))
def test_no_movement_exceeds_its_bound(seed):
    rng = np.random.default_rng(seed)
    query = random_case(rng)
    network, points, table = query.network, grid(query.network), table_of(query)
    parameters = random_parameters(network, rng)
    moved, bound = movements(query, points, parameters), table(parameters)
    assert worst_ratio(moved, bound) <= 1.0
    contributions = points.contributions(query, parameters)
    for block, present in zip(network.blocks, table.presence, strict=True):
        part = contributions[:, block.start : block.start + block.size]
        assert np.linalg.norm(part, axis=1).max() <= present * (1 + 1e-9)
    assert (moved <= 2 * table.presence * (1 + 1e-9)).all()
    low, high = table.infimum, table.supremum(30.0)
    if network.depth == 1 and network.output_weights == "trained":
        slices = [block.path == "hidden" for block in network.blocks]
        size = table._signal_bound(norm_bound(network.output_layer(parameters)))
        low, high = (np.where(slices, t * size, t) for t in (low, high))
    assert (low <= bound * (1 + 1e-9)).all()
    assert (high >= bound * (1 - 1e-9)).all()


def filled(query: GradientQuery, **blocks) -> np.ndarray:
    """Parameters that are zero except in the named blocks (``_`` stands for ``:``)."""
    parameters = np.zeros(query.network.dimension)
    names = {block.name.replace("<", "").replace(">", ""): block for block in query.network.blocks}
    for name, values in blocks.items():
        block = names[name.replace("_", ":")]
        parameters[block.start : block.start + block.size] = np.resize(values, block.size)
    return parameters


def ratio_of(query, parameters, kind, block, rows=1):
    """Movement over bound of one kind and block."""
    table = table_of(query, rows)
    row = [one.name for one in table.kinds].index(kind)
    column = [one.name for one in query.network.blocks].index(block)
    moved = movements(query, grid(query.network), parameters)[row, column]
    return moved / max(table(parameters)[row, column], 1e-12)


# where the slope of tanh moves most for Δ = 1: from m − ½ to m + ½
CENTRE = 0.5 * math.acosh(0.5 * (math.cosh(1.0) + math.sqrt(math.cosh(1.0) ** 2 + 8.0)))
FAR = -30.0  # an output bias that makes the residual of y = 1 equal to −1


def by_skip():
    """S through the skip at σ' = 1: the residual moves symmetrically around one half."""
    query = build(hidden=(4,))
    return query, filled(query, skip_s=3.0), "<sensitive>", "hidden:c"


def by_slope():
    """A hidden column that moves only the slope, every unit by as much as it can."""
    query = build(hidden=(4,), output_norm=0.02)
    parameters = filled(query, hidden_x=0.5, hidden_intercept=CENTRE, skip_intercept=FAR)
    return query, parameters, "x", "hidden:<intercept>"


def by_score():
    """A hidden column that moves the score symmetrically, seen at the output's bias."""
    query = build(hidden=(4,))
    return query, filled(query, hidden_x=[0.4, -0.4]), "x", "skip:<intercept>"


def by_label():
    query = build(hidden=(4,))
    return query, filled(query), "y", "hidden:x"


def by_clip():
    """Both labels' signals are clipped: twice the clip."""
    query = build(hidden=(4,), clips=(0.2,))
    return query, filled(query), "y", "hidden:x"


def by_level():
    """Another level with the signal at its largest: √2 times it."""
    query = build(hidden=(4,), class_weights=(1.0, 2.0), clips=(50.0,))
    return query, filled(query, skip_intercept=FAR), "c", "hidden:c"


def by_level_and_label():
    """A level that stays while the label flips the signal: more than √2."""
    query = build(hidden=(4,), label_role="sensitive", sensitive_path="hidden", clips=(0.2,))
    return query, filled(query), "<sensitive>", "hidden:t"


def by_number():
    query = build(hidden=(4,))
    return query, filled(query, skip_intercept=FAR), "x", "hidden:x"


def by_weights():
    """Trained output weights meet saturated hidden values of changing sign."""
    query = build(hidden=(4,), output_weights="trained")
    return query, filled(query, hidden_x=9.0, skip_intercept=FAR), "x", "<output>"


def by_weights_label():
    query = build(hidden=(4,), output_weights="trained")
    return query, filled(query, hidden_intercept=9.0), "y", "<output>"


def by_weights_clip():
    query = build(hidden=(4,), output_weights="trained", clips=(3.0, 0.5))
    return query, filled(query, hidden_x=9.0, skip_intercept=FAR), "x", "<output>"


def by_classes():
    """Softmax between two of the classes."""
    query = build(hidden=(4,), classes=3)
    parameters = filled(query, skip_s=[1.5, -1.5, 0.0], skip_intercept=[0.0, 0.0, FAR])
    return query, parameters, "<sensitive>", "skip:<intercept>"


def by_residual_rounding():
    """A tiny step of the score over an edge of the residual's grid."""
    query = build(hidden=(4,), bits=(2, 16, 4))
    return (
        query,
        filled(query, skip_s=0.001, skip_intercept=-math.log(5 / 3)),
        "<sensitive>",
        ("hidden:<intercept>"),
    )


def by_signal_rounding():
    """Every unit's score gradient steps over an edge of its grid together."""
    query = build(hidden=(4,), bits=(16, 1, 4), output_norm=2.0)
    edge = math.acosh(math.sqrt(2.0))  # σ' = ½
    parameters = filled(query, hidden_x=1e-4, hidden_intercept=edge, skip_intercept=FAR)
    return query, parameters, "x", "hidden:<intercept>"


def by_value_rounding():
    query = build(hidden=(4,), bits=(16, 8, 1), output_weights="trained")
    parameters = filled(query, hidden_x=1e-4, hidden_intercept=math.atanh(0.5))
    parameters += filled(query, skip_intercept=FAR)
    return query, parameters, "x", "<output>"


def by_rounded_clip():
    """The clipped residual is rounded up, beyond the clip."""
    query = build(hidden=(4,), bits=(1, 16, 4), clips=(0.26 * 3.0,))
    return query, filled(query), "y", "hidden:x"


def by_deep_skip():
    query = build(hidden=(3, 3), clips=(0.01, 0.01))
    start = random_parameters(query.network, np.random.default_rng(1))
    start[-8:] = 0.0
    return query, start + filled(query, skip_s=3.0), "<sensitive>", "layer:2"


def by_deep_first():
    query, parameters, kind, _ = by_deep_skip()
    return query, parameters, kind, "hidden:x"


def by_deep_record():
    """Residual and clipped score gradient both change sign."""
    query = build(hidden=(3, 3), clips=(0.01, 0.01), label_role="insensitive")
    start = random_parameters(query.network, np.random.default_rng(1))
    start[-8:] = 0.0
    return query, start + filled(query, skip_s=40.0), "<record>", "hidden:<intercept>"


ATTAINED = [
    by_skip,
    by_slope,
    by_score,
    by_label,
    by_clip,
    by_level,
    by_level_and_label,
    by_number,
    by_weights,
    by_weights_label,
    by_weights_clip,
    by_classes,
    by_deep_skip,
    by_deep_first,
    by_deep_record,
]


@pytest.mark.parametrize("case", ATTAINED, ids=lambda case: case.__name__)
def test_bounds_are_attained(case):
    assert 0.95 <= ratio_of(*case()) <= 1.0 + 1e-9


# --- mutations: a term that is dropped or halved is found out -----------------------------------


def halve(function):
    return lambda *args, **kwargs: 0.5 * function(*args, **kwargs)


def scaled_movement(**factors):
    """Movement bounds of which some fields are multiplied."""
    true = movement_module.shallow_movement

    def mutated(*args):
        moved = true(*args)
        fields = {n: f * getattr(moved, n) for n, f in factors.items()}
        return movement_module.Movement(**{**vars(moved), **fields})

    return sensitivity_module, "shallow_movement", mutated


def rule_property(name, value):
    return ResidualRule, name, property(value)


def query_property(name):
    return GradientQuery, name, property(lambda query: 0.0)


def smaller_slices(numeric, level, unchanged):
    """The T6 rule with changed factors."""

    def table(self, bound, moved):
        still = unchanged * moved[:, None] * self.radius
        number = np.minimum(numeric * bound * self.radius, bound * self.diameter + still)
        one_hot = self.radius * np.maximum(level * bound, unchanged * moved[:, None])
        return np.where(self.changed, np.where(self.one_hot, one_hot, number), still)

    return sensitivity_module._Slices, "table", table


def without(term):
    """``_signal`` with one term left out."""
    true = NetworkSensitivity._signal

    def signal(self, moved, rho, output, bound):
        if term == "residual":
            rho = 0.0 * rho
        return true(self, moved, rho, output, 0.5 * bound if term == "clip" else bound)

    return NetworkSensitivity, "_signal", signal


MUTATIONS = [
    (by_skip, without("residual")),
    (by_skip, (sensitivity_module, "skip_movement", halve(sensitivity_module.skip_movement))),
    (by_slope, scaled_movement(gradient=0.5)),
    (by_slope, scaled_movement(gradient=0.0)),
    (by_slope, scaled_movement(gradient=0.9)),
    (by_score, scaled_movement(score=0.5)),
    (by_score, scaled_movement(score=0.9)),
    (by_label, without("residual")),
    (by_clip, without("clip")),
    (by_level, smaller_slices(2.0, 1.0, 1.0)),
    (by_level, rule_property("exact_bound", lambda rule: rule.loss.residual_bound)),
    (by_level_and_label, smaller_slices(2.0, math.sqrt(2.0), 0.5)),
    (by_number, smaller_slices(1.0, math.sqrt(2.0), 1.0)),
    (by_skip, smaller_slices(2.0, math.sqrt(2.0), 0.9)),
    (by_weights, scaled_movement(value=0.5)),
    (by_weights, scaled_movement(value=0.0)),
    (by_weights_label, (NetworkSensitivity, "_output", halve(NetworkSensitivity._output))),
    (by_classes, (Softmax, "movement", halve(Softmax.movement))),
    (by_residual_rounding, rule_property("step", lambda rule: 0.0)),
    (by_signal_rounding, query_property("signal_step")),
    (by_value_rounding, query_property("value_step")),
    (by_rounded_clip, rule_property("step", lambda rule: 0.0)),
    (by_deep_skip, (NetworkSensitivity, "_deeper", halve(NetworkSensitivity._deeper))),
    (by_deep_first, without("residual")),
    (by_deep_record, without("clip")),
]


@pytest.mark.parametrize("number", range(len(MUTATIONS)))
def test_every_term_is_needed(number, monkeypatch):
    case, (owner, name, mutated) = MUTATIONS[number]
    query, parameters, kind, block = case()
    assert ratio_of(query, parameters, kind, block) <= 1.0 + 1e-9
    monkeypatch.setattr(owner, name, mutated)
    assert ratio_of(query, parameters, kind, block) > 1.01


@pytest.mark.parametrize("term", ["gradient", "value", "score"])
def test_every_term_of_the_recursion_is_needed(term, monkeypatch):
    """The recursion is loose, so a term must be dropped, not only halved, to be found out."""
    query = build(hidden=(2, 2), output_norm=0.02, clips=(0.05, 0.05))
    if term == "score":
        query = build(hidden=(2, 2), clips=(1e-3, 1e-3))
    parameters = filled(query, hidden_x=0.5, hidden_intercept=CENTRE)
    sign = -1.0 if term == "score" else 1.0
    parameters += filled(query, layer_2=[1.0, sign, 0.5, 0.5 * sign, 0.0, 0.0])
    parameters += filled(query, skip_intercept=0.0 if term == "score" else FAR)
    target = ("x", "skip:<intercept>" if term == "score" else "layer:2")
    assert ratio_of(query, parameters, *target) <= 1.0
    true = movement_module.deep_movement

    def mutated(*args):
        moved = true(*args)
        return movement_module.Movement(**{**vars(moved), term: 0.0 * getattr(moved, term)})

    if term == "value":
        monkeypatch.setattr(
            movement_module, "_outer_move", lambda move, limit, size, value: 0.0 * size * value
        )
    else:
        monkeypatch.setattr(sensitivity_module, "deep_movement", mutated)
    assert ratio_of(query, parameters, *target) > 1.01


# --- what THEORY states in words -----------------------------------------------------------------


def test_sensitive_columns_in_the_skip_move_the_residual_only():
    query = build(hidden=(4,))
    parameters = random_parameters(query.network, np.random.default_rng(0))
    table = table_of(query)
    assert not table.infimum[0][[b.path == "hidden" for b in query.network.blocks]].any()
    sensitive = table(parameters)[0]
    skip = query.network.skip_layer(parameters)
    tau = 2 * abs(skip[0, 0]) + np.ptp(skip[1:3, 0])
    assert sensitive[0] == pytest.approx(3.0 * math.tanh(tau / 4))
    inside = build(hidden=(4,), sensitive_path="hidden")
    assert inside.network.blocks[1].name == "hidden:s"


def test_label_kind_covers_the_record_twice():
    """Fixed weights: a_R = 2·a_y, so the dual bound has λ_y = 4."""
    table = table_of(build(hidden=(4,)))
    names = [kind.name for kind in table.kinds]
    label, record = names.index("y"), names.index("<record>")
    np.testing.assert_allclose(table.supremum(10.0)[record], 2.0 * table.infimum[label])


def test_trained_weights_compare_rows_relative_to_their_block():
    query = build(hidden=(4,), output_weights="trained")
    table = table_of(query)
    names = [kind.name for kind in table.kinds]
    label, record = names.index("y"), names.index("<record>")
    np.testing.assert_allclose(table.supremum(10.0)[record], 2.0 * table.infimum[label])
    rng = np.random.default_rng(4)
    for _ in range(20):
        bound = table(random_parameters(query.network, rng))
        assert (bound[record] <= 2.0 * bound[label] * (1 + 1e-9)).all()


def test_clipped_residual_halves_the_record_and_keeps_the_label():
    plain = build(hidden=(4,))
    half = GradientQuery(plain.network, ClippedResidual(0.5))
    names = [kind.name for kind in table_of(plain).kinds]
    label, record = names.index("y"), names.index("<record>")
    full, less = table_of(plain).supremum(9.0), table_of(half).supremum(9.0)
    np.testing.assert_allclose(less[record], 0.5 * full[record])
    np.testing.assert_allclose(less[label], full[label])
    points = grid(half.network)
    parameters = random_parameters(half.network, np.random.default_rng(3))
    assert worst_ratio(movements(half, points, parameters), table_of(half)(parameters)) <= 1.0


def test_several_rows_per_person_multiply_every_bound():
    query = build(hidden=(3,))
    parameters = random_parameters(query.network, np.random.default_rng(0))
    np.testing.assert_allclose(table_of(query, 3)(parameters), 3 * table_of(query)(parameters))
    np.testing.assert_allclose(table_of(query, 3).presence, 3 * table_of(query).presence)


def test_norm_bounds_are_upper_bounds():
    rng = np.random.default_rng(0)
    for shape in [(1, 5), (4, 4), (30, 7)]:
        matrix = rng.normal(size=shape)
        exact = np.linalg.norm(matrix, 2)
        assert exact <= norm_bound(matrix) <= exact * (1 + 1e-9)
    assert norm_bound(np.zeros((3, 3))) == 0.0


def test_softmax_residual_moves_as_stated():
    rng = np.random.default_rng(1)
    worst = 0.0
    for _ in range(3000):
        t = rng.normal(size=(1, 4)) * 4
        tau = 10 ** rng.uniform(-2, 1)
        shift = rng.uniform(0, tau, size=(1, 4))
        y = np.array([rng.integers(4)])
        loss = Softmax()
        gap = np.linalg.norm(loss.residual(t + shift, y) - loss.residual(t, y))
        limit = loss.movement(np.array(float(np.ptp(shift))))
        assert gap <= limit + 1e-12
        worst = max(worst, gap / limit)
        assert np.linalg.norm(loss.residual(t, y)) <= loss.residual_bound
    assert worst > 0.7


def test_bad_input_is_refused():
    query = build(hidden=(3,))
    with pytest.raises(ConfigurationError, match="unknown columns"):
        NetworkSensitivity(query, (NeighbourKind("z", ("z",), False),))
    with pytest.raises(ConfigurationError, match="records_per_person"):
        table_of(query, 0)
    with pytest.raises(ConfigurationError, match="radius"):
        table_of(query).supremum(math.nan)
    with pytest.raises(ConfigurationError, match="finite numbers"):
        table_of(query)(np.zeros(3))
    for weights in [(1.0, math.nan), (0.0, 1.0)]:
        with pytest.raises(ConfigurationError, match="class_weights"):
            build(hidden=(3,), class_weights=weights)
    with pytest.raises(ConfigurationError, match="residual_clip"):
        ClippedResidual(math.nan)
