"""Effects of erasing single units beside sixty digits, unit by unit; the violation test by hand."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
import torch

from heedful.analysis.decisions import decisions
from heedful.analysis.violation import erasure_effects, violation_shares, violation_table, violations
from heedful.traces import Trace
from tests.oracles.random_traces import dyadic_trace, random_trace, tenths_trace, whole_number_trace

MAKERS = (random_trace, dyadic_trace, whole_number_trace, tenths_trace)


def literal_effects(trace: Trace, chosen: list[int]) -> list[tuple[float, float]]:
    """p_y − p_y' and the total variation of every unit: all sums again without the unit, in sixty digits."""
    found = []
    with localcontext() as context:
        context.prec = 60
        bias = [Decimal(b) for b in trace.bias.tolist()]
        for instance, y in enumerate(chosen):
            where = trace.instance(instance)
            scores = trace.attention_scores[where].tolist()
            polarity = [[Decimal(z) for z in row] for row in trace.polarity_scores[where].tolist()]
            weights = [Decimal(0) if a == -np.inf else (Decimal(a) - Decimal(max(scores))).exp() for a in scores]
            before = literal_probabilities(weights, polarity, bias)
            for unit in range(len(scores)):
                left = [Decimal(0) if place == unit else weight for place, weight in enumerate(weights)]
                after = literal_probabilities(left, polarity, bias)
                variation = sum((abs(p - q) for p, q in zip(before, after, strict=True)), Decimal(0)) / 2
                found.append((float(before[y] - after[y]), float(variation)))
    return found


def literal_probabilities(weights: list[Decimal], polarity: list[list[Decimal]], bias: list[Decimal]) -> list[Decimal]:
    total = sum(weights) or Decimal(1)
    sums = [sum(w * row[k] for w, row in zip(weights, polarity, strict=True)) / total for k in range(len(bias))]
    powers = [(b + s - max(sums)).exp() for b, s in zip(bias, sums, strict=True)]
    return [power / sum(powers) for power in powers]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("make", MAKERS)
def test_effects_are_those_of_sixty_digits(make: object, seed: int) -> None:
    assert callable(make)
    trace: Trace = make(seed, instances=25, longest=9)
    found = erasure_effects(trace)
    expected = torch.tensor(literal_effects(trace, decisions(trace).tolist()), dtype=torch.float64)
    torch.testing.assert_close(found.decision, expected[:, 0], rtol=1e-6, atol=1e-14)
    torch.testing.assert_close(found.variation, expected[:, 1], rtol=1e-6, atol=1e-14)
    assert (found.variation >= found.decision.abs() - 1e-15).all()


def test_a_sure_decision_keeps_the_digits_of_its_effects() -> None:
    """p = 1 − e⁻⁶⁰: differences of probabilities would all be zero."""
    trace = Trace.from_arrays(
        offsets=[0, 3], attention_scores=[0, 0, 0], polarity_scores=[[0, 60], [0, 61], [0, 59]], bias=[0, 0]
    )
    found = erasure_effects(trace).decision
    small = float(torch.tensor(-60.0, dtype=torch.float64).exp())
    expected = [small * np.expm1(change) for change in (0.0, 0.5, -0.5)]
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64), rtol=1e-12, atol=0)


def test_units_that_are_all_alike_have_no_effect_at_all() -> None:
    trace = Trace.from_arrays(
        offsets=[0, 7], attention_scores=[0.1] * 7, polarity_scores=[[0.3, 0.7, 0.1]] * 7, bias=[0.1, 0.2, 0.3]
    )
    assert erasure_effects(trace).decision.tolist() == [0.0] * 7
    assert erasure_effects(trace).variation.tolist() == [0.0] * 7


def by_hand() -> Trace:
    """Two classes. Weights ½ ¼ ¼ with polarity −1 8 −1: s = 1¼, the top unit speaks against the decision.

    Then ½ ½ with 2 and 1: without the first s falls from 1½ to 1. Then one unit alone.
    """
    return Trace.from_arrays(
        offsets=[0, 3, 5, 6],
        attention_weights=[0.5, 0.25, 0.25, 0.5, 0.5, 1.0],
        polarity_scores=[-1, 8, -1, 2, 1, 3],
        bias=[0],
    )


def sigmoid(s: float) -> float:
    return float(1 / (1 + np.exp(-s)))


def test_the_violation_test_by_hand() -> None:
    table = violations(by_hand())
    assert list(table) == ["instance", "units", "top_position", "weight", "effect", "violated", "ranking"]
    assert table["instance"].tolist() == [0, 1]
    assert table["top_position"].tolist() == [0, 0]
    assert table["violated"].tolist() == [True, False]
    expected = [sigmoid(1.25) - sigmoid(3.5), sigmoid(1.5) - sigmoid(1)]
    np.testing.assert_allclose(table["effect"], expected, rtol=1e-12)
    assert violations(by_hand(), "polarity")["violated"].tolist() == [False, False]
    shares = violation_shares(by_hand(), ["attention", "polarity"])
    assert shares[["ranking", "instances", "violated"]].to_numpy().tolist() == [
        ["attention", 2, 0.5],
        ["polarity", 2, 0],
    ]
    assert (shares["low"] <= shares["violated"]).all()
    assert (shares["high"] > shares["violated"]).all()


def test_a_negative_weight_claims_the_opposite_and_zero_nothing() -> None:
    weights = torch.tensor([-3.0, 1, 2, 0, 0, 1], dtype=torch.float64)
    table = violation_table(weights, erasure_effects(by_hand()).decision, by_hand().offsets)
    assert table["top_position"].tolist() == [0, 0]
    assert table["violated"].iloc[0] == False  # noqa: E712
    assert table["violated"].isna().tolist() == [False, True]


@pytest.mark.parametrize("seed", range(3))
def test_of_two_classes_the_top_unit_violates_where_it_lies_below_the_mean(seed: int) -> None:
    """Erasing raises p_y iff the unit's margin for y is below the attended mean: no sums of what remains at all."""
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(2, 9, 200))])
    scores = {"attention_scores": rng.normal(size=offsets[-1]), "polarity_scores": rng.normal(size=offsets[-1])}
    trace = Trace.from_arrays(offsets=offsets, bias=[0.2], **scores)
    expected = []
    for instance in range(200):
        where = trace.instance(instance)
        weights, margins = trace.attention_weights[where], trace.polarity_scores[where, 1]
        sign = 1 if int(trace.predictions[instance]) else -1
        expected.append(bool(sign * margins[weights.argmax()] < sign * (weights * margins).sum()))
    assert violations(trace)["violated"].tolist() == expected
    assert 0 < sum(expected) < 200
