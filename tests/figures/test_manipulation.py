"""Pictures of shuffled, replaced and attacked attention show the numbers of hand-made tables."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Polygon, Rectangle

from heedful.figures.erasure import Grid
from heedful.figures.manipulation import (
    BINS,
    adversary_histograms,
    agreement_histograms,
    both_attentions,
    determined_scores,
    divergence_curves,
    permutation_violins,
    seed_violins,
)
from heedful.figures.picture import Rendered

LOG_2 = math.log(2)
GRID = Grid(models=("lstm",), datasets={"sst": "SST"})
ONE: dict[str, Any] = {"dataset": "sst", "model": "lstm", "seed": 0}


def panel(figure: Figure) -> Axes:
    (axis,) = [axis for axis in figure.axes if axis.get_title(loc="left") == "SST, lstm"]
    return axis


def medians(axis: Axes) -> dict[float, float]:
    """The black line of each quarter: place and height."""
    lines = [line for line in axis.lines if line.get_color() == "black" and len(np.asarray(line.get_xdata())) == 2]
    return {float(np.mean(np.asarray(line.get_xdata()))): float(np.asarray(line.get_ydata())[0]) for line in lines}


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


TAUS: dict[str, list[float | None]] = {"gradient": [0.4, 0.6, 0.8], "leave_one_out": [-0.2, 0.2, None], "other": [1.0]}
AGREEMENT = pd.DataFrame(
    [
        {**ONE, "measure": measure, "instance": place, "tau": tau}
        for measure, taus in TAUS.items()
        for place, tau in enumerate(taus)
    ]
)


def test_agreement_has_a_histogram_and_a_mean_for_each_measure() -> None:
    figure = agreement_histograms(AGREEMENT, GRID)
    axis = panel(figure)
    bars = [patch.get_height() for patch in axis.patches if isinstance(patch, Rectangle)]
    assert len(bars) == 2 * BINS
    assert (sum(bars[:BINS]), max(bars[:BINS])) == pytest.approx((1, 1 / 3))
    assert sum(bars[BINS:]) == pytest.approx(1)  # a τ that is not there is no text
    means = [float(np.asarray(line.get_xdata())[0]) for line in axis.lines if line.get_linestyle() == "--"]
    assert means == pytest.approx([0.6, 0.0])
    assert [text.get_text() for text in axis.texts] == ["mean τ: gradient 0.60, leave one out 0.00"]
    assert legend(figure) == ["gradient", "leave one out"]


def shuffled(weights: list[float], tvd: list[float]) -> pd.DataFrame:
    return pd.DataFrame({"largest_weight": weights, "tvd_median": tvd, "instance": range(len(tvd))}).assign(**ONE)


def test_violins_stand_by_quarters_of_the_largest_weight_with_medians_and_counts() -> None:
    """Six texts below a quarter, two from a half on, one that attends to one unit alone."""
    table = shuffled([0.1] * 6 + [0.5, 0.6, 1.0], [0.0, 0.1, 0.1, 0.3, 0.4, 0.5, 0.2, 0.4, 0.9])
    axis = panel(permutation_violins(table, GRID))
    assert medians(axis) == pytest.approx({0.0: 0.2, 2.0: 0.3, 3.0: 0.9})
    names = [label.get_text() for label in axis.get_xticklabels()]
    assert names == ["0–.25\n6", ".25–.5\n0", ".5–.75\n2", ".75–1\n1"]
    violins = [body for body in axis.collections if isinstance(body, PolyCollection)]
    assert len(violins) == 1  # of six texts; fewer than five are points
    heights = np.asarray(violins[0].get_paths()[0].vertices)[:, 1]
    assert (heights.min(), heights.max()) == pytest.approx((0.0, 0.5))
    points = [line for line in axis.lines if line.get_marker() == "."]
    assert [np.asarray(line.get_ydata()).tolist() for line in points] == [[0.2, 0.4], [0.9]]


def test_texts_that_all_stay_where_they_are_have_points_and_no_violin() -> None:
    axis = panel(permutation_violins(shuffled([0.9] * 8, [0.0] * 8), GRID))
    assert not axis.collections
    assert medians(axis) == {3.0: 0.0}


def test_seeds_are_drawn_against_the_most_that_attention_can_move() -> None:
    table = shuffled([0.3] * 6, [0.1, 0.2, 0.2, 0.2, 0.2, 0.3]).rename(columns={"tvd_median": "jsd"})
    axis = panel(seed_violins(table, GRID))
    assert medians(axis) == pytest.approx({1.0: 0.2})
    (line,) = [line for line in axis.lines if line.get_linestyle() == ":"]
    assert np.asarray(line.get_ydata()).tolist() == [LOG_2, LOG_2]


KINDS = {"same": "the very same output", "without top": "without the most attended unit"}


def test_shares_of_adversaries_are_of_all_texts_those_without_one_among_them() -> None:
    parts: dict[str, list[float | None]] = {"same": [0.1, 0.6, 0.6, 0.6], "without top": [0.6, None, None, None]}
    parts["else"] = [0.3] * 4
    table = pd.DataFrame(
        [{**ONE, "kind": kind, "instance": n, "jsd": jsd} for kind, jsds in parts.items() for n, jsd in enumerate(jsds)]
    )
    figure = adversary_histograms(table, GRID, KINDS)
    axis = panel(figure)
    tops = [float(np.asarray(patch.get_xy())[:, 1].max()) for patch in axis.patches if isinstance(patch, Polygon)]
    assert tops == pytest.approx([0.75, 0.25])
    assert legend(figure) == list(KINDS.values())
    assert [float(np.asarray(line.get_xdata())[0]) for line in axis.lines] == [LOG_2]


def test_a_kind_that_no_text_has_is_not_drawn() -> None:
    table = pd.DataFrame([{**ONE, "kind": "without top", "instance": 0, "jsd": np.nan}])
    assert len(panel(adversary_histograms(table, GRID, KINDS)).patches) == 0


CURVE = pd.DataFrame(
    [
        ("sst", "per text", 0.0, 0.5),
        ("sst", "per text", 0.1, 0.6),
        ("sst", "adversary", 0.2, 0.3),
        ("sst", "adversary", 0.1, 0.2),
        ("sst", "uniform", 0.05, 0.1),
        ("imdb", "uniform", 0.05, 0.4),
    ],
    columns=["dataset", "kind", "tvd", "jsd"],
)


def test_curves_run_from_little_change_of_the_output_to_much_and_single_points_stand_alone() -> None:
    figure = divergence_curves(CURVE, {"sst": "SST", "imdb": "IMDB"})
    axis = figure.axes[0]
    drawn = [line for line in axis.lines if line.get_marker() != "None"]
    assert [np.column_stack([line.get_xdata(), line.get_ydata()]).tolist() for line in drawn] == [
        [[0.0, 0.5], [0.1, 0.6]],
        [[0.1, 0.2], [0.2, 0.3]],
        [[0.05, 0.1]],
    ]
    assert [line.get_linestyle() for line in drawn] == ["-", "-", "None"]
    assert [axis.get_title() or axis.get_title(loc="left") for axis in figure.axes] == ["SST", "IMDB"]
    assert legend(figure) == [
        "another attention for every text, by itself", "a model trained to attend elsewhere", "even weights",
    ]  # fmt: skip


def determined(**columns: Sequence[object]) -> pd.DataFrame:
    return pd.DataFrame({**ONE, "polarity": 0.0, **columns})


def stretches_of(axis: Axes) -> list[tuple[float, ...]]:
    return [
        tuple(np.asarray(segment).ravel().tolist())
        for lines in axis.collections
        if isinstance(lines, LineCollection)
        for segment in lines.get_segments()
    ]


def triangles_of(axis: Axes) -> dict[str, list[tuple[float, float]]]:
    drawn = [(str(line.get_marker()), line.get_xydata().tolist()) for line in axis.lines]  # type: ignore[union-attr]
    return {sign: [(x, y) for mark, points in drawn if mark == sign for x, y in points] for sign in ("v", "^")}


def test_few_words_stand_by_their_names_with_what_the_outputs_allow() -> None:
    """`the` may be anything below, `sad` anything above, `bad` is held between two numbers, of `road` one is open."""
    table = determined(
        token=["bad", "the", "sad", "unknown", "road"],
        group=["negative", "neutral", "negative", "neutral", "none"],
        attention=[1.0, -2.0, 0.5, np.nan, 0.0],
        low=[0.5, -np.inf, 0.0, 0.0, np.nan],
        high=[1.5, -1.0, np.inf, 1.0, 1.0],
    )
    figure = determined_scores(table, GRID)
    axis = panel(figure)
    assert axis.get_ylim() == (-3.0, 2.5)
    assert [label.get_text() for label in axis.get_xticklabels()] == ["the", "sad", "bad", "road"]
    assert axis.get_xticks().tolist() == [0, 2, 3, 5]  # by group, then by score; a place is free between groups
    without, above, held, unproved = (
        (0.0, -3.0, 0.0, -1.0),
        (2.0, 0.0, 2.0, 2.5),
        (3.0, 0.5, 3.0, 1.5),
        (5.0, 0, 5.0, 1),
    )
    assert sorted(stretches_of(axis)) == [without, above, held, unproved]  # to the edges; from its own score up
    assert triangles_of(axis) == {"v": [(0.0, -3.0)], "^": [(2.0, 2.5)]}
    assert [text.get_text() for text in axis.texts] == ["4 words; without a lower bound 1, without an upper one 1"]
    marks = ["the model's own score", "no lower bound", "no upper bound"]
    assert legend(figure) == [*marks, "neutral", "negative", "none"]


def test_of_very_many_words_groups_are_named_and_lines_join_the_bounds_that_there_are() -> None:
    """Three of four neutral words could do without attention: of these only the upper part is drawn."""
    table = determined(
        token=[f"word {number}" for number in range(1500)],
        group=["neutral"] * 1200 + ["positive"] * 300,
        attention=[number / 1000 for number in range(1500)],
        low=[*([-np.inf] * 900), *([-5.0] * 600)],
        high=[2.0] * 1500,
    )
    figure = determined_scores(table, GRID)
    axis = panel(figure)
    assert [label.get_text() for label in axis.get_xticklabels()] == ["neutral\n1,200\n75% ▼", "positive\n300\n0% ▼"]
    stretches = stretches_of(axis)
    assert len(stretches) == 1500
    assert stretches[:2] == [(0.0, 0.0, 0.0, 2.0), (1.0, 0.001, 1.0, 2.0)]
    assert stretches[900] == (900.0, -5.0, 900.0, 2.0)
    assert stretches[1200][0] == 1260.0
    assert [len(points) for points in triangles_of(axis).values()] == [900, 0]
    assert {"word 1199", "word 1499"} < {text.get_text() for text in axis.texts}
    assert figure.get_figwidth() == 9


def test_beside_the_models_scores_stand_those_of_another_attention() -> None:
    table = pd.DataFrame(
        {
            "token": ["bad", "the"],
            "group": ["negative", "neutral"],
            "polarity": [-3.0, 0.5],
            "attention": [1.0, -2.0],
            "other": [-30.0, 0.0],
        }
    )
    figure = both_attentions(table)
    shown = [[np.asarray(part.get_offsets())[0].tolist() for part in axis.collections] for axis in figure.axes]
    assert shown == [[[0.5, -2.0], [-3.0, 1.0]], [[0.5, 0.0], [-3.0, -4.0]]]  # what is too small to matter is below


def test_they_can_be_saved() -> None:
    assert set(Rendered(divergence_curves(CURVE, {"sst": "SST"}))) == {"svg", "pdf", "png"}
