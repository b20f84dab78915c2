"""Who watches the metrics: diagnosticity on planted worlds against permuted truth, by hand and at large."""

from collections import Counter

import pytest
import torch

from heedful.analysis.faithfulness import METRICS, World, diagnosticity, plant
from heedful.analysis.faithfulness.metric import LOWER, NEITHER
from heedful.analysis.faithfulness.planted import hand_game, shapley
from heedful.analysis.faithfulness.watching import DISTRUST, INVERTED, PERMUTED, TRUST, permuted, preferred
from heedful.errors import InputError

pytestmark = pytest.mark.usefixtures("one_thread")

HEADLINE = ("aopc", "deletion", "aopc_comprehensiveness", "infidelity", "correlation")
BLIND = ("gini", "entropy")


def test_preference_by_hand() -> None:
    truth = torch.tensor([1.0, 0.5, 0.2, torch.nan]).double()
    control = torch.tensor([0.5, 0.5 + 1e-12, 0.3, 1.0]).double()
    assert preferred(truth, control, "higher")[:3].tolist() == [1, 0.5, 0]
    assert preferred(truth, control, NEITHER)[:3].tolist() == [1, 0.5, 0]
    assert preferred(truth, control, LOWER)[:3].tolist() == [0, 0.5, 1]
    assert preferred(truth, control, LOWER).isnan().tolist() == [False, False, False, True]


def test_permuted_truth_has_the_same_numbers_in_other_places() -> None:
    truth = plant("additive", texts=30).truth
    other, again = permuted(truth, seed=1), permuted(truth, seed=1)
    assert torch.equal(other.scores, again.scores)
    assert not torch.equal(other.scores, permuted(truth, seed=1, number=1).scores)
    assert not torch.equal(other.scores, truth.scores)
    for row in range(30):
        own = slice(int(truth.offsets[row]), int(truth.offsets[row + 1]))
        assert Counter(other.scores[own].tolist()) == Counter(truth.scores[own].tolist())


def test_headline_metrics_know_the_truth_and_blind_ones_do_not() -> None:
    table = diagnosticity(metrics=[*HEADLINE, *BLIND, "single_flip"], texts=200)
    own = table[(table["control"] == PERMUTED) & (table["world"] != "all")]
    for name in HEADLINE:
        assert (own.loc[own["metric"] == name, "diagnosticity"] >= 0.95).all(), name
    blind = own[own["metric"].isin(BLIND)]
    assert blind["diagnosticity"].tolist() == [0.5] * 8
    assert blind["ties"].tolist() == [1.0] * 8
    verdicts = table[table["world"] == "all"].set_index("metric")["verdict"]
    assert verdicts[list(HEADLINE)].tolist() == [TRUST] * len(HEADLINE)
    assert verdicts[[*BLIND, "single_flip"]].tolist() == [DISTRUST] * 3
    inverted = table[(table["control"] == INVERTED) & table["metric"].isin(HEADLINE)]
    assert inverted["diagnosticity"].tolist() == [1.0] * 4 * len(HEADLINE)
    assert (table["low"] <= table["diagnosticity"]).all()
    assert (table["diagnosticity"] <= table["high"]).all()


def test_ones_own_planted_corpus() -> None:
    """On the hand game good outweighs all: a permutation that moves it loses."""
    game = hand_game()
    world = World(reading=game, truth=shapley(game, game.relevant))
    table = diagnosticity({"mine": world}, ["aopc", "entropy"], permutations=40)
    assert table["world"].tolist() == ["mine"] * 4
    aopc = table.iloc[0]
    moved = [permuted(world.truth, number=number).scores.tolist() for number in range(40)]
    expected = sum(0.5 if _same_order(scores) else 1.0 for scores in moved) / 40
    assert aopc["diagnosticity"] == pytest.approx(expected)
    assert table["texts"].tolist() == [1] * 4
    assert aopc["ties"] == pytest.approx(sum(map(_same_order, moved)) / 40)
    assert table["verdict"].tolist()[0] == DISTRUST  # one text shows nothing
    with pytest.raises(InputError, match="texts and permutations must be 1 or more; got 200 and 0"):
        diagnosticity({"mine": world}, ["aopc"], permutations=0)
    with pytest.raises(InputError, match="true importances of 'mine' must be of the units of its reading"):
        diagnosticity({"mine": World(reading=game, truth=plant("or", texts=3).truth)})


def _same_order(scores: list[float]) -> bool:
    """Whether the curve is the same: good goes first, and dull last or before what has no effect."""
    return scores[1] == max(scores) and scores[2] == min(scores)


def test_all_metrics_that_need_nothing_else_are_watched() -> None:
    table = diagnosticity({"or": plant("or", texts=10)}, permutations=2)
    assert table["metric"].unique().tolist() == [name for name, metric in METRICS.items() if not metric.needs]
