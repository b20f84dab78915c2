"""What is recorded while a model is trained: which tokens are followed, and what is kept."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from heedful.config import RecordSettings
from heedful.models.classifier import Classifier
from heedful.models.layers import AffineEncoder
from heedful.probes import recording
from heedful.probes.recording import FlowRecorder, FlowTables, ScoreRecorder
from heedful.probes.scores import token_scores
from heedful.text import synthetic
from heedful.text.corpus import Corpus
from heedful.text.datasets import load_corpus
from heedful.training.events import EpochDone, Event, StepDone
from heedful.training.loop import fit


def after(epoch: int, model: Classifier) -> EpochDone:
    return EpochDone(epoch=epoch, epochs=3, row={}, best=True, model=model)


def test_the_scores_are_those_of_the_tokens(small_corpus: Corpus, small_model: Classifier) -> None:
    recorder = ScoreRecorder(small_corpus)
    recorder(after(1, small_model))
    recorder(after(2, small_model))
    table = recorder.tables()["moments"]
    assert table["time"].unique().tolist() == [1, 2]
    scores = token_scores(small_model, small_corpus).set_index("token")
    last = table[table["time"] == 2].set_index("token")
    for column in ("attention", "polarity"):
        np.testing.assert_allclose(last[column], scores.loc[last.index, column], rtol=1e-6)
    assert last["group"].tolist() == scores.loc[last.index, "group"].tolist()
    assert set(last["group"]) == {"positive", "negative", "neutral"}


def test_the_most_frequent_tokens_of_each_group_are_followed(
    small_corpus: Corpus, small_model: Classifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "MOST", 33)
    recorder = ScoreRecorder(small_corpus)
    recorder(after(1, small_model))
    table = recorder.tables()["moments"]
    scores = token_scores(small_model, small_corpus).set_index("token")
    counts = scores["count_negative"] + scores["count_positive"]
    for group, rows in table.groupby("group"):
        assert len(rows) == 11
        others = counts[(scores["group"] == group) & ~scores.index.isin(rows["token"])]
        assert counts[rows["token"]].min() >= others.max()


def test_several_classes_have_one_strongest_polarity() -> None:
    corpus = synthetic.multi(name="three", seed=0, classes=3, noise=0.0, size=150)
    recorder = ScoreRecorder(corpus)
    model = fit(corpus, embedding_size=4, epochs=2, batch_size=50, observers=[recorder])
    table = recorder.tables()["moments"]
    assert sorted(table["time"].unique()) == [1, 2]
    recorder(after(3, model))
    table = recorder.tables()["moments"]
    last = table[table["time"] == 3].set_index("token")
    scores = token_scores(model, corpus).set_index("token").loc[last.index]
    columns = scores[[column for column in scores if str(column).startswith("polarity_")]].to_numpy()
    expected = [max(row[k] - (row.sum() - row[k]) / 2 for k in range(3)) for row in columns]
    np.testing.assert_allclose(last["strongest polarity"], expected, rtol=1e-5, atol=1e-7)


def test_recording_changes_nothing(small_corpus: Corpus) -> None:
    settings = {"embedding_size": 4, "epochs": 1, "batch_size": 100, "seed": 1}
    plain = fit(small_corpus, **settings)  # type: ignore[arg-type]
    watched = fit(small_corpus, **settings, observers=[ScoreRecorder(small_corpus)])  # type: ignore[arg-type]
    pd.testing.assert_frame_equal(plain.history, watched.history)
    assert plain.embedding.equal(watched.embedding)


def test_where_no_token_belongs_to_a_group_nothing_is_recorded(small_model: Classifier) -> None:
    texts = [f"one{row}" for row in range(40)]
    corpus = load_corpus((texts, ["a" if row % 2 else "b" for row in range(40)]))
    recorder = ScoreRecorder(corpus)
    recorder(after(1, small_model))
    assert recorder.tables() == {}


@pytest.fixture(scope="module")
def reviews() -> Corpus:
    """A corpus in which nothing is planted: groups follow from counts."""
    rng = np.random.default_rng(0)
    texts = [
        " ".join(["good" if label else "bad", *(f"word{number}" for number in rng.integers(0, 9, 4))])
        for label in (0, 1) * 40
    ]
    return load_corpus((texts, ["neg", "pos"] * 40))


@pytest.mark.parametrize("encoder", ["none", "affine"])
def test_flow_tables_are_those_of_the_flow_recorder(reviews: Corpus, encoder: str) -> None:
    whole = FlowRecorder(reviews, every=5, pairs=4, tokens=True)
    pieces = FlowTables(reviews, RecordSettings(pairs=4), every=5)
    hidden: list[np.ndarray] = []

    def look(event: Event) -> None:
        if isinstance(event, StepDone) and (event.step == 1 or event.step % 5 == 0) and encoder == "affine":
            assert isinstance(event.model.encoder, AffineEncoder)
            vectors = (event.model.embedding.double() @ event.model.encoder.projection.double().T).detach()
            hidden.append((vectors[whole.pairs[:, 0]] * vectors[whole.pairs[:, 1]]).sum(1).numpy())

    model = fit(
        reviews, encoder=encoder, embedding_size=4, hidden_size=4, epochs=2, batch_size=10, dropout=0.0,
        observers=[whole, pieces, look],
    )  # fmt: skip
    expected, tables = whole.tables(), pieces.tables()
    for name in ("model", "groups"):
        pd.testing.assert_frame_equal(tables[f"flow_{name}"], expected[name], check_exact=True)
    columns = ["epoch", "step", "token", "group", "polarity", "attention"]
    kept = expected["tokens"][columns].astype({"polarity": "float32", "attention": "float32"})
    pd.testing.assert_frame_equal(tables["flow_tokens"], kept, check_exact=True)
    signs = tables["flow_signs"].set_index(["step", "group"])["attention_rate"].to_dict()
    for moment, rows in expected["tokens"].groupby(["step", "group"]):
        assert signs[moment] == pytest.approx((rows["attention_rate"] > 0).mean())
    pairs = tables["flow_pairs"]
    np.testing.assert_array_equal(pairs["omega"], expected["pairs"]["omega"].astype("float32"))
    if encoder == "affine":
        np.testing.assert_allclose(pairs["omega_hidden"], np.concatenate(hidden), rtol=1e-6, atol=1e-9)
    else:
        assert "omega_hidden" not in pairs
    assert set(tables["flow_scores"]["group"]) == set(whole.groups)
    assert len(model.history) == 2


def test_the_tables_of_a_recorder_that_was_restored_are_those_of_one_that_was_not(
    small_corpus: Corpus, small_model: Classifier
) -> None:
    whole, first, second = (ScoreRecorder(small_corpus) for _ in range(3))
    for epoch in (1, 2, 3):
        whole(after(epoch, small_model))
    first(after(1, small_model))
    second.restore(first.tables())
    for epoch in (2, 3):
        second(after(epoch, small_model))
    pd.testing.assert_frame_equal(whole.tables()["moments"], second.tables()["moments"], check_exact=True)


def test_the_settings_say_what_is_recorded(small_corpus: Corpus) -> None:
    def kinds(**settings: Any) -> list[type]:
        return [type(recorder) for recorder in recording.recorders(RecordSettings(**settings), small_corpus)]

    assert kinds() == [ScoreRecorder]
    assert kinds(scores=False) == []
    assert kinds(flow=3) == [ScoreRecorder, FlowTables]
