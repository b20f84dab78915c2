"""Pictures of erasure: boxes, tails, clouds, counts and flip tables show the numbers of hand-made tables."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from heedful.analysis.quality import by_ranking, erasure_curves, excess, with_common
from heedful.figures.erasure import (
    COMMON,
    RANKINGS,
    Grid,
    divergence_clouds,
    erased_boxes,
    excess_curves,
    flip_curves,
    flip_matrices,
    negative_counts,
)
from heedful.figures.picture import Rendered
from tests.covering import covers

GRID = Grid(models=("HANrnn",), datasets={"yelp10k": "Yelp"})


def flips_table(
    erased: dict[str, list[int | None]], *, units: int = 10, model: str = "HANrnn", dataset: str = "yelp10k"
) -> pd.DataFrame:
    """A row for each ranking and instance; all instances have the same number of units, mass is half the fraction."""
    rows = [
        (dataset, model, 0, ranking, 0, instance, units, count, np.nan if count is None else count / units)
        for ranking, counts in erased.items()
        for instance, count in enumerate(counts)
    ]
    columns = ["dataset", "model", "seed", "ranking", "order", "instance", "units", "erased", "fraction"]
    table = pd.DataFrame(rows, columns=columns).astype({"erased": "Int64"})
    return table.assign(mass=table["fraction"] / 2)


CURVED = flips_table({"attention": [2, 4, 10, None, 10], "minimum": [1, 2, 3, 4, 10]})
"""Ten units each; the decision of the last text rests on no part of it."""


def test_erasure_curves_count_what_is_flipped_by_a_part_of_the_text() -> None:
    curves = erasure_curves(by_ranking(CURVED), points=11).pivot(index="fraction", columns="ranking", values="flipped")
    assert curves.index.tolist() == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    assert curves["attention"].tolist() == [0.0, 0.0, 0.25, 0.25, *[0.5] * 7]  # two of four, never by everything
    assert curves["minimum"].tolist() == [0.0, 0.25, 0.5, 0.75, *[1.0] * 7]
    alone = CURVED[CURVED["instance"] == 4]
    assert erasure_curves(by_ranking(alone))["flipped"].isna().all()


@covers(figure=("audit erasure-curves",))
def test_erasure_curves_are_drawn_by_ranking() -> None:
    (axis,) = flip_curves(erasure_curves(by_ranking(CURVED), points=11)).axes
    lines = {str(line.get_label()): np.asarray(line.get_ydata()).tolist() for line in axis.lines}
    assert list(lines) == ["attention", "minimum"]
    assert lines["attention"][2:5] == [0.25, 0.25, 0.5]
    assert axis.get_xlabel() == "share of the text that is erased"


def single_table(
    pairs: list[tuple[float, float]], *, model: str = "HANrnn", ranking: str = "attention"
) -> pd.DataFrame:
    """Δα and ΔJS of each instance."""
    table = pd.DataFrame(pairs, columns=["delta_weight", "delta_js"])
    return table.assign(dataset="yelp10k", model=model, seed=0, ranking=ranking, instance=range(len(pairs)), units=5)


def panel(figure: Figure, title: str) -> Axes:
    (axis,) = [axis for axis in figure.axes if axis.get_title(loc="left") == title]
    return axis


def texts(axis: Axes) -> list[str]:
    return [text.get_text() for text in axis.texts]


FIVE = flips_table(
    {
        "attention": [2, 4, 6, 8, None],
        "gradient": [1, 2, 3, 4, 10],
        "minimum": [1, 2, 3, 4, 5],
    }
)


def test_boxes_hold_medians_and_quartiles_of_what_each_ranking_flips() -> None:
    axis = panel(erased_boxes(FIVE, GRID), "Yelp, HANrnn")
    assert [label.get_text() for label in axis.get_yticklabels()] == ["attention", "gradient", "minimum"]
    boxes = [np.asarray(patch.get_path().vertices)[:, 0] for patch in axis.patches]
    assert (boxes[0].min(), boxes[0].max()) == pytest.approx((0.35, 0.65))
    assert (boxes[2].min(), boxes[2].max()) == pytest.approx((0.2, 0.4))
    assert texts(axis) == ["0.50 · 50 % > ½ · n 4", "0.30 · 20 % > ½ · n 5", "0.30 · 0 % > ½ · n 5"]


def test_diamonds_stand_on_the_instances_that_all_rankings_flip() -> None:
    figure = erased_boxes(FIVE, GRID)
    diamonds = [line for line in panel(figure, "Yelp, HANrnn").lines if line.get_marker() == "D"]
    places = [float(np.asarray(line.get_xdata())[0]) for line in diamonds]
    assert places == pytest.approx([0.5, 0.25, 0.25])  # without the fifth instance, which attention never flips
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [COMMON]


def test_a_dashed_line_sets_our_rankings_apart() -> None:
    (line,) = [line for line in panel(erased_boxes(FIVE, GRID), "Yelp, HANrnn").lines if line.get_linestyle() == "--"]
    assert list(np.asarray(line.get_ydata())) == [1.5, 1.5]


def test_instances_of_one_unit_are_left_out() -> None:
    lonely = flips_table({"attention": [1], "minimum": [1]}, units=1).assign(instance=9)
    kept = with_common(pd.concat([FIVE, lonely], ignore_index=True))
    assert 9 not in set(kept["instance"])
    assert kept.loc[kept["instance"] == 4, "common"].tolist() == [False, False]


def test_a_random_order_that_does_not_flip_counts_as_everything_and_chooses_nothing() -> None:
    table = flips_table({"attention": [1, 2], "random": [2, None], "minimum": [1, 2]}, units=4)
    kept = with_common(table)
    assert kept["common"].all()
    assert kept.loc[kept["ranking"] == "random", ["fraction", "mass"]].iloc[1].tolist() == [1.0, 1.0]
    figure = erased_boxes(table, GRID)
    diamonds = [line for line in panel(figure, "Yelp, HANrnn").lines if line.get_marker() == "D"]
    assert float(np.asarray(diamonds[0].get_xdata())[0]) == pytest.approx((0.5 + 1.0) / 2)
    assert "0.50 · 0 % > ½ · n 1" in texts(panel(figure, "Yelp, HANrnn"))


def test_masses_are_drawn_without_a_share_above_one_half() -> None:
    axis = panel(erased_boxes(FIVE, GRID, column="mass"), "Yelp, HANrnn")
    assert texts(axis)[0] == "0.25 · n 4"
    assert axis.get_xlabel() == "attention mass erased"


def test_a_ranking_without_masses_has_no_box() -> None:
    without = FIVE.assign(mass=FIVE["mass"].where(FIVE["ranking"] != "minimum"))
    assert len(panel(erased_boxes(without, GRID, column="mass"), "Yelp, HANrnn").patches) == 2


def test_the_tail_is_the_share_above_every_fraction_beside_the_papers() -> None:
    figure = erased_boxes(FIVE, GRID, tail="HANrnn", known={"yelp10k": {"attention": 0.028}})
    axis = figure.axes[1]
    curve = next(line for line in axis.lines if line.get_label() == "attention")
    assert list(np.asarray(curve.get_xdata())) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8])
    assert list(np.asarray(curve.get_ydata()))[:4] == pytest.approx([1, 0.75, 0.5, 0.25])
    (square,) = [line for line in axis.lines if line.get_marker() == "s"]
    assert np.asarray(square.get_data()).tolist() == [[0.5], [0.028]]
    assert "the paper's share" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_excess_is_measured_against_the_minimum() -> None:
    table = excess(FIVE).set_index(["ranking", "instance"])["ratio"]
    assert table["attention"].tolist()[:4] == [2, 2, 2, 2]
    assert np.isnan(table["attention"].iloc[4])
    assert table["gradient"].tolist() == [1, 1, 1, 1, 2]
    assert table["minimum"].tolist() == [1] * 5


def test_curves_begin_at_the_share_that_attains_the_minimum() -> None:
    axis = panel(excess_curves(FIVE, GRID), "Yelp, HANrnn")
    curves = {str(line.get_label()): np.asarray(line.get_ydata()) for line in axis.lines}
    assert list(curves["gradient"]) == pytest.approx([0.8, 1.0, 1.0])
    assert list(curves["attention"]) == pytest.approx([0.8, 0.8])  # all flips at twice the minimum, one never
    assert "minimum" not in curves
    assert texts(axis) == ["5 instances that can be flipped"]


def test_every_model_and_data_set_has_a_panel_and_what_is_missing_says_so() -> None:
    grid = Grid(models=("HANrnn", "FLANrnn"), datasets={"yelp10k": "Yelp", "yahoo-1k": "Yahoo"})
    other = flips_table({"attention": [9], "minimum": [1]}, model="FLANrnn", dataset="yahoo-1k")
    figure = erased_boxes(pd.concat([FIVE, other], ignore_index=True), grid)
    titles = [axis.get_title(loc="left") for axis in figure.axes]
    assert titles == ["Yelp, HANrnn", "Yahoo, HANrnn", "Yelp, FLANrnn", "Yahoo, FLANrnn"]
    assert texts(figure.axes[1]) == texts(figure.axes[2]) == ["no run"]
    assert texts(figure.axes[3])[0] == "0.90 · 100 % > ½ · n 1"


def test_counts_of_negative_differences_by_tenths_of_the_gap() -> None:
    pairs = [(0.05, -0.1), (0.05, 0.2), (0.05, 0.3), (0.35, -0.2), (0.95, 0.5), (1.0, 0.6)]
    assert panel(negative_counts(single_table(pairs[:4]), GRID), "Yelp, HANrnn").get_xlim() == (0, 0.4)
    axis = panel(negative_counts(single_table(pairs), GRID), "Yelp, HANrnn")
    heights = [[bar.get_height() for bar in bars] for bars in axis.containers]
    assert heights[0] == [3, 0, 0, 1, 0, 0, 0, 0, 0, 2]
    assert heights[1] == [1, 0, 0, 1, 0, 0, 0, 0, 0, 0]
    assert texts(axis) == ["33", "100", "2 of 6 instances, 33 %"]


def test_clouds_count_instances_and_follow_the_median() -> None:
    pairs = [(0.31 + 0.01 * step, 0.1 * step) for step in range(5)] + [(0.95, -0.01)]
    elsewhere = single_table([(0.5, 0.69)] * 9, model="FLANrnn")
    by_gradient = single_table([(0.5, 0.6)] * 7, ranking="gradient")
    table = pd.concat([single_table(pairs), elsewhere, by_gradient], ignore_index=True)
    figure = divergence_clouds(table, GRID)
    axis = panel(figure, "Yelp, HANrnn")
    (cloud,) = [part for part in axis.collections if part.get_array() is not None]
    assert np.asarray(cloud.get_array()).sum() == 6
    assert isinstance(cloud.norm, LogNorm)
    assert axis.get_ylim()[1] < 0.5  # the span of what is shown, not of other models and rankings
    (medians,) = [line for line in axis.lines if line.get_marker() == "o"]
    assert np.asarray(medians.get_data()).ravel().tolist() == pytest.approx([0.35, 0.2])
    assert texts(axis) == ["6 instances, ΔJS < 0 in 17 %"]


def test_flip_tables_show_per_cent_and_the_papers() -> None:
    rows = [("both", 1.5, 2.7), ("only top", 8.9, 11.3), ("only other", 1.9, 0.8), ("neither", 87.7, None)]
    table = pd.DataFrame(rows, columns=["cell", "share", "paper"])
    table = table.assign(dataset="yelp10k", model="HANrnn", instances=200)
    axis = panel(flip_matrices(table, GRID, top="attention"), "Yelp, HANrnn")
    assert texts(axis) == ["1.5", "paper 2.7", "8.9", "paper 11.3", "1.9", "paper 0.8", "87.7", "200 instances"]
    places = {text.get_text(): text.get_position() for text in axis.texts}
    assert places["8.9"][0] > places["1.5"][0]  # only the top: right, in the upper row
    assert places["1.9"][1] > places["1.5"][1]  # only another: left, in the lower row
    assert axis.get_ylim() == (2, 0)


@pytest.mark.parametrize("draw", [erased_boxes, excess_curves])
def test_an_empty_table_gives_empty_panels(draw: object) -> None:
    figure = draw(FIVE.head(0), GRID)  # type: ignore[operator]
    assert texts(figure.axes[0]) == ["no run"]


def test_rankings_have_colours_of_their_own() -> None:
    assert len(set(RANKINGS.values())) == len(RANKINGS)


def test_a_ranking_that_flips_nothing_in_one_panel_has_no_curve_there() -> None:
    grid = Grid(models=("HANrnn",), datasets={"yelp10k": "Yelp", "yahoo-1k": "Yahoo"})
    other = flips_table({"attention": [None], "minimum": [1]}, dataset="yahoo-1k")
    figure = excess_curves(pd.concat([FIVE, other], ignore_index=True), grid)
    assert [line.get_label() for line in panel(figure, "Yahoo, HANrnn").lines] == []
    assert [line.get_label() for line in panel(figure, "Yelp, HANrnn").lines] == ["attention", "gradient"]


def test_pictures_are_drawn_in_three_formats() -> None:
    files = Rendered(erased_boxes(FIVE, GRID, tail="HANrnn"))
    assert list(files) == ["svg", "pdf", "png"]
    assert all(len(content) > 1000 for content in files.values())
