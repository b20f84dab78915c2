"""Figures show the numbers of their tables."""

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from heedful.figures.picture import Rendered
from heedful.figures.style import Look, brief, group_looks, panels
from heedful.figures.tokens import (
    learning_curves,
    polarity_against_attention,
    scores_by_rank,
    shown_groups,
    weights_by_group,
)
from tests.covering import covers

TOKENS = pd.DataFrame(
    {
        "token": ["<unk>", "the", "of", "good", "fine", "bad", "rare"],
        "count_negative": [0, 50, 30, 1, 2, 20, 1],
        "count_positive": [0, 50, 31, 25, 15, 1, 0],
        "group": ["none", "neutral", "neutral", "positive", "positive", "negative", "none"],
        "polarity": [0.0, 0.1, -0.2, 2.0, 1.5, -3.0, 0.3],
        "attention": [0.0, -1.0, -0.8, 2.5, 1.0, 3.0, 0.2],
    }
)
CLASSES = ("one", "two", "three_3", "very good", "$5$ off")
MANY = pd.DataFrame(
    {
        "token": [f"$w_{row}^" for row in range(10)] + ["the"],
        **{f"count_{name}": np.arange(11) + 10 for name in CLASSES},
        "group": [*CLASSES, *CLASSES, "neutral"],
        **{f"polarity_{name}": np.linspace(-1, 1, 11) * (1 + place) for place, name in enumerate(CLASSES)},
        "attention": np.linspace(0, 1, 11),
    }
)
WEIGHTS = pd.DataFrame(
    {
        "token": list("abcdef"),
        "group": ["neutral", "neutral", "neutral", "positive", "negative", "none"],
        "weight": [0.1, 0.2, 0.3, 0.6, 0.7, 0.9],
    }
)
HISTORY = pd.DataFrame(
    {
        "epoch": [1, 2, 3],
        "train_loss": [0.7, 0.5, 0.4],
        "dev_loss": [0.6, 0.55, 0.6],
        "dev_accuracy": [0.6, 0.8, 0.8],
        "kept": [False, True, False],
    }
)


def points(axis: Axes) -> dict[str, list[tuple[float, float]]]:
    """The points of each group of a scatter plot, by the group's label."""
    return {
        str(drawn.get_label()): [(float(x), float(y)) for x, y in np.asarray(drawn.get_offsets())]
        for drawn in axis.collections
    }


def words(axis: Axes) -> list[str]:
    return [text.get_text() for text in axis.texts]


@covers(figure=("audit push-and-attention",))
def test_used_against_attended_has_a_point_for_each_token_of_a_group() -> None:
    (axis,) = polarity_against_attention(TOKENS).axes
    assert points(axis) == {
        "neutral (2)": [(0.1, -1.0), (-0.2, -0.8)],
        "negative (1)": [(-3.0, 3.0)],
        "positive (2)": [(2.0, 2.5), (1.5, 1.0)],
    }
    assert set(words(axis)) == {"good", "fine", "bad"}


def test_names_that_would_cover_each_other_are_left_out() -> None:
    close = TOKENS.assign(polarity=[0.0, 0.1, -0.2, 2.0, 2.001, -3.0, 0.3], attention=[0, 0, 0, 2.5, 2.501, 3.0, 0])
    (axis,) = polarity_against_attention(close).axes
    assert sorted(words(axis)) == ["bad", "fine"]


@covers(figure=("audit scores-by-rank",))
def test_ranks_follow_the_counts_and_not_the_rows() -> None:
    used, attended = scores_by_rank(TOKENS.sample(frac=1, random_state=1)).axes
    assert sorted(points(used)["neutral (2)"]) == [(1.0, 0.1), (2.0, -0.2)]
    assert sorted(points(used)["positive (2)"]) == [(3.0, 2.0), (5.0, 1.5)]
    assert points(attended)["negative (1)"] == [(4.0, 3.0)]
    assert used.get_xscale() == "log"


@covers(figure=("audit weights-by-group",))
def test_weights_are_boxes_by_group() -> None:
    (axis,) = weights_by_group(WEIGHTS).axes
    labels = [label.get_text() for label in axis.get_xticklabels()]
    assert labels == ["neutral\n(3)", "negative\n(1)", "positive\n(1)"]
    assert [0.2, 0.2] in [np.asarray(line.get_ydata()).tolist() for line in axis.lines]


@covers(figure=("audit learning-curves",))
def test_learning_curves_show_the_history_and_the_chosen_epoch() -> None:
    losses, accuracy = learning_curves(HISTORY).axes
    assert np.asarray(losses.lines[0].get_ydata()).tolist() == [0.7, 0.5, 0.4]
    assert np.asarray(losses.lines[1].get_ydata()).tolist() == [0.6, 0.55, 0.6]
    assert accuracy.lines[1].get_label() == "chosen: epoch 2"


def test_one_epoch_can_be_seen() -> None:
    losses, _ = learning_curves(HISTORY[HISTORY["kept"]]).axes
    assert losses.lines[0].get_marker() == "o"


def test_several_classes_have_a_panel_each_in_rows_of_three() -> None:
    figure = scores_by_rank(MANY)
    assert len(figure.axes) == len(CLASSES) + 1
    assert figure.get_figwidth() == pytest.approx(3 * 4.6)
    assert figure.axes[3].get_title(loc="left") == "What a word pushes for very good"
    assert len(polarity_against_attention(MANY).axes) == len(CLASSES)


def test_very_many_classes_are_cut_to_six_panels() -> None:
    names = [f"class {number}" for number in range(20)]
    table = pd.DataFrame(
        {
            "token": names,
            **{f"count_{name}": 10 for name in names},
            "group": names,
            **{f"polarity_{name}": np.arange(20.0) for name in names},
            "attention": np.arange(20.0),
        }
    )
    assert len(polarity_against_attention(table).axes) == 6
    assert len(scores_by_rank(table).axes) == 7


FIGURES: dict[str, Callable[[], Figure]] = {
    "scores_by_rank": lambda: scores_by_rank(MANY),
    "polarity_against_attention": lambda: polarity_against_attention(MANY),
    "weights_by_group": lambda: weights_by_group(WEIGHTS.assign(group=[*CLASSES, "_hidden"])),
    "learning_curves": lambda: learning_curves(HISTORY),
}


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_drawn_in_all_formats(name: str) -> None:
    files = Rendered(FIGURES[name]())
    assert ElementTree.fromstring(files["svg"]).tag.endswith("svg")
    assert files["pdf"].startswith(b"%PDF")
    assert files["png"].startswith(b"\x89PNG")


def test_signs_of_mathematics_are_shown_as_they_are() -> None:
    figure = polarity_against_attention(MANY)
    texts = [text for axis in figure.axes for text in (axis.xaxis.label, *axis.texts)]
    assert any(text.get_text().startswith("$w_") for text in texts)
    assert "polarity score towards $5$ off" in [text.get_text() for text in texts]
    assert not any(text.get_parse_math() for text in texts)


def test_emoji_and_foreign_letters_do_not_stop_a_figure() -> None:
    table = TOKENS.assign(token=["<unk>", "的", "了", "👍🏽", "好", "😡", "x"])
    files = Rendered(polarity_against_attention(table))
    assert list(files) == ["svg", "pdf", "png"]
    assert all(len(content) > 1000 for content in files.values())


def test_a_class_that_begins_with_an_underscore_is_in_the_legend() -> None:
    table = TOKENS.assign(group=TOKENS["group"].replace("positive", "_positive"))
    legend = polarity_against_attention(table).axes[0].get_legend()
    assert legend is not None
    assert " _positive (2)" in [text.get_text() for text in legend.get_texts()]


def test_tables_without_a_polar_or_neutral_token_give_empty_figures() -> None:
    nothing, weights = TOKENS.assign(group="none"), WEIGHTS.assign(group="none")
    for figure in (polarity_against_attention(nothing), scores_by_rank(nothing), weights_by_group(weights)):
        assert Rendered(figure)["svg"]
        assert not any(points(axis) for axis in figure.axes)


def test_groups_keep_their_colours_and_neutral_is_drawn_first() -> None:
    assert shown_groups(TOKENS) == ["neutral", "negative", "positive"]
    looks = group_looks(["neutral", "a", "b"])
    assert len({looks[name].colour for name in ("neutral", "positive", "negative", "none")}) == 4
    assert looks["a"].colour != looks["b"].colour


def manner(looks: Mapping[str, Look], groups: Sequence[str], part: str) -> int:
    """How many different pairs of a colour and a marker, a line or a hatching these groups have."""
    return len({(looks[group].colour, getattr(looks[group], part)) for group in groups})


@pytest.mark.parametrize("count", [7, 10, 12, 49])
def test_no_two_classes_look_alike(count: int) -> None:
    groups = [f"class {number}" for number in range(count)]
    looks = group_looks([*groups, "neutral"])
    for part in ("marker", "line", "hatch"):
        assert manner(looks, [*groups, "neutral"], part) == count + 1
    assert len({looks[group].colour for group in groups[:10]}) == min(count, 10)
    assert {looks[group].marker for group in groups[:7]} == {"o"}


def test_classes_beside_positive_and_negative_have_other_colours() -> None:
    groups = ["negative", "neutral", "positive", "very negative", "very positive"]
    assert len({group_looks(groups)[group].colour for group in groups}) == 5


def many_classes() -> pd.DataFrame:
    """Ten classes with three tokens each."""
    names = [f"class {number}" for number in range(10)]
    rows = [
        {"token": f"{name} {token}", "group": name, "attention": 1.0 * token}
        | {f"polarity_{other}": 1.0 * (other == name) for other in names}
        | {f"count_{other}": 1 + token for other in names}
        for name in names
        for token in range(3)
    ]
    return pd.DataFrame(rows)


def test_of_many_classes_those_with_the_most_tokens_have_a_panel() -> None:
    table = many_classes().assign(**{"count_class 9": 500, "count_class 0": 0, "count_class 3": 0})
    titles = [axis.get_title(loc="left") for axis in polarity_against_attention(table).axes]
    assert titles == [f"Push towards class {number} and attention" for number in (1, 2, 4, 5, 6, 9)]


def test_ten_classes_are_told_apart_by_colour_and_marker() -> None:
    for draw in (polarity_against_attention, scores_by_rank):
        axis = draw(many_classes()).axes[0]
        shapes = [collection for collection in axis.collections if len(np.asarray(collection.get_offsets())) == 3]
        seen = {
            (str(np.asarray(shape.get_facecolor())), np.asarray(shape.get_paths()[0].vertices).size) for shape in shapes
        }
        assert len(seen) == 10


def test_boxes_of_ten_classes_are_told_apart_by_colour_and_hatching() -> None:
    axis = weights_by_group(many_classes().assign(weight=0.1)).axes[0]
    assert len({(patch.get_facecolor(), patch.get_hatch()) for patch in axis.patches}) == 10


def test_panels_wrap_after_three() -> None:
    figure, axes = panels(4, width=2.0, height=1.0)
    assert (len(axes), len(figure.axes)) == (4, 4)
    assert (figure.get_figwidth(), figure.get_figheight()) == (6, 2)


def test_long_names_are_cut() -> None:
    assert brief("short") == "short"
    assert brief("x" * 30, 10) == "xxxxxxxxx…"
