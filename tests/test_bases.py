"""Runs that rest on other runs: given weights, adversaries, both one on the other; found, resumed, named, shown."""

from pathlib import Path

import pytest
import torch

from heedful.analysis.tokens import token_groups, training_counts
from heedful.config import RunSettings
from heedful.errors import ConfigError
from heedful.pipeline import Run, run
from heedful.store import Store
from heedful.sweep.loop import sweep
from heedful.sweep.plan import Plan
from heedful.text.corpus import Corpus
from heedful.text.ragged import segment_sum
from heedful.traces import Trace
from heedful.training import loop
from heedful.training.events import EpochDone, Event
from tests.commands import Call
from tests.test_pipeline import Interrupted, same_bits, stop_after

pytestmark = pytest.mark.usefixtures("one_thread")

SMALL = {"model.embedding_size": 8, "model.hidden_size": 8, "training.epochs": 4, "training.batch_size": 50}


def small(*changes: str) -> RunSettings:
    """A small run; all runs that it rests on are as small."""
    depth = max((change.count("base.") for change in changes), default=0)
    prefixes = ["base." * level for level in range(depth + 1)]
    sizes = {prefix + name: value for prefix in prefixes for name, value in SMALL.items()}
    return RunSettings().change(sizes).override(changes)


GUIDED = small("model.encoder=tanh", "model.attention_weights=given", "base.model.encoder=gru", "base.training.seed=3")
ADVERSARY = small(
    "model.encoder=gru", "training.objective=adversary", "training.objective_weight=0.5", "training.seed=1",
    "base.model.encoder=gru", "base.training.seed=3",
)  # fmt: skip
DIAGNOSTIC = small(
    "model.encoder=tanh", "model.attention_weights=given", "base.training.objective=adversary",
    "base.model.encoder=gru", "base.training.objective_weight=0.5", "base.training.seed=1",
    "base.base.model.encoder=gru", "base.base.training.seed=3",
)  # fmt: skip


def found_by(store: Store, settings: RunSettings | None, corpus: Corpus) -> Run:
    assert settings is not None
    found = store.find(settings.digest(corpus.fingerprint))
    assert found is not None
    return Run(found)


def test_given_weights_are_those_of_the_base_in_training_dev_and_test(tmp_path: Path, small_corpus: Corpus) -> None:
    store = Store(tmp_path)
    done = run(GUIDED, store, corpus=small_corpus)
    base = found_by(store, GUIDED.base, small_corpus)
    assert len(store.finished()) == 2
    assert torch.equal(done.trace().attention_weights, base.trace().attention_weights)
    told = base.traces(small_corpus, store)
    assert torch.equal(told["test"].logits, base.trace().logits)
    model = loop.fit(
        small_corpus, embedding_size=8, hidden_size=8, epochs=4, batch_size=50, encoder="tanh", attention_weights=told
    )
    assert torch.equal(model.embedding, done.model().embedding)
    assert done.table("history").equals(model.history)
    assert torch.equal(done.traces(small_corpus, store)["train"].attention_weights, told["train"].attention_weights)
    assert done.table("tokens")["attention"].unique().tolist() == [0.0]
    assert done.table("moments")["attention"].unique().tolist() == [0.0]


def test_an_adversary_stays_near_the_outputs_of_its_base_and_leaves_its_attention(
    tmp_path: Path, small_corpus: Corpus
) -> None:
    """More with a larger weight; the epoch kept has the smallest objective on dev."""
    store = Store(tmp_path)
    distances = []
    for weight in (0.0, 1.0):
        wanted = ADVERSARY.change({"training.objective_weight": weight, "training.epochs": 10})
        done = run(wanted, store, corpus=small_corpus)
        history = done.table("history")
        kept = history[history["kept"]].iloc[0]
        assert kept["dev_objective"] == history["dev_objective"].min()
        assert done.metrics["best_epoch"] == kept["epoch"]
        assert done.metrics["dev_accuracy"] == kept["dev_accuracy"]
        base = found_by(store, wanted.base, small_corpus).traces(small_corpus, store)
        found = done.traces(small_corpus, store)
        value = mean_tvd(found["dev"], base["dev"]) - weight * mean_divergence(found["dev"], base["dev"])
        assert kept["dev_objective"] == pytest.approx(value, abs=1e-5)
        distances.append((mean_tvd(found["test"], base["test"]), mean_divergence(found["test"], base["test"])))
    (_, like), (_, unlike) = distances
    assert unlike > 2 * like


def mean_tvd(one: Trace, other: Trace) -> float:
    return float((one.probabilities - other.probabilities).abs().sum(1).mean() / 2)


def mean_divergence(one: Trace, other: Trace) -> float:
    alpha, beta = one.attention_weights, other.attention_weights
    return float(segment_sum(alpha * (alpha / beta).log(), one.offsets).mean())


def test_the_training_of_a_base_is_told_to_the_observers_too(tmp_path: Path, small_corpus: Corpus) -> None:
    """And where the base is found, that of the run alone."""
    ends: list[int] = []

    def listen(event: Event) -> None:
        if isinstance(event, EpochDone) and event.last:
            ends.append(event.epochs)

    store, wanted = Store(tmp_path), GUIDED.change({"training.epochs": 2})
    run(wanted, store, corpus=small_corpus, observers=[listen])
    run(wanted.change({"training.epochs": 1}), store, corpus=small_corpus, observers=[listen])
    assert ends == [4, 2, 1]


def test_a_base_may_rest_on_a_base(tmp_path: Path, small_corpus: Corpus) -> None:
    store = Store(tmp_path)
    done = run(DIAGNOSTIC, store, corpus=small_corpus)
    assert DIAGNOSTIC.base == ADVERSARY
    adversary = found_by(store, ADVERSARY, small_corpus)
    base = found_by(store, ADVERSARY.base, small_corpus)
    assert torch.equal(done.trace().attention_weights, adversary.trace().attention_weights)
    assert not torch.equal(adversary.trace().attention_weights, base.trace().attention_weights)
    assert [path.name[13:] for path in (done.path, adversary.path, base.path)] == [
        "given-dot-tanh-10-on-adversary-0.5-dot-gru-10-on-dot-gru-10_small_0",
        "adversary-0.5-dot-gru-10-on-dot-gru-10_small_1",
        "dot-gru-10_small_3",
    ]
    assert done.settings == DIAGNOSTIC == RunSettings.read(done.path / "settings.json")
    given = run(DIAGNOSTIC.change({"base": GUIDED.model_dump(mode="json")}), store, corpus=small_corpus)
    assert torch.equal(given.trace().attention_weights, base.trace().attention_weights)


@pytest.mark.parametrize("wanted", [ADVERSARY, DIAGNOSTIC], ids=["adversary", "diagnostic"])
def test_an_interrupted_run_on_a_base_resumes_to_the_same_bits(
    tmp_path: Path, small_corpus: Corpus, monkeypatch: pytest.MonkeyPatch, wanted: RunSettings
) -> None:
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)
    whole = run(wanted, Store(tmp_path / "whole"), corpus=small_corpus)
    broken = Store(tmp_path / "broken")
    assert wanted.base is not None
    run(wanted.base, broken, corpus=small_corpus)
    with pytest.raises(Interrupted):
        run(wanted, broken, corpus=small_corpus, observers=[stop_after(3)])
    bases = len(broken.finished())
    assert bases == (1 if wanted == ADVERSARY else 2)
    epochs: list[int] = []
    resumed = run(wanted, broken, corpus=small_corpus, observers=[lambda event: epochs.append(event.epoch)])
    assert set(epochs) == {3, 4}
    assert same_bits(whole, resumed)
    assert whole.metrics == resumed.metrics


@pytest.mark.parametrize("changes", [
    ["training.optimizer=adam", "training.amsgrad=true", "training.weight_decay=0.01",
     "training.decayed=all but attention"],
    ["training.objective=diverse", "model.normaliser=sparsemax", "model.encoder=conv", "model.widths=[1, 3]"],
    ["training.objective=deceptive", "model.normaliser=entmax15"],
])  # fmt: skip
def test_other_trainings_resume_to_the_same_bits(
    tmp_path: Path, small_corpus: Corpus, monkeypatch: pytest.MonkeyPatch, changes: list[str]
) -> None:
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)
    wanted = small(*changes)
    whole = run(wanted, Store(tmp_path / "whole"), corpus=small_corpus)
    with pytest.raises(Interrupted):
        run(wanted, Store(tmp_path / "broken"), corpus=small_corpus, observers=[stop_after(3)])
    assert same_bits(whole, run(wanted, Store(tmp_path / "broken"), corpus=small_corpus))


def test_the_words_that_a_deceptive_run_leaves_are_those_of_a_class(tmp_path: Path, small_corpus: Corpus) -> None:
    done = run(small("training.objective=deceptive"), Store(tmp_path), corpus=small_corpus)
    groups = token_groups(training_counts(small_corpus), small_corpus.class_names)
    pairs = zip(small_corpus.vocabulary.tokens, groups, strict=True)
    polar = [token for token, group in pairs if group in {"positive", "negative"}]
    assert len(polar) > 20
    model = loop.fit(
        small_corpus, embedding_size=8, epochs=4, batch_size=50, objective="deceptive", impermissible=polar
    )
    assert torch.equal(model.embedding, done.model().embedding)


def test_a_run_without_the_base_that_it_needs_is_refused(tmp_path: Path, small_corpus: Corpus) -> None:
    cases = {
        "model.attention_weights=given": r"or name the run that they are of by settings, such as base\.model\.encoder",
        "training.objective=adversary": r"name that run by settings, such as base\.model\.encoder=lstm",
    }
    for change, sentence in cases.items():
        with pytest.raises(ConfigError, match=sentence):
            run(small(change), Store(tmp_path), corpus=small_corpus)


def test_a_sweep_of_runs_on_one_base_computes_it_once(tmp_path: Path) -> None:
    plan = Plan.of(
        small("training.objective=adversary", "training.epochs=1", "base.training.epochs=1", "base.model.encoder=tanh"),
        grid={"training.objective_weight": [0.0, 0.5]},
        runs=[{}, {"base.model.encoder": "none"}],
    )
    assert plan.varied == ("training.objective_weight", "base.model.encoder")
    mixed = Plan.of(ADVERSARY, runs=[{}, {"base": None, "training.objective": "diverse"}])
    assert {"training.objective", "base.model.encoder"} <= set(mixed.varied)
    done = sweep(plan, Store(tmp_path), workers=2)
    assert (len(done.runs), len(done.failures)) == (4, 0)
    assert len(Store(tmp_path).finished()) == 6
    assert set(done.summary["base.model.encoder"]) == {"tanh", "none"}


def test_the_command_line_trains_and_shows_a_run_on_a_base(call: Call, tmp_path: Path) -> None:
    root = tmp_path / "runs"
    sets = [
        "model.attention_weights=given", "model.embedding_size=4", "training.epochs=1", "base.model.embedding_size=4",
        "base.training.epochs=1", "base.model.normaliser=entmax15", "base.model.attention=additive",
        "base.model.context_size=2", "base.model.score_scale=0.1",
    ]  # fmt: skip
    changes = [part for change in sets for part in ("--set", change)]
    trained = call("train", "synthetic-1", "--store", root, "--encoder", "tanh", *changes)
    assert trained.code == 0
    assert trained.err.count("training on synthetic-1") == 2  # a line for the base, a line for what rests on it
    resting, base = sorted(Store(root).finished(), key=lambda path: "-on-" not in path.name)
    assert base.name[13:] == "entmax15-additive-none-0.1_synthetic-1_0"
    assert resting.name[13:] == "given-dot-tanh-10-on-entmax15-additive-none-0.1_synthetic-1_0"
    zeros = [Run(path).trace().attention_weights == 0 for path in (resting, base)]
    assert torch.equal(*zeros)
    assert bool(zeros[0].any())
    shown = call("runs", "show", resting.name, "--store", root).out
    assert "settings.base.model.normaliser       entmax15" in shown
    assert "settings.base.data" not in shown
