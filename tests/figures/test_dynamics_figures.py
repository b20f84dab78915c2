"""Figures of a training show the numbers of its tables."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.text import Annotation

from heedful.figures import dynamics
from tests.covering import covers

TIMES = (0.0, 100.0, 200.0)
KINDS = tuple(dynamics.KINDS)


def pairs(kinds: tuple[str, ...] = KINDS, *, slope: float = 1.0) -> pd.DataFrame:
    """Two pairs of each kind whose dot products grow with the time, one a little above the other."""
    rows = [
        (time, kind, f"a{place}{pair}", f"b{place}{pair}", slope * place * time / 100 + 0.1 * pair)
        for time in TIMES
        for place, kind in enumerate(kinds)
        for pair in range(2)
    ]
    return pd.DataFrame(rows, columns=["time", "kind", "first", "second", "omega"])


def tokens(groups: tuple[str, ...] = ("positive", "negative", "neutral", "none")) -> pd.DataFrame:
    """Three tokens of each group; attention grows with the time, polarity stays."""
    rows = [
        (time, f"{group}{number}", group, float(place), place * time / 100 + 0.1 * number)
        for time in TIMES
        for place, group in enumerate(groups)
        for number in range(3)
    ]
    return pd.DataFrame(rows, columns=["time", "token", "group", "polarity", "attention"])


def lines(axis: Axes) -> dict[str, list[float]]:
    """The named lines of a panel."""
    found = {str(line.get_label()): line.get_ydata() for line in axis.get_lines()}
    return {name: np.asarray(values).tolist() for name, values in found.items() if not name.startswith("_")}


def legend_of(figure: object) -> list[str]:
    (legend,) = figure.legends  # type: ignore[attr-defined]
    return [text.get_text() for text in legend.get_texts()]


def test_trends_of_dot_products_are_means_over_pairs() -> None:
    figure = dynamics.dot_product_trends({"top": pairs(), "bottom": pairs(slope=-1.0)}, kinds=("neg-neg", "pos-neg"))
    top, bottom = figure.axes
    assert [axis.get_title("left") for axis in (top, bottom)] == ["top", "bottom"]
    assert lines(top)["neg-neg"] == pytest.approx([0.05, 1.05, 2.05])
    assert lines(bottom)["pos-neg"] == pytest.approx([0.05, -1.95, -3.95])
    assert len(top.collections) == 2  # a band for each kind
    assert legend_of(figure) == ["neg-neg", "pos-neg"]
    assert top.get_position().y0 > bottom.get_position().y0


def test_single_pairs_stand_in_for_the_band() -> None:
    (axis,) = dynamics.dot_product_trends({"one": pairs()}, kinds=("pos-pos",), single=True).axes
    assert not axis.collections
    assert len([line for line in axis.get_lines() if len(np.asarray(line.get_xdata())) == len(TIMES)]) == 3


def test_boxes_stand_in_the_given_order() -> None:
    (axis,) = dynamics.dot_product_boxes(pairs(), kinds=("pos-pos", "neu-neu"), title="ends").axes
    assert [tick.get_text() for tick in axis.get_xticklabels()] == ["pos-pos", "neu-neu"]


def test_pairs_of_classes_are_sorted_by_relation() -> None:
    kinds = ("food-food", "sport-sport", "food-sport", "food-neu", "neu-neu")
    assert [dynamics.relation(kind, ("sport", "food")) for kind in kinds] == [
        "same class",
        "same class",
        "different classes",
        "with a neutral token",
        "with a neutral token",
    ]
    trends, boxes = dynamics.pairs_of_classes(pairs(kinds), classes=("sport", "food")).axes
    assert lines(trends)["same class"] == pytest.approx([0.05, 0.55, 1.05])
    named = [tick.get_text() for tick in boxes.get_xticklabels()]
    assert named == ["food-food", "sport-sport", "food-sport", "food-neu", "sport-neu", "neu-neu"]


def test_single_pairs_are_named() -> None:
    figure = dynamics.single_pairs(pairs().drop_duplicates(["time", "kind"]), title="six")
    assert legend_of(figure)[0] == "pos-pos: a00 · b00"
    assert len(legend_of(figure)) == 6


def test_distributions_write_the_mean_of_every_group() -> None:
    first, second = dynamics.score_distributions({"I": tokens(), "II": tokens()}, "attention").axes
    named = [tick.get_text() for tick in first.get_xticklabels()]
    assert named == ["positive (9)\nmean +0.10", "negative (9)\nmean +1.10", "neutral (9)\nmean +2.10"]
    assert first.get_ylim() == second.get_ylim()


def test_trends_of_scores_leave_out_tokens_of_no_group() -> None:
    table = tokens()
    figure = dynamics.score_trends({"s": (table, "polarity"), "a": (table, "attention")})
    upper, lower = figure.axes
    assert lines(upper)["negative (3)"] == [1.0, 1.0, 1.0]
    assert lines(lower)["negative (3)"] == pytest.approx([0.1, 1.1, 2.1])
    assert legend_of(figure) == ["positive (3)", "negative (3)", "neutral (3)"]
    assert [axis.get_ylabel() for axis in (upper, lower)] == ["polarity score s", "attention score a"]


def test_the_closing_gap_shows_both_trainings_and_every_run() -> None:
    gaps = pd.DataFrame(
        [(t, seed, flag, seed + flag) for flag in (False, True) for seed in (1, 3) for t in TIMES],
        columns=["time", "seed", "penalised", "gap"],
    )
    without, penalised, runs = dynamics.closing_gap(tokens(), tokens(), gaps).axes
    assert without.get_ylim() == penalised.get_ylim()
    assert lines(runs) == {"without (mean)": [2.0] * 3, "with regulariser (mean)": [3.0] * 3}


def test_the_ratio_figure_averages_over_initialisations() -> None:
    table = pd.DataFrame(
        [(share, seed, t, share * t + seed) for share in (0.1, 0.5) for seed in (0, 2) for t in TIMES],
        columns=["positive_share", "seed", "time", "alignment"],
    )
    trend, ends = dynamics.alignment_by_ratio(table).axes
    assert lines(trend) == {"1 : 9": pytest.approx([1, 11, 21]), "5 : 5": pytest.approx([1, 51, 101])}
    assert [tick.get_text() for tick in ends.get_xticklabels()] == ["1 : 9", "5 : 5"]


@covers(figure=("audit attention-over-time",))
def test_attention_over_time_names_the_extremes_of_each_group() -> None:
    groups, named = dynamics.attention_over_time(tokens()).axes
    assert lines(groups)["neutral (3)"] == pytest.approx([0.1, 2.1, 4.1])
    texts = sorted(text.get_text().strip() for text in named.texts)
    assert texts == ["negative0", "negative2", "neutral0", "neutral2", "positive0", "positive2"]


def test_attention_over_time_of_many_classes_is_told_apart_and_has_room_for_names() -> None:
    """No bands over each other, a legend below, and every name beside the panel."""
    names = [f"class {number}" for number in range(12)]
    figure = dynamics.attention_over_time(tokens((*names, "neutral")))
    figure.canvas.draw()
    groups, named = figure.axes
    assert len(legend_of(figure)) == 13
    assert not groups.collections
    drawn = [line for line in groups.get_lines() if not str(line.get_label()).startswith("_")]
    assert len({(line.get_color(), str(line._dash_pattern)) for line in drawn}) == 13  # type: ignore[attr-defined]
    heights = sorted(text.xy[1] for text in named.texts if isinstance(text, Annotation))
    assert len(heights) == 26
    low, high = named.get_ylim()
    assert heights[-1] <= high
    assert np.diff(heights).min() == pytest.approx(dynamics.NAME_HEIGHT * (high - low) / figure.get_figheight())


def test_names_that_would_cover_each_other_are_moved_apart() -> None:
    assert dynamics._apart([0.0, 0.1, 5.0], 1.0, 9.0) == [0.0, 1.0, 5.0]
    assert dynamics._apart([0.0, 8.5, 8.6, 8.7], 1.0, 9.0) == [0.0, 7.0, 8.0, 9.0]


def test_names_of_classes_may_hold_anything() -> None:
    table = tokens(("$a$", "_b", "neutral"))
    figure = dynamics.score_trends({"one": (table, "attention")})
    figure.canvas.draw()
    assert len(legend_of(figure)) == 3
