"""Planted worlds are what they say."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
import torch

from heedful.analysis.separation import matched_separation, separation
from heedful.analysis.statistics import area
from heedful.errors import ConfigError
from heedful.studies.calibration.judging import population
from heedful.studies.calibration.planted import attended_share, plant
from heedful.studies.calibration.worlds import (
    LENGTHS,
    PLANTED,
    SHARES,
    TRAINED,
    Case,
    World,
    draw,
    trained_worlds,
    worlds,
)
from heedful.traces import Trace


@cache
def planted(kind: str, classes: str = "70:30", *, bursts: bool = False, bias: bool = False) -> Case:
    return plant(World(kind=kind, classes=classes, length="short", texts=2000, seed=1, bursts=bursts, bias=bias))


def planted_area(case: Case, table: str, column: str) -> float:
    """Words of a class against neutral ones, by what was planted and not by how often they are seen."""
    rows = case.seen.tables[table]
    neutral = rows["token"].str.startswith("neutral")
    return area(rows.loc[~neutral, column].to_numpy(), rows.loc[neutral, column].to_numpy())


def most_attended(trace: Trace) -> pd.DataFrame:
    frame = trace.to_frame()
    return frame.loc[frame.groupby("instance")["attention_weight"].idxmax()]


def test_attention_is_planted_as_it_is_called() -> None:
    assert planted_area(planted("informative"), "weights", "lift") > 0.95
    assert 0.35 < planted_area(planted("blind"), "tokens", "attention") < 0.65
    assert planted_area(planted("misleading"), "weights", "lift") < 0.05
    assert planted_area(planted("corpus only"), "weights", "lift") > 0.9
    assert planted_area(planted("decision only"), "weights", "lift") < 0.45


@pytest.mark.parametrize("kind", ["informative", "decision only"])
def test_where_attention_finds_what_decides_the_attended_units_push_for_the_label(kind: str) -> None:
    assert (most_attended(planted(kind).seen.trace)["contribution"] > 0).mean() > 0.95


def test_where_it_does_not_the_most_attended_unit_gives_nothing() -> None:
    assert (most_attended(planted("corpus only").seen.trace)["contribution"].abs() < 1e-12).mean() > 0.95


def test_where_it_is_found_in_part_the_share_of_texts_is_the_planted_one() -> None:
    case = planted("found in part")
    share = case.planted["decision"]
    assert isinstance(share, float)
    top = most_attended(case.whole.trace)["contribution"]
    assert (top > 1).mean() == pytest.approx(share, abs=0.02)
    assert (top.abs() < 1e-12).mean() == pytest.approx(1 - share, abs=0.02)
    assert case.whole.trace.accuracy() > 0.99


@pytest.mark.parametrize("classes", ["70:30", "6 skewed"])
def test_where_one_unit_decides_no_other_speaks_for_its_class_and_where_several_do_they_say_the_same(
    classes: str,
) -> None:
    one = planted("only one", classes).whole.trace
    assert one.labels is not None
    own = one.polarity_scores.gather(1, one.labels[one.segments][:, None])
    speaking = (own[:, 0] > one.polarity_scores.median(1).values).numpy()
    assert np.bincount(one.segments.numpy(), speaking).tolist() == [1] * len(one)
    assert speaking[most_attended(one).index].mean() > 0.95
    several = planted("redundant", classes).whole.trace
    said = several.to_frame().groupby("instance")["contribution"].nlargest(3).groupby(level=0).min()
    assert (said > 0).mean() > 0.98
    for trace in (one, several):
        assert trace.accuracy() > 0.98


def test_of_an_unsound_world_so_many_words_push_to_their_class_as_were_not_turned() -> None:
    tokens = planted("unsound").whole.tables["tokens"]
    polar = tokens[~tokens["group"].isin(["neutral", "none"])]
    right = np.sign(polar["polarity"]) == np.where(polar["group"] == "positive", 1, -1)
    assert 0.6 <= right.mean() <= 1
    assert population(planted("unsound").whole).numbers["C1"].value == pytest.approx(right.mean())


def test_a_bias_puts_one_class_ahead_and_leaves_most_decisions_as_they_are() -> None:
    without, biased = planted("informative").seen.trace, planted("informative", bias=True).seen.trace
    assert without.bias.tolist() == [0, 0]
    assert sorted(biased.bias.tolist())[0] == 0 < sorted(biased.bias.tolist())[1]
    assert (biased.predictions == without.predictions).double().mean() > 0.8


def test_in_bursts_a_word_is_repeated_in_its_text() -> None:
    def distinct(bursts: bool) -> float:
        world = World(kind="blind", classes="50:50", length="long", texts=200, seed=0, bursts=bursts)
        texts = draw(world, 200, np.random.default_rng(0))
        return len(set(zip(texts.segments, texts.words, strict=True))) / len(texts.words)

    assert distinct(bursts=False) > 1.8 * distinct(bursts=True)


def test_bursts_keep_the_words_of_a_class_in_its_texts() -> None:
    world = World(kind="blind", classes="3 even", length="short", texts=300, seed=0, bursts=True)
    texts = draw(world, 300, np.random.default_rng(0))
    owners = world.owners[texts.words]
    own, _ = world.own_words
    assert set(owners[texts.places < own] - texts.labels[texts.segments[texts.places < own]]) == {0}
    assert (np.bincount(texts.segments, owners >= 0) >= own).all()


def test_how_much_of_the_smallest_set_is_attended_to_by_hand() -> None:
    found = Trace.from_arrays(
        offsets=[0, 4, 7, 9],
        attention_weights=[0.4, 0.3, 0.2, 0.1, 0.5, 0.25, 0.25, 0.5, 0.5],
        polarity_scores=[2, -1, 4, -1, -1, 8, -1, 1, 1],
        bias=[0],
    )
    # 0.8 − 0.3 + 0.8 − 0.1: both that push must go, of which one is among the two most attended units.
    # −0.5 + 2 − 0.25: the one that pushes is not the most attended. The third flips only when everything is erased.
    assert attended_share(found) == pytest.approx((1 / 2 + 0) / 2)


def test_a_world_has_the_classes_texts_and_lengths_that_it_names() -> None:
    trace = planted("blind", "6 skewed").seen.trace
    assert len(trace) == 200
    assert trace.labels is not None
    assert np.bincount(trace.labels.numpy()) / 200 == pytest.approx(SHARES["6 skewed"], abs=0.006)
    assert float(np.median(trace.lengths)) == pytest.approx(LENGTHS["short"], rel=0.1)


def test_the_same_seed_plants_the_same_world() -> None:
    again = plant(World(kind="blind", classes="70:30", length="short", texts=2000, seed=1))
    pd.testing.assert_frame_equal(again.seen.tables["tokens"], planted("blind").seen.tables["tokens"])
    assert torch.equal(again.whole.trace.attention_scores, planted("blind").whole.trace.attention_scores)


def test_there_are_enough_worlds_of_every_kind() -> None:
    listed, grown = worlds(), trained_worlds()
    assert len(listed) == len(set(listed)) == 1056
    assert len(grown) == len(set(grown)) == 192
    assert {world.kind for world in listed} == set(PLANTED)
    assert {world.kind for world in grown} == set(TRAINED)
    assert {world.texts for world in listed} == {200, 2_000, 20_000}
    with pytest.raises(
        ConfigError, match="Calibration takes 1 seed or more, from 0 on, and worlds of 100 texts or more"
    ):
        worlds(seeds=0)


def test_other_seeds_are_other_worlds() -> None:
    assert not set(worlds()) & set(worlds(first=2))
    assert not set(trained_worlds()) & set(trained_worlds(first=2))


@pytest.mark.parametrize("seed", [0, 3])
def test_attention_that_follows_frequency_alone_is_told_from_one_that_follows_words(seed: int) -> None:
    """With no regard to frequency half of these worlds would have an area far above the line."""
    case = plant(World(kind="frequency", classes="50:50", length="short", texts=20_000, seed=seed))
    table = case.seen.tables["tokens"]
    assert abs(separation(table).value - 0.5) > 0.2
    assert matched_separation(table).value == pytest.approx(0.5, abs=0.12)


@pytest.mark.parametrize("coin", ["bursts", "bias"])
def test_half_of_the_worlds_have_bursts_and_half_a_bias(coin: str) -> None:
    assert np.mean([getattr(world, coin) for world in worlds()]) == pytest.approx(0.5, abs=0.05)
