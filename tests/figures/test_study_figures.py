"""Every figure of the papers is drawn from made tables, and shows the scores, models and data sets that it names."""

import numpy as np
import pandas as pd
import pytest

from heedful.studies.serrano2019.figures import FIGURES as ERASURE
from heedful.studies.study import StudyFigure
from heedful.studies.sun2020.figures import ON_REAL_DATA
from tests.covering import covers

POLARITY, ATTENTION = "polarity score s", "attention score a"
BOTH = [POLARITY, ATTENTION]

SCORES: dict[str, list[str]] = {
    "2": [POLARITY] * 3 + [ATTENTION] * 3,
    "3": [POLARITY, ATTENTION, ATTENTION],
    "4": BOTH,
    "5": ["mean attention weight"],
    "S13": [ATTENTION, ATTENTION],
    **{name: [POLARITY] for name in ("S14", "S17", "S19")},
    **{name: [ATTENTION] for name in ("S15", "S18", "S20", "S28")},
    **dict.fromkeys(("S16", "S21", "S22", "S23", "S24"), BOTH),
    **{f"S{25 + number}": [f"polarity score towards {name}"] for number, name in enumerate(("a", "b", "c"))},
}
"""What is on the axis of each panel, by figure."""

DRAWN = ("3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "minimum")


class MadeTables(dict[str, pd.DataFrame]):
    """A table of tokens whatever its name: of two classes, or of three on 20News II."""

    def __missing__(self, name: str) -> pd.DataFrame:
        rng = np.random.default_rng(0)
        classes = ("a", "b", "c") if "20news-2" in name else ("negative", "positive")
        groups = [*classes, "neutral"] * 8
        columns = [f"polarity_{name}" for name in classes] if len(classes) > 2 else ["polarity"]
        numbers = {name: rng.normal(size=len(groups)) for name in (*columns, "attention", "weight")}
        counts = {f"count_{name}": rng.integers(1, 50, len(groups)) for name in classes}
        return pd.DataFrame({"token": [f"w{n}" for n in range(len(groups))], "group": groups, **numbers, **counts})


@covers(figure=[f"sun2020 {name}" for name in SCORES])
@pytest.mark.parametrize("figure", ON_REAL_DATA, ids=lambda figure: figure.name)
def test_a_figure_on_real_data_shows_the_scores_of_its_caption(figure: StudyFigure) -> None:
    canvas = figure.draw(MadeTables())
    assert [axis.get_ylabel() for axis in canvas.axes if axis.axison] == SCORES[figure.name]


def made_measures(models: tuple[str, ...]) -> dict[str, pd.DataFrame]:
    """Ten instances of six units, erased one and all by every ranking."""
    rng = np.random.default_rng(0)
    rankings = ("random", "attention", "gradient", "product", "margin", "minimum")
    places = [(model, ranking, instance) for model in models for ranking in rankings for instance in range(10)]
    rows = pd.DataFrame(places, columns=["model", "ranking", "instance"]).assign(dataset="yelp10k", seed=0, units=6)
    erased = rng.integers(1, 7, len(rows))
    flips = rows.assign(order=0, erased=pd.array(erased, dtype="Int64"), fraction=erased / 6, mass=erased / 7)
    marks = {name: rng.random(len(rows)) < 0.5 for name in ("flip_top", "flip_random")}
    single = rows.assign(delta_weight=rng.random(len(rows)), delta_js=rng.normal(size=len(rows)), **marks)
    return {"single": single[single["ranking"].isin(["attention", "gradient", "product"])], "flips": flips}


@covers(figure=[f"serrano2019 {name}" for name in DRAWN])
@pytest.mark.parametrize("figure", ERASURE, ids=lambda figure: figure.name)
def test_a_figure_of_erasure_has_a_panel_for_each_of_its_models(figure: StudyFigure) -> None:
    canvas = figure.draw(made_measures(figure.models))
    tail = ["FLANnoenc"] if figure.name == "6" else []
    titles = [axis.get_title(loc="left") for axis in canvas.axes if axis.get_title(loc="left")]
    assert titles == [f"yelp10k, {model}" for model in [*figure.models, *tail]]
    assert "no run" not in [text.get_text() for axis in canvas.axes for text in axis.texts]
