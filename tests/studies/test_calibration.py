"""Planted worlds are what they say, and the answer finds it out."""

from functools import cache

import numpy as np
import pandas as pd
import pytest

from heedful.analysis.statistics import area
from heedful.errors import ConfigError
from heedful.studies.calibration import calibrate, confusion, shown_confusion, worlds
from heedful.studies.planted import KINDS, LENGTHS, SHARES, TRUTHS, Planted, World, plant


@cache
def planted(attention: str, classes: str = "70:30") -> Planted:
    return plant(World(attention=attention, classes=classes, length="short", texts=2000, seed=1))


def planted_area(world: Planted, table: str, column: str) -> float:
    """Words of a class against neutral ones, by what was planted and not by how often they are seen."""
    rows = world.tables[table]
    neutral = rows["token"].str.startswith("neutral")
    return area(rows.loc[~neutral, column].to_numpy(), rows.loc[neutral, column].to_numpy())


def test_attention_is_planted_as_it_is_called() -> None:
    assert planted_area(planted("informative"), "weights", "lift") > 0.95
    assert 0.35 < planted_area(planted("blind"), "tokens", "attention") < 0.65
    assert planted_area(planted("misleading"), "weights", "lift") < 0.05
    assert planted_area(planted("corpus only"), "weights", "lift") > 0.9
    assert planted_area(planted("decision only"), "weights", "lift") < 0.45


@pytest.mark.parametrize("attention", ["informative", "decision only"])
def test_where_attention_finds_what_decides_the_attended_units_push_for_the_label(attention: str) -> None:
    frame = planted(attention).trace.to_frame()
    top = frame.loc[frame.groupby("instance")["attention_weight"].idxmax()]
    assert (top["contribution"] > 0).mean() > 0.95


def test_where_it_does_not_the_most_attended_unit_gives_nothing() -> None:
    frame = planted("corpus only").trace.to_frame()
    top = frame.loc[frame.groupby("instance")["attention_weight"].idxmax()]
    assert (top["contribution"].abs() < 1e-12).mean() > 0.95


def test_a_world_has_the_classes_texts_and_lengths_that_it_names() -> None:
    world = planted("blind", "6 skewed")
    assert len(world.trace) == 200
    assert world.trace.labels is not None
    shares = np.bincount(world.trace.labels.numpy()) / 200
    assert shares == pytest.approx(SHARES["6 skewed"], abs=0.006)
    assert float(np.median(world.trace.lengths)) == pytest.approx(LENGTHS["short"], rel=0.1)


def test_the_same_seed_plants_the_same_world() -> None:
    again = plant(World(attention="blind", classes="70:30", length="short", texts=2000, seed=1))
    pd.testing.assert_frame_equal(again.tables["tokens"], planted("blind").tables["tokens"])


def test_there_are_enough_worlds_of_every_kind() -> None:
    listed = worlds()
    assert len(listed) == len(set(listed)) == 576
    assert {world.attention for world in listed} == set(KINDS)
    assert {world.texts for world in listed} == {200, 2_000, 20_000}
    with pytest.raises(ConfigError, match="Calibration takes 1 seed or more and worlds of 100 texts or more"):
        worlds(seeds=0)


FEW = [
    World(attention=attention, classes=classes, length="short", texts=2000, seed=7)
    for attention in TRUTHS
    for classes in ("50:50", "90:10", "10 even")
]


@pytest.fixture(scope="module")
def cases() -> pd.DataFrame:
    return calibrate(FEW, workers=1)


def test_the_answer_is_never_wrong_on_a_few_clear_worlds(cases: pd.DataFrame) -> None:
    assert len(cases) == 2 * len(FEW)
    wrong = cases[(cases["answer"] != "not shown") & (cases["answer"] != cases["truth"])]
    assert wrong.to_dict("records") == []
    assert (cases["answer"] == "not shown").mean() <= 0.1


def test_cases_do_not_depend_on_the_number_of_processes(cases: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(calibrate(FEW[:3], workers=2), cases.head(6))


def test_confusion_by_hand() -> None:
    columns = ["question", "texts", "truth", "near", "answer"]
    rows = [
        ("corpus", 200, "no", False, "yes"),
        ("corpus", 200, "no", False, "no"),
        ("corpus", 200, "yes", False, "no"),
        ("corpus", 200, "yes", False, "not shown"),
        ("corpus", 200, "yes", True, "not shown"),
    ]
    table = confusion(pd.DataFrame(rows, columns=columns))
    found = table.iloc[0]
    assert (found["wrong_yes"], found["truth_no"]) == (1, 2)
    assert (found["wrong_no"], found["truth_yes"]) == (1, 3)
    assert (found["not_shown"], found["clear"], found["near"], found["near_not_shown"]) == (1, 4, 1, 1)
    assert shown_confusion(table).iloc[0].tolist() == [
        "corpus", 200, 5, "1 of 2 (50.0%)", "1 of 3 (33.3%)", "1 of 4 (25.0%)", "1 of 1 (100.0%)",
    ]  # fmt: skip
