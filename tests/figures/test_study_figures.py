"""Every figure of the papers is drawn from made tables, and shows the scores, models and data sets that it names."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from heedful.config import RunSettings
from heedful.figures.erasure import Grid
from heedful.studies.serrano2019.figures import FIGURES as ERASURE
from heedful.studies.sun2020.real_figures import FIGURES as ON_REAL_DATA
from heedful.studies.sun2020.runs import Runs
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


class MadeRuns(Runs):
    """In the place of runs: whatever the settings, the tables of a model of two classes, or of three on 20News II."""

    def __getitem__(self, settings: RunSettings) -> Any:
        self.groups = ("a", "b", "c") if settings.data.source == "20news-2" else ("negative", "positive")
        return self

    def table(self, _: str) -> pd.DataFrame:
        rng = np.random.default_rng(0)
        groups = [*self.groups, "neutral"] * 8
        columns = [f"polarity_{name}" for name in self.groups] if len(self.groups) > 2 else ["polarity"]
        numbers = {name: rng.normal(size=len(groups)) for name in (*columns, "attention", "weight")}
        counts = {f"count_{name}": rng.integers(1, 50, len(groups)) for name in self.groups}
        return pd.DataFrame({"token": [f"w{n}" for n in range(len(groups))], "group": groups, **numbers, **counts})


@covers(figure=[f"sun2020 {name}" for name in SCORES])
@pytest.mark.parametrize("name", ON_REAL_DATA)
def test_a_figure_on_real_data_shows_the_scores_of_its_caption(name: str) -> None:
    figure = ON_REAL_DATA[name].draw(MadeRuns([]))
    assert [axis.get_ylabel() for axis in figure.axes if axis.axison] == SCORES[name]


def made_frames(models: tuple[str, ...]) -> dict[str, pd.DataFrame]:
    """Ten instances of six units, erased one and all by every ranking."""
    rng = np.random.default_rng(0)
    rankings = ("random", "attention", "gradient", "product", "margin", "minimum")
    places = [(model, ranking, instance) for model in models for ranking in rankings for instance in range(10)]
    rows = pd.DataFrame(places, columns=["model", "ranking", "instance"]).assign(dataset="yelp10k", seed=0, units=6)
    erased = rng.integers(1, 7, len(rows))
    flips = rows.assign(order=0, erased=pd.array(erased, dtype="Int64"), fraction=erased / 6, mass=erased / 7)
    marks = {name: rng.random(len(rows)) < 0.5 for name in ("flips_top", "flips_other")}
    numbers = {"difference": rng.random(len(rows)), "divergence_difference": rng.normal(size=len(rows))}
    single = rows.assign(**marks, **numbers)
    return {"single": single[single["ranking"].isin(["attention", "gradient", "product"])], "flips": flips}


@covers(figure=[f"serrano2019 {name}" for name in DRAWN])
@pytest.mark.parametrize("name", ERASURE)
def test_a_figure_of_erasure_has_a_panel_for_each_of_its_models(name: str) -> None:
    models = ERASURE[name].models
    figure = ERASURE[name].draw(made_frames(models), Grid(models=models, datasets={"yelp10k": "Yelp"}))
    tail = ["FLANnoenc"] if name == "6" else []
    titles = [axis.get_title(loc="left") for axis in figure.axes if axis.get_title(loc="left")]
    assert titles == [f"Yelp, {model}" for model in [*models, *tail]]
    assert "no run" not in [text.get_text() for axis in figure.axes for text in axis.texts]
