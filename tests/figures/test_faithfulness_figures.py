"""Explanations by metrics, and words, as pictures: what is dark, what is marked, what is named."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from heedful.figures.faithfulness import figure_of, metric_grid, near_the_best, standing
from heedful.figures.picture import Rendered
from heedful.figures.words import attention_against_effect
from tests.covering import covers


def means(direction: str, *values: tuple[float, float, float], metric: str = "aopc") -> pd.DataFrame:
    said = {"metric": metric, "direction": direction}
    methods = ("attention", "leave_one_out", "random")
    return pd.DataFrame(
        [
            {"method": method, **said, "value": value, "low": low, "high": high}
            for method, (value, low, high) in zip(methods, values, strict=True)
        ]
    )


HIGHER = means("higher", (0.2, 0.1, 0.3), (0.6, 0.5, 0.7), (0.55, 0.4, 0.6))
NAN = (np.nan, np.nan, np.nan)


def test_the_best_is_one_and_the_worst_is_zero() -> None:
    assert standing(HIGHER).tolist() == pytest.approx([0, 1, 0.875])
    assert standing(means("lower", (2, 1, 3), (4, 3, 5), NAN))[:2].tolist() == [1, 0]
    assert np.isnan(standing(means("neither", (2, 1, 3), (4, 3, 5), (1, 0, 2)))).all()
    assert standing(means("higher", (2, 1, 3), (2, 1, 3), (2, 1, 3))).tolist() == [1, 1, 1]


def test_what_overlaps_the_best_is_near_it() -> None:
    assert near_the_best(HIGHER).tolist() == [False, True, True]
    assert not near_the_best(means("neither", (2, 1, 3), (4, 3, 5), (1, 0, 2))).any()


@covers(figure=("audit explanations-by-metrics",))
def test_the_grid_shows_every_number_arrows_and_grey_cells() -> None:
    table = pd.concat([HIGHER, means("neither", (1.5, 1, 2), NAN, (120, 100, 130), metric="entropy")])
    figure = metric_grid(table)
    (axis,) = figure.axes
    shown = [text.get_text() for text in axis.texts]
    assert {"0.20", "0.60", "0.55", "1.50", "–", "120"} <= set(shown)
    assert [label.get_text() for label in axis.get_yticklabels()] == ["aopc ↑", "entropy"]
    assert [label.get_text() for label in axis.get_xticklabels()] == ["attention", "leave one out", "random"]
    colours = [to_hex(tuple(np.asarray(part.get_facecolor())[0].tolist())) for part in axis.collections]
    assert colours[:2] == ["#ffffff", "#0072b2"]
    assert set(colours[3:]) == {"#f2f2f2"}
    assert len(axis.lines) == 2, "a dot for each that cannot be told from the best"
    assert Rendered(figure)["svg"]


def test_numbers_are_short() -> None:
    assert [figure_of(value) for value in (0.123, -1.0, 99.9, np.nan)] == ["0.12", "-1.00", "100", "–"]


@covers(figure=("audit attention-and-effect",))
def test_words_lie_by_effect_and_attention_and_the_outermost_are_named() -> None:
    table = pd.DataFrame(
        {
            "token": ["superb", "the", "awful", "unseen"],
            "group": ["positive", "neutral", "negative", "none"],
            "effect": [0.5, 0.01, 0.3, np.nan],
            "lift": [3.0, 0.5, 0.2, 1.0],
        }
    )
    figure = attention_against_effect(table)
    (axis,) = figure.axes
    assert axis.get_yscale() == "log"
    assert {"superb", "awful"} <= {text.get_text() for text in axis.texts}
    points = np.concatenate([np.asarray(part.get_offsets()) for part in axis.collections])
    assert sorted(points.tolist()) == [[0.01, 0.5], [0.3, 0.2], [0.5, 3.0]]
