"""From a trace to the tables of Serrano & Smith 2019: values by hand, oracles, and the paper's numbers beside ours."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from heedful.analysis.erasure import first_flips, minimum_flips, single_erasure
from heedful.analysis.flips import FLIP_COLUMNS, MEASURED, SINGLE_COLUMNS, TOPS, in_front, measure
from heedful.analysis.statistics import share
from heedful.claims.erasure import OF_ONE_MODEL
from heedful.config import RunSettings
from heedful.files import write_json
from heedful.papers import serrano2019 as facts
from heedful.pipeline import Run
from heedful.report.exports import save_table
from heedful.report.terminal import print_page
from heedful.store import FORMAT
from heedful.studies.erase import erase_trace
from heedful.studies.measures import quality_table, summary_table, wins_table
from heedful.studies.reproduce import Measured
from heedful.studies.serrano2019 import STUDY, measures
from heedful.studies.serrano2019.tables import table_2, table_2_as_printed, table_3, table_3_as_printed, tail_table
from heedful.studies.study import Trial
from heedful.traces import Trace
from tests.oracles.random_traces import random_trace

HAND: dict[str, Any] = {
    "offsets": [0, 3, 5, 6],
    "attention_weights": [0.5, 0.25, 0.25, 0.5, 0.5, 1.0],
    "polarity_scores": [[0, 4], [0, 1], [0, -2], [0, 1], [0, -3], [0, 1]],
    "bias": [0, 0],
    "labels": [1, 1, 1],
}
"""Instance 0 is for class 1 by .5·4 + .25·1 − .25·2 and flips without its first unit. Instance 1 is for class 0 and
flips without its second; attention, tied, takes the first and then everything, which leaves class 0. Instance 2 has one
unit and flips with it."""


def rows_of(table: pd.DataFrame, **where: object) -> pd.DataFrame:
    for column, value in where.items():
        table = table[table[column] == value]
    return table.reset_index(drop=True)


def test_single_erasures_of_a_hand_made_trace() -> None:
    table = measure(Trace.from_arrays(**HAND))["single"]
    assert table.columns.tolist() == SINGLE_COLUMNS
    attention = rows_of(table, ranking="attention")
    assert attention["instance"].tolist() == [0, 1]  # the third has no other unit
    assert attention["units"].tolist() == [3, 2]
    assert attention["decision"].tolist() == [1, 0]
    assert attention["label"].tolist() == [1, 1]
    assert attention["delta_weight"].tolist() == [0.25, 0.0]
    assert attention["flip_top"].tolist() == [True, False]
    assert attention["flip_random"].tolist() == [False, True]
    assert rows_of(table, ranking="product")["flip_top"].tolist() == [True, True]
    assert table["flip_random"].dtype == bool
    assert (table["delta_js"] == table["js_top"] - table["js_random"]).all()


def test_flips_of_a_hand_made_trace() -> None:
    table = measure(Trace.from_arrays(**HAND), orders=2)["flips"]
    assert table.columns.tolist() == FLIP_COLUMNS
    assert tuple(table["ranking"].unique()) == MEASURED
    assert rows_of(table, ranking="random")["order"].tolist() == [0, 0, 0, 1, 1, 1]
    attention, minimum = (rows_of(table, ranking=name) for name in ("attention", "minimum"))
    assert attention["erased"].isna().tolist() == [False, True, False]
    assert attention["erased"].dropna().tolist() == [1, 1]
    assert minimum["erased"].tolist() == [1, 1, 1]
    assert minimum["fraction"].tolist() == pytest.approx([1 / 3, 1 / 2, 1])
    assert minimum["mass"].tolist() == [0.5, 0.5, 1.0]
    assert minimum["units"].tolist() == [3, 2, 1]
    assert np.isnan(attention["mass"][1])


@pytest.mark.parametrize("seed", range(4))
def test_the_frames_are_those_of_the_analyses(seed: int) -> None:
    trace = random_trace(seed, instances=60, longest=8)
    found = measure(trace, seed=seed, orders=2)
    for name in TOPS:
        rows, whole = rows_of(found["single"], ranking=name), single_erasure(trace, by=name, seed=seed)
        whole = whole[trace.lengths.numpy() > 1].reset_index(drop=True)
        assert rows["delta_weight"].tolist() == whole["delta_weight"].tolist()
        assert rows["delta_js"].tolist() == whole["delta_js"].tolist()
        assert rows["flip_top"].tolist() == whole["flip_top"].tolist()
        assert rows["flip_random"].tolist() == whole["flip_random"].tolist()
    random = first_flips(trace, by="random", seed=seed, orders=2)
    assert rows_of(found["flips"], ranking="random")["mass"].tolist() == pytest.approx(random["mass"], nan_ok=True)
    sets, rows = minimum_flips(trace), rows_of(found["flips"], ranking="minimum")
    for instance, positions in enumerate(sets["positions"]):
        weights = trace.attention_weights[trace.instance(instance)]
        expected = np.nan if positions is None else float(weights[positions].sum())
        assert rows["mass"][instance] == pytest.approx(expected, nan_ok=True)


def test_a_trace_without_labels_has_missing_labels() -> None:
    bare = {name: value for name, value in HAND.items() if name != "labels"}
    assert measure(Trace.from_arrays(**bare))["single"]["label"].isna().all()


def test_a_trace_of_single_units_has_no_single_erasure() -> None:
    alone = Trace.from_arrays(offsets=[0, 1], attention_weights=[1.0], polarity_scores=[[1, 0]], bias=[0, 0])
    found = measure(alone)
    assert found["single"].columns.tolist() == SINGLE_COLUMNS
    assert found["single"].empty
    assert found["flips"]["erased"].isna().all()


def test_the_tables_of_a_trace_hold_the_verdicts_that_one_model_can_have() -> None:
    page = erase_trace(random_trace(2, instances=60, longest=8, spread=2.0))
    assert tuple(verdict.claim for _, verdict in page.verdicts()) == OF_ONE_MODEL
    screen = Console(record=True, width=240, file=io.StringIO())
    print_page(page, screen)
    (_, first), *_ = page.verdicts()
    said = " ".join(screen.export_text().split())
    assert f"S1 {first.statement} {first.decision} {first.words}" in said


@pytest.fixture(scope="module")
def frames(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """Two seeds of one model, called by names that the paper has."""
    made = {}
    for seed in (0, 1):
        folder = tmp_path_factory.mktemp(f"run{seed}")
        random_trace(seed, instances=30, longest=6, spread=2.0).save(folder / "trace.safetensors")
        metrics = {"test_accuracy": 0.6, "test_accuracy_low": 0.5, "test_accuracy_high": 0.7}
        settings = RunSettings().change({"training.seed": seed})
        values = {"metrics": metrics, "settings": settings.model_dump(mode="json")}
        write_json(folder / "manifest.json", {"format": FORMAT, **values})
        made[Trial(dataset="yelp10k", model="HANrnn", settings=settings)] = Run(folder)
    wanted = {name: replace(one, trials=list(made)) for name, one in measures(STUDY.whole).items() if one.trials}
    return Measured(wanted, STUDY.whole, {trial.settings: run for trial, run in made.items()})


def test_runs_stand_below_each_other_with_their_names_in_front(frames: Measured) -> None:
    assert set(frames) == {"single", "flips", "runs", "inputs"}
    for table in (frames[name] for name in ("single", "flips", "runs")):
        assert table.columns.tolist()[:3] == ["dataset", "model", "seed"]
        assert table.columns.tolist()[3:7] == ["structure", "attention", "encoder", "contextual"]
        assert table["seed"].unique().tolist() == [0, 1]
    assert frames["single"].columns.tolist()[7:] == SINGLE_COLUMNS
    assert frames["flips"].columns.tolist()[7:] == FLIP_COLUMNS
    assert frames["runs"]["instances"].tolist() == [30, 30]
    assert frames["runs"]["test_accuracy_high"].tolist() == [0.7, 0.7]
    expected = measure(random_trace(1, instances=30, longest=6, spread=2.0), seed=1)["flips"]["erased"]
    assert rows_of(frames["flips"], seed=1)["erased"].equals(expected)


def test_tables_can_be_made_where_nothing_flips() -> None:
    stubborn = Trace.from_arrays(
        offsets=[0, 2, 3], attention_weights=[0.5, 0.5, 1.0], polarity_scores=[[1, 0]] * 3, bias=[1, 0]
    )
    said = {"dataset": "mine", "model": "FLANrnn", "seed": 0}
    made = {name: in_front(said, table) for name, table in measure(stubborn).items()}
    summary = summary_table(made["flips"])
    assert summary["instances"].tolist() == [0] * len(summary)
    assert summary["median_mass"].isna().all()
    assert quality_table(made["flips"]).empty
    assert wins_table(made["flips"])["instances"].tolist() == [0] * 15
    assert tail_table(made["flips"]).empty
    assert rows_of(table_2(made["single"]), cell="neither")["share"].tolist() == [100.0] * 3


def test_every_table_of_the_study_is_made_and_saved(frames: Measured, tmp_path: Path) -> None:
    made: dict[str, pd.DataFrame] = {}
    for one in STUDY.tables:
        if set(one.needs) <= {"single", "flips", "runs"}:
            made |= one.make(frames)
            assert one.title
            assert len(one.show(made).cells)
    for name, table in made.items():
        save_table(table, tmp_path / name)
        assert len(pd.read_parquet(tmp_path / f"{name}.parquet")) == len(table) > 0
    assert made["table3"]["paper"].tolist() == [63.0]
    assert made["quality"]["seeds"].tolist() == [2] * 5


def a_run(counts: tuple[int, int, int, int], seed: int = 0, ranking: str = "attention") -> pd.DataFrame:
    """So many instances in each cell: both, only top, only other, neither."""
    top, other = np.repeat([True, True, False, False], counts), np.repeat([True, False, True, False], counts)
    table = pd.DataFrame({"ranking": ranking, "flip_top": top, "flip_random": other})
    return in_front({"dataset": "yelp10k", "model": "HANrnn", "seed": seed}, table)


def test_table_2_of_one_seed_has_wilsons_interval_and_the_papers_number() -> None:
    table = table_2(a_run((2, 10, 4, 84)))
    assert table["cell"].tolist() == ["both", "only top", "only other", "neither"]
    assert table["share"].tolist() == pytest.approx([2, 10, 4, 84])
    wilson = share(10, 100)
    assert table[["low", "high"]].iloc[1].tolist() == pytest.approx([100 * wilson.low, 100 * wilson.high])
    assert table["paper"].tolist() == [1.5, 8.9, 1.9, 87.7]
    assert table["difference"].tolist() == pytest.approx([0.5, 1.1, 2.1, -3.7])
    printed = table_2_as_printed(table)
    assert printed["only top"].tolist() == [f"10.0 [{100 * wilson.low:.1f}, {100 * wilson.high:.1f}], paper 8.9"]


def test_table_2_of_several_seeds_has_students_interval() -> None:
    table = table_2(pd.concat([a_run((0, 10, 0, 90)), a_run((0, 12, 0, 88), seed=1)]))
    row = table[table["cell"] == "only top"].iloc[0]
    half = 12.706204736 * np.std([10, 12], ddof=1) / np.sqrt(2)
    assert (row["share"], row["low"], row["high"]) == pytest.approx((11, max(11 - half, 0), 11 + half))
    assert (row["instances"], row["seeds"]) == (100, 2)


def test_table_3_beside_the_paper() -> None:
    rows = [("amazon-multi", "FLANconv", 0.5), ("amazon-multi", "HANrnn", 0.55), ("agnews", "HANrnn", 0.9)]
    runs = pd.DataFrame(
        [
            {"dataset": dataset, "model": model, "seed": 0, "instances": 100, "test_accuracy": value,
             "test_accuracy_low": value - 0.1, "test_accuracy_high": value + 0.1, "largest_class": 0.25}
            for dataset, model, value in rows
        ]
    )  # fmt: skip
    table = table_3(runs)
    assert table["accuracy"].tolist() == pytest.approx([50, 55, 90])
    assert table["paper"].tolist()[:2] == [54.4, 56.9]
    assert np.isnan(table["paper"][2])
    assert table["difference"].tolist()[:2] == pytest.approx([-4.4, -1.9])
    printed = table_3_as_printed(table)
    assert printed["dataset"].tolist() == ["amazon-multi", "agnews"]
    assert printed["HANrnn"].tolist() == ["55.0 [45.0, 65.0], paper 56.9", "90.0 [80.0, 100.0]"]
    assert printed["FLANconv"].tolist() == ["50.0 [40.0, 60.0], paper 54.4", "–"]
    assert printed["largest class"].tolist() == ["25.0", "25.0"]


def some_flips(seed: int = 0) -> pd.DataFrame:
    """Four instances of ten units and one of one: attention never flips the fourth, the third flips only with all."""
    erased: dict[tuple[str, int], list[int | None]] = {
        ("attention", 0): [2, 6, 10, None, 1],
        ("random", 0): [2, 8, 10, 4, 1],
        ("random", 1): [6, 8, 10, 4, 1],
        ("minimum", 0): [2, 3, 10, 4, 1],
    }
    parts = []
    for (ranking, order), counts in erased.items():
        part = pd.DataFrame({"ranking": ranking, "order": order, "instance": range(5), "units": [10] * 4 + [1]})
        part["erased"] = pd.array(counts, dtype="Int64")
        part["fraction"] = (part["erased"] / part["units"]).astype("Float64").astype(float)
        part["mass"] = np.where(part["erased"].isna(), np.nan, [0.1, 0.2, 0.3 + 0.2 * seed, 0.4, 1.0])
        parts.append(part)
    said = {"dataset": "amazon-multi", "model": "FLANnoenc", "seed": seed}
    return in_front(said, pd.concat(parts, ignore_index=True))


def row_of(table: pd.DataFrame, **where: object) -> dict[str, Any]:
    (row,) = rows_of(table, **where).to_dict("records")
    return {str(name): value for name, value in row.items()}


def test_the_summary_has_both_conventions_and_means_over_seeds() -> None:
    table = summary_table(pd.concat([some_flips(), some_flips(1)], ignore_index=True))
    own = row_of(table, ranking="random", convention="own")
    assert (own["instances"], own["one_unit"], own["never"], own["seeds"]) == (4, 1, 0, 2)
    assert own["median_fraction"] == pytest.approx(0.7)
    assert own["median_mass"] == pytest.approx((0.25 + 0.3) / 2)
    common = row_of(table, ranking="random", convention="common")
    assert common["instances"] == 3
    assert common["median_fraction"] == pytest.approx(0.8)
    assert common["median_mass"] == pytest.approx(0.2)
    assert row_of(table, ranking="attention", convention="own")["never"] == 1


def test_quality_says_where_no_ranking_can_miss() -> None:
    row = row_of(quality_table(some_flips()), ranking="attention")
    assert row["instances"] == 4
    assert row["forced"] == 0.25
    assert row["attained"] == pytest.approx(1 / 3)  # of the three others
    assert row["mean_gap"] == pytest.approx(1.0)


def test_wins_by_hand() -> None:
    row = row_of(wins_table(some_flips()), first="attention", second="random")
    assert (row["instances"], row["first_wins"], row["second_wins"], row["ties"]) == (3, 2, 0, 1)
    assert row["first_share"] == pytest.approx(2 / 3)
    assert np.isnan(row["ratio"])
    assert row["p_value"] == 0.5
    assert row_of(wins_table(some_flips()), first="random", second="minimum")["ratio"] == 0.0


def test_the_tail_stands_beside_the_papers() -> None:
    table = tail_table(some_flips())
    assert row_of(table, ranking="attention")["over_half"] == pytest.approx(200 / 3)
    random = row_of(table, ranking="random")
    assert (random["over_half"], random["instances"]) == (62.5, 4)  # five of eight, as sure as four instances are
    assert random["high"] == pytest.approx(100 * share(2, 4).high)
    assert [row_of(table, ranking=name)["paper"] for name in ("random", "attention")] == [12.4, 2.8]
    assert pd.isna(row_of(table, ranking="minimum")["paper"])


def test_the_papers_tables_are_complete_and_sum_to_a_hundred() -> None:
    assert facts.TABLE_2["yahoo"] == (0.5, 8.7, 1.3, 89.6)
    assert set(facts.FIGURE_13) == set(facts.MODELS)
    tables = [facts.TABLE_2, *facts.FIGURE_13.values()]
    for table in tables:
        assert set(table) == set(facts.NAMES)
        for cells in table.values():
            assert sum(cells) == pytest.approx(100, abs=0.15)
    assert all(len(row) == len(facts.MODELS) for row in facts.TABLE_3.values())


@pytest.mark.parametrize(
    ("dataset", "model", "printed"),
    [
        ("yahoo", "FLANrnn", 75.5),
        ("imdb-ratings", "HANnoenc", 46.1),
        ("yelp", "FLANnoenc", 58.2),
        ("sst", "HANrnn", None),
    ],
)
def test_cells_of_table_3(dataset: str, model: str, printed: float | None) -> None:
    assert facts.accuracy(dataset, model) == printed


def test_flip_tables_are_known_for_attention_with_the_hanrnn_and_for_the_product() -> None:
    assert facts.flip_cells("yelp10k", "HANrnn", "attention") == dict(
        zip(facts.CELLS, (1.5, 8.9, 1.9, 87.7), strict=True)
    )
    assert facts.flip_cells("yahoo-1k", "FLANconv", "product") == dict(
        zip(facts.CELLS, (1.1, 19.3, 0.0, 79.6), strict=True)
    )
    assert facts.flip_cells("yelp", "HANconv", "attention") is None
    assert facts.flip_cells("yelp", "HANrnn", "gradient") is None
    assert facts.flip_cells("agnews", "HANrnn", "product") is None


def test_the_products_top_flips_more_than_attentions_in_the_paper() -> None:
    """Appendix A.3 says so of the sums of the rows in which the top unit flips."""
    for name, cells in facts.TABLE_2.items():
        assert sum(facts.FIGURE_13["HANrnn"][name][:2]) > sum(cells[:2])
