"""What is recorded while a model is trained: which tokens are followed, and what is kept."""

import numpy as np
import pandas as pd
import pytest

from heedful.models.classifier import Classifier
from heedful.probes import recording
from heedful.probes.recording import ScoreRecorder
from heedful.probes.scores import token_scores
from heedful.text import synthetic
from heedful.text.corpus import Corpus
from heedful.text.datasets import load_corpus
from heedful.training.events import EpochDone
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
