"""Flow terms of live models, the recorder, and the fused kernel against plain autograd."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from heedful.config import ModelSettings
from heedful.errors import ConfigError, HeedfulError, InputError, UnknownName
from heedful.models.classifier import Classifier, FlatClassifier, Interface
from heedful.models.kernels import keep_mask
from heedful.probes.recording import FlowRecorder
from heedful.probes.scores import flow_terms
from heedful.text.corpus import Corpus, build_corpus
from heedful.text.tokenize import Tokenizer
from heedful.training.events import EpochDone
from heedful.training.loop import fit
from tests.oracles import flow as oracle

TEXTS = ["good good film", "bad film", "fine plot good", "bad bad plot film bad", "film"]
LABELS = {2: [1, 0, 1, 0, 1], 3: [0, 2, 1, 2, 0]}
CLASS_NAMES = {2: ("negative", "positive"), 3: ("sports", "health", "law")}
MODELS = [("dot", "none"), ("dot", "affine"), ("additive", "none"), ("additive", "affine")]
EXACT = 1e-10


def corpus_of(classes: int) -> Corpus:
    labelled = (TEXTS, LABELS[classes])
    return build_corpus(
        name="films",
        splits={"train": labelled, "dev": labelled, "test": labelled},
        class_names=CLASS_NAMES[classes],
        tokenizer=Tokenizer("whitespace"),
    )


def model_of(corpus: Corpus, attention: str = "dot", encoder: str = "none", **settings: Any) -> FlatClassifier:
    interface = Interface(vocabulary=corpus.vocabulary, tokenizer=corpus.tokenizer, class_names=corpus.class_names)
    sizes = {"embedding_size": 3, "hidden_size": 4, "score_scale": 2.0, "embedding_range": 1.0}
    chosen = ModelSettings.of({"attention": attention, "encoder": encoder, **sizes, **settings})
    return FlatClassifier(interface, chosen, torch.Generator().manual_seed(7))


def oracle_of(model: FlatClassifier) -> oracle.Model:
    weights = {name: tensor.detach().double().clone() for name, tensor in model.named_parameters()}
    return oracle.Model(
        embedding=weights["embedding"],
        V=weights["attention.context_vector"],
        W=weights["readout_weight"],
        scale=model.settings.score_scale,
        M=weights.get("encoder.projection"),
        Ma=weights.get("attention.projection"),
    )


def numbers_of(corpus: Corpus) -> list[list[int]]:
    return [[corpus.vocabulary.number(word) for word in text.split()] for text in TEXTS]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(("attention", "encoder"), MODELS)
def test_the_terms_of_a_model_sum_to_the_autograd_rates(attention: str, encoder: str, classes: int) -> None:
    corpus = corpus_of(classes)
    model = model_of(corpus, attention, encoder)
    table = flow_terms(model, corpus.train)
    polarity, rates = oracle.token_rates(oracle_of(model), numbers_of(corpus), LABELS[classes])
    assert table["token"].tolist() == list(corpus.vocabulary.tokens)
    assert table["attention_rate"].tolist() == pytest.approx(rates.tolist(), rel=EXACT, abs=EXACT)
    further = [name for name in table if str(name) in {"D_encoder", "E_encoder", "E_projection"}]
    assert table[["D", "E", "F", *further]].sum(axis=1).tolist() == pytest.approx(rates.tolist(), rel=EXACT, abs=EXACT)
    suffixes = [""] if classes == 2 else [f"_{name}" for name in CLASS_NAMES[3]]
    for number, suffix in enumerate(suffixes):
        true = pytest.approx(polarity[:, number].tolist(), rel=EXACT, abs=EXACT)
        terms = [f"{name}{suffix}" for name in ("A", "B", "C")]
        terms += [f"{name}_encoder{suffix}" for name in ("A", "B")] if encoder == "affine" else []
        assert table[f"polarity_rate{suffix}"].tolist() == true
        assert table[terms].sum(axis=1).tolist() == true


def test_the_columns_are_those_of_the_paper() -> None:
    letters = ["token", *"ABCDEF"]
    rest = ["pi", "rho", "polarity_rate", "attention_rate"]
    corpus = corpus_of(2)
    assert list(flow_terms(model_of(corpus), corpus.train)) == [*letters, *rest]
    affine = flow_terms(model_of(corpus, encoder="affine"), corpus.train)
    assert list(affine) == [*letters, "A_encoder", "B_encoder", "D_encoder", "E_encoder", *rest]
    additive = flow_terms(model_of(corpus, "additive"), corpus.train)
    approximate = [f"{name}_approximate" for name in ("D", "E", "F", "E_projection", "attention_rate")]
    assert list(additive) == [*letters, "E_projection", *rest, *approximate]
    multi = corpus_of(3)
    suffixed = [f"{name}_{suffix}" for name in "ABC" for suffix in CLASS_NAMES[3]]
    assert list(flow_terms(model_of(multi), multi.train))[: 1 + 9 + 3] == ["token", *suffixed, "D", "E", "F"]


def test_a_contextual_encoder_is_refused_with_the_reason() -> None:
    corpus = corpus_of(2)
    model = model_of(corpus, encoder="lstm")
    with pytest.raises(InputError, match=r"'lstm' mixes it with its neighbours.*Use the encoder 'none' or 'affine'"):
        flow_terms(model, corpus.train)
    assert issubclass(InputError, HeedfulError)
    with pytest.raises(InputError, match="neighbours"):
        fit(corpus, encoder="lstm", epochs=1, observers=[FlowRecorder(corpus)])


def test_a_split_of_another_corpus_is_refused() -> None:
    corpus = corpus_of(2)
    labelled = ([f"{text} {' '.join('abcdefgh')}" for text in TEXTS], LABELS[2])
    other = build_corpus(
        name="other",
        splits={"train": labelled, "dev": labelled, "test": labelled},
        class_names=CLASS_NAMES[2],
        tokenizer=Tokenizer("whitespace"),
    )
    with pytest.raises(InputError, match="does not know"):
        flow_terms(model_of(corpus), other.train)


def kernel_gradients(model: FlatClassifier, corpus: Corpus, generator: torch.Generator | None) -> dict[str, Tensor]:
    """Through FlatClassifier, hence the fused kernel, in the names of the oracle."""
    batch = corpus.train.batch(torch.arange(len(corpus.train)))
    F.cross_entropy(model(batch, generator).logits, batch.labels).backward()
    names = {
        "embedding": "embedding",
        "attention.context_vector": "V",
        "readout_weight": "W",
        "encoder.projection": "M",
        "attention.projection": "Ma",
    }
    found = {}
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None
        found[names[name]] = parameter.grad.to_dense() if parameter.grad.is_sparse else parameter.grad
    return found


def same(ours: dict[str, Tensor], true: dict[str, Tensor]) -> bool:
    return ours.keys() == true.keys() and all(
        bool(((ours[name] - true[name]).abs() <= EXACT * (1 + true[name].abs())).all()) for name in true
    )


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(("attention", "encoder"), MODELS)
def test_the_fused_kernel_has_the_gradients_of_plain_autograd(attention: str, encoder: str, classes: int) -> None:
    corpus = corpus_of(classes)
    model = model_of(corpus, attention, encoder).double()
    true = oracle.gradients(oracle_of(model), numbers_of(corpus), LABELS[classes])
    assert same(kernel_gradients(model, corpus, None), true)


@pytest.mark.parametrize("dropout_mask", ["token", "occurrence"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(("attention", "encoder"), MODELS)
def test_the_fused_kernel_keeps_its_gradients_under_dropout(
    attention: str, encoder: str, classes: int, dropout_mask: str
) -> None:
    corpus = corpus_of(classes)
    model = model_of(corpus, attention, encoder, dropout=0.3, dropout_mask=dropout_mask).double()
    texts = numbers_of(corpus)
    words, documents = drawn_masks(texts, dropout_mask, model, torch.Generator().manual_seed(3))
    assert any(bool((mask == 0).any()) for mask in documents)
    true = oracle.gradients(oracle_of(model), texts, LABELS[classes], words, documents)
    assert same(kernel_gradients(model, corpus, torch.Generator().manual_seed(3)), true)
    assert not same(true, oracle.gradients(oracle_of(model), texts, LABELS[classes]))


def drawn_masks(
    texts: list[list[int]], dropout_mask: str, model: FlatClassifier, generator: torch.Generator
) -> tuple[list[list[Tensor]], list[Tensor]]:
    """The masks that the classifier draws: for its words, one per distinct token in ascending order or one per word,
    then for its documents."""
    flat = [token for text in texts for token in text]
    keys = sorted(set(flat)) if dropout_mask == "token" else flat
    size = model.embedding.shape[1]
    drawn = keep_mask(torch.Size((len(keys), size)), model.settings.dropout, generator).double()
    word_masks = list(drawn) if dropout_mask == "occurrence" else [drawn[keys.index(token)] for token in flat]
    rest = iter(word_masks)
    shape = torch.Size((len(texts), model.readout_weight.shape[1]))
    documents = keep_mask(shape, model.settings.dropout, generator).double()
    return [[next(rest) for _ in text] for text in texts], list(documents)


def recorded(classes: int = 2, **options: Any) -> tuple[FlowRecorder, Classifier]:
    corpus = corpus_of(classes)
    groups = ["none", "negative", "neutral", "positive", "neutral", "positive"]  # <unk> bad film good plot fine
    recorder = FlowRecorder(corpus, groups=groups, **options)
    model = fit(corpus, embedding_size=3, batch_size=2, epochs=2, dropout=0.0, observers=[recorder])
    return recorder, model


def test_the_recorder_records_the_first_step_and_then_every_kth() -> None:
    recorder, _ = recorded(every=2)
    table = recorder.tables()["model"]
    assert table[["epoch", "step"]].to_numpy().tolist() == [[1, 1], [1, 2], [2, 4], [2, 6]]
    assert list(table)[2:] == ["loss", "mean_beta", "alignment", "context_norm", "readout_norm"]
    assert table["loss"].iloc[-1] < table["loss"].iloc[0]


def late_tables(model: FlatClassifier, corpus: Corpus) -> dict[str, pd.DataFrame]:
    """What a recorder that has been through a training says of another model, at step 99."""
    recorder, _ = recorded(every=100, tokens=True, pairs=[("good", "bad")])
    recorder.record(model, epoch=9, step=99)
    tables = {name: table[table["step"] == 99].reset_index(drop=True) for name, table in recorder.tables().items()}
    assert recorder.corpus.vocabulary == corpus.vocabulary
    return tables


def test_recorded_tokens_and_groups_are_those_of_the_model_then() -> None:
    corpus = corpus_of(2)
    model = model_of(corpus)
    tables = late_tables(model, corpus)
    tokens, terms = tables["tokens"], flow_terms(model, corpus.train)
    pd.testing.assert_frame_equal(tokens[list(terms)], terms)
    groups = tables["groups"].set_index("group")
    assert groups["tokens"].to_dict() == tokens["group"].value_counts().to_dict()
    for column in ("E", "pi", "polarity", "attention_rate"):
        assert groups[column].to_dict() == pytest.approx(tokens.groupby("group")[column].mean().to_dict(), abs=1e-14)
    scores = [oracle.token_scores(oracle_of(model), token) for token in range(len(corpus.vocabulary))]
    assert tokens["attention"].tolist() == pytest.approx([a.item() for a, _ in scores])
    assert tokens["polarity"].tolist() == pytest.approx([s.item() for _, s in scores])


def test_recorded_numbers_and_pairs_are_those_of_the_model_then() -> None:
    corpus = corpus_of(2)
    model = model_of(corpus)
    tables, true = late_tables(model, corpus), oracle_of(model)
    loss = oracle.mean_loss(true, numbers_of(corpus), LABELS[2]).item()
    assert tables["model"]["loss"].tolist() == pytest.approx([loss])
    assert tables["model"]["alignment"].tolist() == pytest.approx(model.alignment().tolist())
    good, bad = (corpus.vocabulary.number(word) for word in ("good", "bad"))
    rate = oracle.pair_rate(true, good, bad, numbers_of(corpus), LABELS[2])
    pairs = tables["pairs"]
    assert pairs[["kind", "first", "second"]].to_numpy().tolist() == [["pos-neg", "good", "bad"]]
    assert pairs["omega"].tolist() == pytest.approx([(true.embedding[good] @ true.embedding[bad]).item()])
    assert pairs["rate"].tolist() == pytest.approx([rate], abs=EXACT)


def test_recording_changes_nothing_in_the_training() -> None:
    _, watched = recorded(every=1, tokens=True)
    alone = fit(corpus_of(2), embedding_size=3, batch_size=2, epochs=2, dropout=0.0)
    assert all(torch.equal(a, b) for a, b in zip(watched.parameters(), alone.parameters(), strict=True))


def test_the_tables_are_saved_as_parquet(tmp_path: Path) -> None:
    recorder, _ = recorded(every=3, tokens=True, pairs=2)
    recorder.save(tmp_path / "flow")
    tables = recorder.tables()
    assert {path.name for path in (tmp_path / "flow").iterdir()} == {f"{name}.parquet" for name in tables}
    for name, table in tables.items():
        pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "flow" / f"{name}.parquet"), table)


def test_several_classes_have_a_column_each() -> None:
    recorder, _ = recorded(classes=3)
    tables = recorder.tables()
    assert {"alignment_sports", "readout_norm_law", "context_norm"} <= set(tables["model"])
    assert {"polarity_health", "A_health", "pi_health", "attention", "rho"} <= set(tables["groups"])
    assert "tokens" not in tables


def test_groups_follow_from_the_counts_unless_they_are_given() -> None:
    recorder = FlowRecorder(corpus_of(2))
    assert len(recorder.groups) == len(recorder.corpus.vocabulary)
    assert set(recorder.groups) <= {"positive", "negative", "neutral", "none"}


def test_epochs_alone_record_nothing_and_leave_empty_tables() -> None:
    corpus = corpus_of(2)
    recorder = FlowRecorder(corpus)
    recorder(EpochDone(epoch=1, epochs=1, row={}, best=True, model=model_of(corpus)))
    assert all(table.empty for table in recorder.tables().values())


def test_unusable_settings_of_the_recorder_are_refused() -> None:
    corpus = corpus_of(2)
    with pytest.raises(ConfigError, match="every 1 or more steps, not every 0"):
        FlowRecorder(corpus, every=0)
    with pytest.raises(InputError, match="6 tokens, 1 groups"):
        FlowRecorder(corpus, groups=["positive"])
    with pytest.raises(UnknownName, match="no token 'goof'"):
        FlowRecorder(corpus, pairs=[("goof", "bad")])
