"""Ends of NAOPC beside all orders tried; certificates hold; beams attain; planted games and their Shapley values."""

from functools import cache

import numpy as np
import pytest
import torch

from heedful.analysis.decisions import decisions, wide
from heedful.analysis.faithfulness import plant, shapley
from heedful.analysis.faithfulness.bounds import _of_trace, naopc_bounds
from heedful.analysis.faithfulness.planted import Planted, hand_game
from heedful.analysis.faithfulness.removal import Asked
from heedful.analysis.flips import TraceReading
from heedful.errors import InputError
from heedful.subjects import Reading
from heedful.traces import Trace
from tests.analysis.test_faithfulness import Plain
from tests.analysis.test_metrics import random_games
from tests.oracles import faithfulness as oracle
from tests.oracles.random_traces import dyadic_trace, random_trace

pytestmark = pytest.mark.usefixtures("one_thread")


def game_of(reading: Reading, row: int, target: int) -> oracle.Game:
    """p of one text as a function of what is there."""
    n = int(reading.units.lengths[row])
    sets = torch.tensor([[(number >> unit) % 2 == 1 for unit in range(n)] for number in range(2**n)])
    said = reading.without(torch.full((2**n,), row), ~sets.flatten(), reading.ways[0])[:, target].tolist()

    @cache
    def p(there: frozenset[int]) -> float:
        return float(said[sum(1 << unit for unit in there)])

    return p


def literal_ends(reading: Reading, targets: list[int]) -> torch.Tensor:
    lengths = reading.units.lengths.tolist()
    rows = [oracle.ends(game_of(reading, row, target), lengths[row]) for row, target in enumerate(targets)]
    return torch.tensor(rows, dtype=torch.float64).T


TRACES = [
    *((random_trace, seed, 120) for seed in (0, 1, 2, 3)),
    *((dyadic_trace, seed, 60) for seed in (0, 1, 2)),
]


@pytest.mark.parametrize(("make", "seed", "count"), TRACES)
def test_ends_of_traces_are_those_of_all_orders(make: object, seed: int, count: int) -> None:
    """660 instances of up to six units; of two classes and more; weights that are zero among them."""
    assert callable(make)
    trace: Trace = make(seed, instances=count, longest=6)
    reading, chosen = TraceReading(trace=trace), decisions(trace)
    low, high = literal_ends(reading, chosen.tolist())
    found = naopc_bounds(Asked(reading), chosen)
    torch.testing.assert_close(found.low, low, rtol=0, atol=1e-9)
    torch.testing.assert_close(found.high, high, rtol=0, atol=1e-9)
    assert found.proven.all()
    least, most, no_less, no_more = torch.from_numpy(_of_trace(trace, chosen, few=0)) / trace.lengths
    before = trace.probabilities.gather(1, chosen[:, None]).squeeze(1)
    assert (before - least <= high + 1e-9).all()
    assert (before - no_less >= high - 1e-9).all()
    assert (before - most >= low - 1e-9).all()
    assert (before - no_more <= low + 1e-9).all()


def binary(seed: int, *, texts: int, longest: int) -> Trace:
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(1, longest + 1, texts))])
    scores = {"attention_scores": rng.normal(size=offsets[-1]), "polarity_scores": 2 * rng.normal(size=offsets[-1])}
    return Trace.from_arrays(offsets=offsets, bias=[0.3], **scores)


def test_of_two_classes_most_ends_are_proven_and_the_others_nearly() -> None:
    trace = binary(0, texts=300, longest=40)
    found = naopc_bounds(Asked(TraceReading(trace=trace)), decisions(trace))
    assert float(found.proven.double().mean()) > 0.65
    assert float(found.gap.max()) < 0.01
    small = binary(1, texts=100, longest=6)
    low, high = literal_ends(TraceReading(trace=small), decisions(small).tolist())
    least, most, no_less, no_more = _of_trace(small, decisions(small), few=0)
    np.testing.assert_allclose((no_more - no_less)[least == no_less], (most - least)[least == no_less], atol=0.2)
    assert float(((high - low) - torch.from_numpy(most - least) / small.lengths).max()) < 0.01


def test_texts_whose_weights_underflow_are_asked() -> None:
    trace = random_trace(7, instances=15, longest=6)
    assert wide(trace).any()
    reading, chosen = TraceReading(trace=trace), decisions(trace)
    found = naopc_bounds(Asked(reading), chosen)
    low, high = literal_ends(reading, chosen.tolist())
    torch.testing.assert_close(found.low, low, rtol=0, atol=1e-9)
    torch.testing.assert_close(found.high, high, rtol=0, atol=1e-9)


def test_additive_games_by_one_sort_are_those_of_all_orders() -> None:
    game, explanations, _ = random_games(5)
    targets = explanations[0].targets
    found = naopc_bounds(Asked(game), targets)
    low, high = literal_ends(game, targets.tolist())
    torch.testing.assert_close(found.low, low, rtol=0, atol=1e-9)
    torch.testing.assert_close(found.high, high, rtol=0, atol=1e-9)
    assert found.proven.all()


def test_a_wide_beam_finds_the_ends_and_a_narrow_one_stays_inside() -> None:
    world = plant("negation", texts=12, seed=1)
    reading, targets = Plain(world.reading), world.truth.targets
    exact = naopc_bounds(Asked(reading), targets, few=16)
    beams = {width: naopc_bounds(Asked(reading), targets, few=0, beam=width) for width in (1, 5, 400)}
    assert exact.proven.all()
    assert not beams[5].proven.any()
    assert beams[5].gap.isnan().all()
    torch.testing.assert_close(beams[400].low, exact.low, rtol=0, atol=1e-4)
    torch.testing.assert_close(beams[400].high, exact.high, rtol=0, atol=1e-4)
    for one in beams.values():
        assert (one.low >= exact.low - 1e-12).all()
        assert (one.high <= exact.high + 1e-12).all()


def test_shapley_values_of_the_hand_game_and_of_all_orders() -> None:
    """Of p 0, 9/20, −1/5, 0."""
    game = hand_game()
    torch.testing.assert_close(
        shapley(game, game.relevant).scores, torch.tensor([0, 0.45, -0.2, 0], dtype=torch.float64)
    )
    for name in ("or", "negation"):
        world = plant(name, texts=6, seed=2)
        reading = world.reading
        assert isinstance(reading, Planted)
        for row in range(6):
            own = slice(int(reading.units.offsets[row]), int(reading.units.offsets[row + 1]))
            relevant = reading.relevant[own].nonzero().squeeze(1).tolist()
            p = game_of(reading, row, int(world.truth.targets[row]))
            rest = frozenset(range(own.stop - own.start)) - set(relevant)
            expected = oracle.shapley(lambda some: p(rest | {relevant[at] for at in some}), len(relevant))  # noqa: B023
            found = world.truth.scores[own]
            assert found[relevant].tolist() == pytest.approx(expected)
            assert found[list(rest)].abs().max() == 0


def test_too_many_relevant_units_are_refused() -> None:
    game = Planted(
        on=plant("or", texts=40).reading.units,
        weights=torch.ones(int(plant("or", texts=40).reading.units.offsets[-1])).double(),
        bias=torch.zeros(40).double(),
    )
    with pytest.raises(InputError, match="10 relevant units or fewer in a text; one has 16"):
        shapley(game, game.relevant)


def test_planted_games_by_hand() -> None:
    """Two units that are enough alone: c (x + y − x y) − c/2."""
    world = plant("or", texts=30, seed=5)
    reading = world.reading
    assert isinstance(reading, Planted)
    assert not reading.additive
    for row, (one, other) in enumerate(reading.pairs.tolist()):
        strength = -float(reading.pair_weights[row])
        n, begin = int(reading.units.lengths[row]), int(reading.units.offsets[row])
        for gone, expected in (((), 0.5), ((one,), 0.5), ((other,), 0.5), ((one, other), -0.5)):
            marks = torch.ones(n, dtype=torch.bool)
            marks[[unit - begin for unit in (one, other) if unit not in gone]] = False
            odds = reading.without(torch.tensor([row]), marks)[0].logit()[1]
            assert float(odds) == pytest.approx(expected * strength)
