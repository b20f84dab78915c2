"""The synthetic part of Sun & Lu 2020 on a small scale: recordings are made once, tables and figures follow."""

from base64 import b64encode
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256

import numpy as np
import pandas as pd
import pytest

from heedful.config import RunSettings
from heedful.pipeline import read_corpus, run
from heedful.report.timeline import SCRIPT
from heedful.store import Store
from heedful.studies.reproduce import Reproduced, reproduce
from heedful.studies.study import want
from heedful.studies.sun2020 import CLAIMED, DRAWN, PUBLISHED, STUDY
from heedful.studies.sun2020 import runs as study_runs
from heedful.studies.sun2020.runs import Planted, Recording, plan, recipe
from heedful.studies.sun2020.tables import attention_gap, gap_courses, loss_table, settling_times
from tests.covering import covers

pytestmark = pytest.mark.xdist_group("synthetic study")  # one worker makes what these tests share


def small(settings: RunSettings) -> RunSettings:
    """The same training on few texts, for a moment."""
    return settings.change(
        {
            "data.source": replace(Planted.of(settings.data.source), size=400).source,
            "training.epochs": 2,
            "model.embedding_size": 8,
            "model.hidden_size": 8,
            "record.flow": 2,
            "record.pairs": 3,
        }
    )


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Recording]]:
    """Every set of the plan, two seeds each, small."""
    store, corpus_of = Store(tmp_path_factory.mktemp("store")), lru_cache(None)(read_corpus)
    sets = {name: [small(settings) for settings in wanted[:2]] for name, wanted in plan(quick=True).items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("heedful.text.synthetic.HELD_OUT_SIZE", 60)  # most of the time would go into making texts
        return {
            name: [Recording(run(one, store, corpus=corpus_of(RunSettings(data=one.data)))) for one in wanted]
            for name, wanted in sets.items()
        }


def test_the_recipe_is_the_paper_s() -> None:
    settings = recipe(seed=3)
    assert (
        settings.model.model_dump()
        | {
            "score_scale": 10.0,
            "embedding_size": 100,
            "embedding_range": 0.1,
            "context_deviation": 1.0,
            "readout_range": 1.0,
            "dropout": 0.0,
        }
        == settings.model.model_dump()
    )
    assert (
        settings.training.model_dump()
        | {
            "optimizer": "sgd",
            "learning_rate": 0.015,
            "learning_rate_decay": 0.0,
            "batch_size": 200,
            "epochs": 500,
            "seed": 3,
        }
        == settings.training.model_dump()
    )
    assert Planted.of(settings.data.source) == Planted(classes=2, noise=0.0, positive_share=0.5, size=12_000)
    assert settings.record.flow == 5 * 60


@pytest.mark.parametrize(
    ("data", "source"),
    [
        (Planted(), "synthetic:"),
        (Planted(noise=0.05, size=400), "synthetic:noise=0.05,size=400"),
        (Planted(positive_share=0.9), "synthetic:positive_share=0.9"),
        (Planted(classes=3), "synthetic:classes=3"),
    ],
)
def test_a_planted_corpus_is_a_source_and_back(data: Planted, source: str) -> None:
    assert data.source == source
    assert Planted.of(source) == data


def test_a_quick_recording_covers_the_same_time_of_gradient_flow() -> None:
    whole, quick = recipe(), recipe(quick=True)
    assert quick.training.epochs < whole.training.epochs / 10
    covered = [settings.training.epochs * settings.training.learning_rate for settings in (whole, quick)]
    assert covered[0] == pytest.approx(covered[1])


def test_the_plan_has_what_the_captions_ask_for() -> None:
    sets = plan()
    assert {settings.model.embedding_range for settings in (*sets["data-1"], *sets["wide"])} == {0.1, 1.0}
    ratios = [name for name in sets if name.startswith("ratio-")]
    assert len(ratios) == 5
    assert all(len(sets[name]) == 4 for name in ratios)
    assert sets["ratio-0.5"] == sets["data-1"][:4]  # the balanced corpus is Data I, recorded once
    assert all(len(sets[name]) >= 5 for name in ("data-1", "data-2", "penalised", "wide"))
    assert [settings.training.alignment_penalty for settings in sets["affine"]] == [1e-3]


def test_what_a_recording_holds(found: dict[str, list[Recording]]) -> None:
    (recording, _) = found["data-1"]
    model, groups, pairs = (recording.table(name) for name in ("model", "groups", "pairs"))
    assert model["step"].tolist() == [1, 2, 4]  # two epochs of two steps
    assert set(groups["group"]) == {"positive", "negative", "neutral", "none"}
    assert len(pairs) == 3 * 6 * 3
    rate = recording.settings.training.learning_rate
    assert model["time"].tolist() == pytest.approx([step * rate / (0.015 * 60) for step in (1, 2, 4)])
    assert set(recording.table("accuracy")) == {"train_accuracy", "test_accuracy"}
    assert len(recording.table("history")) == 2


def test_the_last_scores_are_those_of_the_last_step_not_of_the_best_epoch(found: dict[str, list[Recording]]) -> None:
    recording = found["data-1"][0]
    last = recording.table("tokens").query("step == 4").set_index("token")["attention"]
    scores = recording.table("scores").set_index("token")["attention"]
    np.testing.assert_allclose(scores, last.loc[scores.index], atol=1e-6)


def test_shares_of_positive_terms_follow_from_the_tokens(found: dict[str, list[Recording]]) -> None:
    recording = found["data-1"][0]
    tokens = recording.table("tokens").query("step == 4 and group == 'positive'")
    signs = recording.table("signs").query("step == 4 and group == 'positive'")
    assert signs["polarity"].item() == pytest.approx((tokens["polarity"] > 0).mean())
    assert {"A", "B", "C", "D", "E", "F"} <= set(signs)


def test_only_the_affine_recording_has_dot_products_of_hidden_vectors(found: dict[str, list[Recording]]) -> None:
    assert "omega_hidden" in found["affine"][0].table("pairs")
    assert "omega_hidden" not in found["data-1"][0].table("pairs")


@pytest.fixture(scope="module")
def small_study(tmp_path_factory: pytest.TempPathFactory) -> Reproduced:
    """All figures and claims on made data, from small trainings that a sweep runs."""
    folder = tmp_path_factory.mktemp("study")
    small_plan = {name: tuple(map(small, wanted[:2])) for name, wanted in plan(quick=True).items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study_runs, "plan", lambda **_options: small_plan)
        patch.setattr("heedful.text.synthetic.HELD_OUT_SIZE", 60)
        wanted = want(STUDY, quick=True, figures=["all"], claims=True)
        made = [table for table in wanted.tables if table.name == "synthetic"]
        figures = STUDY.with_data(wanted.figures, replace(wanted.selection, datasets=("agnews",)))
        only = replace(wanted, tables=tuple(made), figures=tuple(figures), claims=False)
        return reproduce(STUDY, only, Store(folder / "store"), folder / "out", workers=1)


def test_recordings_are_runs_of_a_sweep(small_study: Reproduced, found: dict[str, list[Recording]]) -> None:
    assert small_study.failures == ()
    assert set(small_study.tables) == {*PUBLISHED, *CLAIMED}
    for name, (sets, make) in CLAIMED.items():
        ours = make([recording for part in sets for recording in found[part]])
        swept, here = (table.drop(columns="accuracy", errors="ignore") for table in (small_study.tables[name], ours))
        pd.testing.assert_frame_equal(swept, here, check_exact=True)  # worker processes test on more texts


@covers(figure=[*(f"sun2020 S{number}" for number in range(1, 13)), "sun2020 time"])
def test_every_figure_on_made_data_is_drawn(small_study: Reproduced) -> None:
    names = [*(f"S{number}" for number in range(1, 13)), "time"]
    assert [picture.name for picture in small_study.page.pictures()] == names
    assert small_study.missing == ()
    for name in names:
        assert (small_study.out / "figures" / f"figure-{name}.svg").stat().st_size > 2000


def test_the_page_shows_the_recorded_training(small_study: Reproduced) -> None:
    html = small_study.page.places["page"].read_text(encoding="utf-8")
    assert html.count('type="range"') == 1
    assert html.count("<circle cx=") > 50
    assert b64encode(sha256(SCRIPT.encode()).digest()).decode() in html


def claim_tables(found: dict[str, list[Recording]]) -> dict[str, pd.DataFrame]:
    return {name: make([one for part in sets for one in found[part]]) for name, (sets, make) in CLAIMED.items()}


def test_every_table_of_the_claims_is_made(found: dict[str, list[Recording]]) -> None:
    tables = claim_tables(found)
    assert all(len(table) and table["seed"].nunique() == 2 for table in tables.values())
    assert {part for sets, _ in {**PUBLISHED, **CLAIMED, **DRAWN}.values() for part in sets} <= set(plan())


def test_tables_hold_the_settings_that_set_runs_apart(found: dict[str, list[Recording]]) -> None:
    tables = claim_tables(found)
    assert sorted(tables["penalty"]["penalty"].unique()) == [0.0, 1e-3]
    assert tables["penalty"]["corpus"].unique().tolist() == ["Data I"]
    assert sorted(tables["ratios"]["positive_share"].unique()) == [0.1, 0.3, 0.5, 0.7, 0.9]
    assert sorted(tables["terms"]["score_scale"].unique()) == [10.0, 100.0]
    assert sorted(tables["settling"]["embedding_range"].unique()) == [0.1, 1.0]
    assert sorted(tables["noise"]["noise"].unique()) == [0.0, 0.05]


def test_published_numbers_stand_beside_ours(found: dict[str, list[Recording]]) -> None:
    tables = {name: make(found["data-1"]) for name, (_, make) in PUBLISHED.items()}
    assert tables["synthetic_loss"]["published"].tolist() == [0.694, 0.505, 0.206, 0.073, 0.036, 0.020]
    scores = tables["synthetic_scores"].set_index(["quantity", "group"])
    ours = [recording.table("scores").groupby("group")["attention"].mean()["positive"] for recording in found["data-1"]]
    assert scores.loc[("attention", "positive"), "ours"] == pytest.approx(np.mean(ours))
    assert scores.loc[("attention", "positive"), "difference"] == pytest.approx(np.mean(ours) - 0.65)


def test_the_loss_is_taken_at_the_nearest_moment(found: dict[str, list[Recording]]) -> None:
    first = loss_table(found["data-1"]).iloc[0]
    assert first["ours"] == pytest.approx(np.mean([run.table("model")["loss"].iloc[0] for run in found["data-1"]]))


def test_the_gap_is_the_same_in_tables_and_courses(found: dict[str, list[Recording]]) -> None:
    recording = found["data-1"][0]
    course = gap_courses([recording])
    assert course["gap"].iloc[-1] == pytest.approx(attention_gap(recording.table("scores")), abs=1e-6)


def test_settling_times_by_hand() -> None:
    courses = {
        ("pos-pos", "a", "b"): [-1.0, 1.0, 1.0, 2.0],  # settles at 10
        ("neg-neg", "c", "d"): [1.0, -1.0, 1.0, 1.0],  # goes back once: at 20
        ("pos-neg", "a", "c"): [-1.0, -1.0, -1.0, 1.0],  # never
        ("pos-neg", "b", "c"): [-1.0, -1.0, -1.0, -1.0],  # from the start
        ("pos-neu", "a", "n"): [1.0, 1.0, 1.0, 1.0],  # not judged
    }
    rows = [(10.0 * step, *pair, course[step]) for step in range(4) for pair, course in courses.items()]
    table = settling_times(pd.DataFrame(rows, columns=["time", "kind", "first", "second", "omega"]))
    assert table["kind"].tolist() == ["pos-pos", "neg-neg", "pos-neg", "pos-neg"]
    assert table["settled"].tolist() == [10.0, 20.0, 30.0, 0.0]
    assert table["ever"].tolist() == [True, True, False, True]
