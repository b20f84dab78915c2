"""Every metric by hand on its card's example, and beside a literal implementation on hundreds of random games."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from heedful.analysis.faithfulness import METRICS, Planted, cards, faithfulness, find_metric
from heedful.analysis.faithfulness.cost import Cost, TooMuch, cost_of_metrics
from heedful.analysis.faithfulness.planted import hand_game
from heedful.errors import InputError, UnknownName
from heedful.explanations import Explanation
from heedful.subjects import Units
from heedful.text.ragged import offsets_of
from tests.covering import covers
from tests.oracles import faithfulness as oracle

pytestmark = pytest.mark.usefixtures("one_thread")

LN3 = math.log(3)

HAND = {
    # Without good p = 1/4, without dull 9/10, without both 1/2; of the whole text 3/4. The weights order good, a, film,
    # dull, the attention dull, good, a, film. 20 % of four units is one.
    "comprehensiveness": (3 / 4 - 1 / 4, 3 / 4 - 9 / 10),
    "sufficiency": (3 / 4 - 9 / 10, 3 / 4 - 1 / 4),
    # Shares of 1, 5, 10, 20 and 50 % are 1, 1, 1, 1 and 2 units; dull and good gone leave 1/2, alone they have 3/4.
    "aopc_comprehensiveness": (1 / 2, (4 * (-3 / 20) + 1 / 4) / 5),
    "aopc_sufficiency": (-3 / 20, (4 * (1 / 2) + 0) / 5),
    # Three times 1/4 and last 1/2; 9/10 and three times 1/2.
    "aopc": ((3 * (1 / 2) + 1 / 4) / 4, (-3 / 20 + 3 * (1 / 4)) / 4),
    # The smallest area takes dull first and good last: (3 (−3/20) + 1/4) / 4 = −1/20.
    "naopc": (1, (3 / 20 + 1 / 20) / (7 / 16 + 1 / 20)),
    # Heights 3/4, 1/4, 1/4, 1/4, 1/2 and 3/4, 9/10, 1/2, 1/2, 1/2; the ends count half.
    "deletion": ((5 / 8 + 3 / 4) / 4, (5 / 8 + 9 / 10 + 1) / 4),
    # Heights 1/2, 9/10, 9/10, 9/10, 3/4 and 1/2, 1/4, 3/4, 3/4, 3/4.
    "insertion": ((5 / 8 + 27 / 10) / 4, (5 / 8 + 1 / 4 + 3 / 2) / 4),
    # 1/4 is the other class; with dull and good gone 1/2 is a tie, which the first class has.
    "flip_fraction": (1 / 4, 2 / 4),
    "single_flip": (1, 0),
    "log_odds": (math.log(1 / 4) - math.log(3 / 4), math.log(9 / 10) - math.log(3 / 4)),
    # Effects 0, 1/2, −3/20, 0. Of six pairs a and film tie in both; attention has 2 right and 3 wrong.
    "tau_loo": (1, -1 / 5),
    # Without dull, to which attention gives most, p rises.
    "violation": (0, 1),
    # Chances of mean 1/4: the weights less their smallest, ln 3 (1, 3, 0, 1), give 1/5, 3/5, 0, 1/5; the attention
    # less 1/10 gives 0, 1/3, 2/3, 0. p falls by 1/4 without any units. The weights keep good in 3 of 5 draws, and then
    # nothing is lost; without it all is. The attention keeps good in 1 of 3, with dull or without.
    "soft_sufficiency": (3 / 5, 1 / 3),
    "soft_comprehensiveness": (3 / 5, 1 / 3),
    # Falls 0, 1/2, −3/20, 1/4 for none, good, dull, both: squares sum to .335. Weights sum to 0, 2, −1, 1 (ln 3):
    # products 1.4, squares 6, so (.335 − 1.4² / 6) / 4. Attention in tenths, 3g + 5d + a + f, has mean 5, variance 9,
    # covariance .0875 with the falls, whose mean is .15: .335 / 4 − (.0875 + .75)² / 34.
    "infidelity": ((0.335 - 1.96 / 6) / 4, 0.08375 - 0.8375**2 / 34),
    # The same moments about their means: 1.1 / √(5 · .245), and .0875 / √(9 · .06125).
    "correlation": (1.1 / math.sqrt(5 * 0.245), 0.0875 / math.sqrt(9 * 0.06125)),
    # ln 3 on √5 ln 3; √.02 on √.36.
    "sensitivity": (1 / math.sqrt(5), math.sqrt(0.02) / 0.6),
    # Rising 0, 0, 1, 2 with −3, −1, 1, 3 on 4 · 3; .1, .1, .3, .5 with the same on 4.
    "gini": ((1 + 6) / 12, (-0.3 - 0.1 + 0.3 + 1.5) / 4),
    # Shares 2/3 and 1/3; .1, .3, .5, .1.
    "entropy": (
        2 / 3 * math.log(3 / 2) + 1 / 3 * LN3,
        0.2 * math.log(10) + 0.3 * math.log(10 / 3) + 0.5 * math.log(2),
    ),
    # With each other: the pairs of tau_loo; good is not dull.
    "agreement_tau": (-1 / 5, -1 / 5),
    "agreement_top": (0, 0),
    # Marked: good, dull. The weights find good with precision 1 and dull last, with 2/4; the attention both first.
    "auprc": ((1 + 2 / 4) / 2, 1),
    # Half of the units are marked, so two are chosen: a good, of which one is right; good dull.
    "token_f1": (2 * 1 / (2 + 2), 1),
    # a good and good dull share one of three units.
    "iou_f1": (0, 1),
    "seconds": (0.5, 0.25),
    "passes": (5, 1),
}


def double(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def by_hand() -> tuple[Planted, list[Explanation], dict[str, Callable[[int], Explanation]]]:
    game, target = hand_game(), torch.tensor([1])
    weights = Explanation.on(
        game.units, game.weights, target, game.class_names, method="weights", signed=True, seconds=0.5, passes=5
    )
    attention = Explanation.on(
        game.units,
        double(0.1, 0.3, 0.5, 0.1),
        target,
        game.class_names,
        method="attention",
        signed=False,
        seconds=0.25,
        passes=1,
    )
    again = {
        "weights": lambda _: weights.with_scores(double(0, 2 * LN3, -LN3, LN3)),
        "attention": lambda _: attention.with_scores(double(0.1, 0.3, 0.4, 0.2)),
    }
    return game, [weights, attention], again


@covers(metric=HAND)
def test_every_metric_is_its_card_by_hand() -> None:
    game, explanations, again = by_hand()
    found = faithfulness(game, explanations, list(METRICS), rationales=[[False, True, True, False]], again=again)
    for name, expected in HAND.items():
        said = tuple(eval(text, {"log": math.log, "sqrt": math.sqrt}) for text in METRICS[name].example)
        assert said == pytest.approx(expected, abs=1e-12), name
        measured = tuple(found.table.loc[found.table["metric"] == name, "value"].tolist())
        assert measured == pytest.approx(expected, abs=1e-12), name
    assert found.passes == 16  # all sets of four units, each asked about once
    remarks = found.table.drop_duplicates("metric").set_index("metric")["remark"].to_dict()
    assert remarks["auprc"] == "base rate 0.500"
    assert remarks["naopc"].startswith("both ends proven on 100.0%")


def test_at_another_share_by_hand() -> None:
    """Half of the units are two: good and a; dull and good."""
    game, explanations, _ = by_hand()
    table = faithfulness(game, explanations, ["comprehensiveness@0.5", "sufficiency@2", "log_odds@1"]).table
    assert table["metric"].tolist()[:3] == ["comprehensiveness@0.5", "sufficiency@2", "log_odds@1"]
    assert table["value"].tolist() == pytest.approx([1 / 2, -3 / 20, -LN3, 1 / 4, 0, math.log(6 / 5)])


def test_cards_say_everything() -> None:
    for card in cards():
        assert all(card[name] for name in ("title", "formula", "source", "inflates", "elsewhere", "signs")), card[
            "name"
        ]
        assert card["direction"] in ("higher", "lower", "neither")
    assert [card["name"] for card in cards() if not card["sees_model"]][:3] == ["sensitivity", "gini", "entropy"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("aopcs", "There is no metric 'aopcs'. Did you mean 'aopc'?"),
        ("aopc@0.5", "There is no metric at a share of the units 'aopc'"),
        ("sufficiency@half", "'sufficiency@half' must have a number after @"),
    ],
)
def test_a_metric_that_is_not_there_is_named(name: str, said: str) -> None:
    with pytest.raises((UnknownName, InputError), match=said.replace(".", "\\.").replace("?", "\\?")):
        find_metric(name)


TEXTS, LONGEST = 600, 6


def random_games(seed: int) -> tuple[Planted, list[Explanation], list[list[bool]]]:
    """Linear games of one to six units; scores with many ties, some all alike, some all zero."""
    rng = np.random.default_rng(seed)
    units = Units(offsets=offsets_of(torch.from_numpy(rng.integers(1, LONGEST + 1, TEXTS))))
    count = int(units.offsets[-1])
    weights = torch.from_numpy(rng.normal(size=count) * rng.choice([0, 1, 2], count))
    game = Planted(on=units, weights=weights, bias=torch.from_numpy(rng.normal(size=TEXTS)))
    targets = torch.where(torch.from_numpy(rng.random(TEXTS)) < 0.8, game.decisions, 1 - game.decisions)
    signed, sizes = rng.integers(-3, 4, count) / 2, rng.integers(0, 4, count) / 4
    explanations = [
        Explanation.on(units, torch.from_numpy(scores), targets, game.class_names, method=name, signed=name == "signed")
        for name, scores in (("signed", signed), ("unsigned", sizes))
    ]
    marks = rng.random(count) < 0.4
    bounds = units.offsets.tolist()
    return game, explanations, [marks[a:b].tolist() for a, b in pairwise(bounds)]


def literal(
    game: Planted, explanations: Sequence[Explanation], marks: list[list[bool]], row: int, place: int
) -> dict[str, float]:
    """All values of one text of one explanation by the oracle."""
    own = slice(int(game.units.offsets[row]), int(game.units.offsets[row + 1]))
    scores, other = (explanations[at].scores[own].tolist() for at in (place, 1 - place))
    target = int(explanations[place].targets[row])
    p = oracle.linear(game.weights[own].tolist(), float(game.bias[row]), target)
    share = float(np.mean([sum(one) / len(one) for one in marks if any(one)]))
    seeing = ["comprehensiveness", "sufficiency", "aopc_comprehensiveness", "aopc_sufficiency", "aopc", "naopc"]
    seeing += ("deletion", "insertion", "log_odds", "tau_loo", "violation", "infidelity", "correlation")
    soft = ("soft_sufficiency", "soft_comprehensiveness") if len(scores) <= 4 else ()
    found = {name: getattr(oracle, name)(p, scores) for name in (*seeing, *soft)}
    found |= {name: getattr(oracle, name)(p, scores, target) for name in ("flip_fraction", "single_flip")}
    found |= {name: getattr(oracle, name)(scores) for name in ("gini", "entropy")}
    found |= {"agreement_tau": oracle.tau(scores, other), "agreement_top": oracle.common_tops(scores, other)}
    found |= {"auprc": oracle.auprc(scores, marks[row])}
    return found | {name: getattr(oracle, name)(scores, marks[row], share) for name in ("token_f1", "iou_f1")}


@covers(metric=[name for name in HAND if name not in ("sensitivity", "seconds", "passes")])
def test_every_metric_is_the_literal_one_on_random_games() -> None:
    game, explanations, marks = random_games(3)
    names = [name for name, metric in METRICS.items() if name not in ("sensitivity", "seconds", "passes")]
    found = faithfulness(game, explanations, names, rationales=marks, resamples=10)
    for place, one in enumerate(explanations):
        expected = pd.DataFrame([literal(game, explanations, marks, row, place) for row in range(TEXTS)])
        assert set(expected) == set(names)
        own = found.instances[found.instances["method"] == one.method]
        for name in names:
            values = own.loc[own["metric"] == name, "value"].to_numpy(dtype=np.float64)
            known = (game.units.lengths <= 4).numpy() if name.startswith("soft") else np.ones(TEXTS, np.bool_)
            np.testing.assert_allclose(values[known], expected[name].to_numpy()[known], atol=1e-7, err_msg=name)
    means = found.instances.groupby(["method", "metric"], sort=False)["value"].mean()
    np.testing.assert_allclose(found.table["value"], means, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in METRICS if METRICS[name].sees_model])
def test_what_a_metric_asks_is_known_beforehand(name: str) -> None:
    """No more changed texts than were said, and of long texts nearly as many."""
    lengths = torch.tensor([3, 11, 30])
    units = Units(offsets=offsets_of(lengths))
    chance = torch.Generator().manual_seed(0)
    weights = torch.randn(44, generator=chance, dtype=torch.float64)
    pairs = torch.tensor([[0, 1]])
    game = Planted(
        on=units, weights=weights, bias=torch.zeros(3).double(), pairs=pairs, pair_weights=torch.ones(1).double()
    )
    about = (torch.ones(3, dtype=torch.int64), game.class_names)
    drawn = torch.rand(2, 44, generator=chance, dtype=torch.float64)
    said = [
        Explanation.on(units, scores, *about, method=str(number), signed=False) for number, scores in enumerate(drawn)
    ]
    found = faithfulness(game, said, [name])
    cost = cost_of_metrics([METRICS[name]], 2, lengths)
    assert found.passes <= cost.texts <= 2.5 * found.passes
    with pytest.raises(TooMuch, match=r"To measure this the model would have to read up to"):
        faithfulness(game, said, [name], most=cost.units - 1)


def test_a_metric_that_is_named_twice_is_measured_once() -> None:
    game = hand_game()
    said = Explanation.on(game.units, game.weights, torch.ones(1).long(), game.class_names, method="w", signed=True)
    found = faithfulness(game, said, ["aopc", "gini", "aopc"])
    assert found.wide().index.tolist() == ["aopc ↑", "gini"]


def test_what_metrics_share_is_counted_once() -> None:
    lengths = torch.tensor([10, 20])
    several = [METRICS[name] for name in ("aopc", "deletion", "insertion", "tau_loo", "violation", "gini")]
    assert cost_of_metrics(several, 3, lengths) == Cost(texts=3 * 2 * 30 + 30, units=3 * 2 * 500 + 500)
