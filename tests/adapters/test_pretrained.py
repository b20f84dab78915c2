"""Tiny transformers of seven families beside literal forward passes, and what their tokenizers make of texts."""

import copy
from functools import cache
from typing import Any

import pytest
import torch
import transformers
from hypothesis import given, settings
from torch import Tensor

import heedful
from heedful.adapters.asking import SubjectError
from heedful.adapters.pieces import PIECES_AT_ONCE, PieceReading
from heedful.adapters.pretrained import PretrainedSubject, owned
from heedful.errors import InputError, UnknownName
from heedful.subjects import ATTENTION, DELETE, MASK
from tests import strategies
from tests.oracles.transformer_passes import PASSES, double
from tests.tiny_transformers import CLASSES, FAMILIES, OTHERS, byte_pairs, made, tiny, wordpiece

pytestmark = pytest.mark.usefixtures("one_thread")

TEXTS = ["a good film!", 'Déjà vu... filming 😀 a GOOD one, "well-made!"', "bad", "not the film", "the film is dull"]
EVERY = pytest.mark.parametrize("family", [*FAMILIES, *OTHERS])


@cache
def subject_of(family: str) -> PretrainedSubject:
    model, tokenizer = tiny(family)
    found = heedful.subject(model, tokenizer, name=family)
    assert isinstance(found, PretrainedSubject)
    return found


@cache
def reading_of(family: str) -> PieceReading:
    return subject_of(family).read(TEXTS)


def plainly(family: str, numbers: list[int]) -> Tensor:
    """What the model says of the numbers of one text, called as anybody would."""
    model, _ = tiny(family)
    model.eval()
    with torch.no_grad():
        told: Tensor = model(input_ids=torch.tensor([numbers])).logits[0].double().softmax(0)
    model.train()
    return told


def some_gone(reading: PieceReading, seed: int = 0, share: float = 0.4) -> Tensor:
    return torch.rand(int(reading.units.offsets[-1]), generator=torch.Generator().manual_seed(seed)) < share


def pieces_gone(family: str, row: int, gone: Tensor) -> tuple[list[int], list[bool]]:
    """The numbers of a text's pieces, and which end in a unit that is gone or in the gap before it."""
    reading, (_, tokenizer) = reading_of(family), tiny(family)
    assert reading.units.spans is not None
    told = tokenizer(TEXTS[row], return_offsets_mapping=True, return_special_tokens_mask=True)
    own = slice(int(reading.units.offsets[row]), int(reading.units.offsets[row + 1]))
    ends = [0, *reading.units.spans[own, 1].tolist()]
    out = [ends[place : place + 2] for place, mark in enumerate(gone[own].tolist()) if mark]
    places = zip(told["offset_mapping"], told["special_tokens_mask"], strict=True)
    inside = [not special and any(before < end <= last for before, last in out) for (_, end), special in places]
    return told["input_ids"], inside


@EVERY
def test_probabilities_are_those_of_the_model_called_plainly(family: str) -> None:
    model, tokenizer = tiny(family)
    for text, told in zip(TEXTS, reading_of(family).probabilities, strict=True):
        torch.testing.assert_close(told, plainly(family, tokenizer(text)["input_ids"]), rtol=0, atol=1e-6)
    assert subject_of(family).class_names == tuple(CLASSES.values())
    assert model.training


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("family", FAMILIES)
def test_cut_off_from_attention_is_a_key_that_nobody_attends_to(family: str, share: float) -> None:
    reading, state = reading_of(family), double(tiny(family)[0].state_dict())
    assert reading.ways == (DELETE, MASK, ATTENTION)
    gone = some_gone(reading, share=share)
    told = reading.without(torch.arange(len(TEXTS)), gone, ATTENTION)
    for row in range(len(TEXTS)):
        numbers, inside = pieces_gone(family, row, gone)
        hidden = {place for place, out in enumerate(inside) if out}
        torch.testing.assert_close(told[row], PASSES[family](state, numbers, hidden).softmax(0), rtol=0, atol=1e-5)
    moved = (told - reading.probabilities).abs().max()
    assert moved > 1e-3 if share else moved == 0


@EVERY
def test_deleted_pieces_are_not_there_and_masked_ones_are_mask_tokens(family: str) -> None:
    reading, (_, tokenizer) = reading_of(family), tiny(family)
    gone = some_gone(reading, seed=1)
    gone[: int(reading.units.offsets[1])] = True
    deleted, masked = (reading.without(torch.arange(len(TEXTS)), gone, how) for how in (DELETE, MASK))
    for row in range(len(TEXTS)):
        numbers, inside = pieces_gone(family, row, gone)
        left = [number for number, out in zip(numbers, inside, strict=True) if not out] or [tokenizer.bos_token_id]
        torch.testing.assert_close(deleted[row], plainly(family, left), rtol=0, atol=1e-6)
        filled = [tokenizer.mask_token_id if out else number for number, out in zip(numbers, inside, strict=True)]
        torch.testing.assert_close(masked[row], plainly(family, filled), rtol=0, atol=1e-6)


@EVERY
def test_together_is_as_alone(family: str) -> None:
    reading, rows = reading_of(family), torch.tensor([4, 1, 4, 4, 3])
    for how in reading.ways:
        marks = [some_gone(reading, seed)[reading.units.segments == row] for seed, row in enumerate(rows.tolist())]
        together = reading.without(rows, torch.cat(marks), how)
        for row, mark, told in zip(rows.tolist(), marks, together, strict=True):
            alone = subject_of(family).read([TEXTS[row]]).without(torch.tensor([0]), mark, how)[0]
            torch.testing.assert_close(told, alone, rtol=0, atol=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_model_is_left_bitwise_as_it_was(family: str) -> None:
    model, tokenizer = made(family, seed=1)
    next(iter(model.children())).eval()
    before, config = copy.deepcopy(model.state_dict()), copy.deepcopy(model.config.to_dict())
    training = [part.training for part in model.modules()]
    reading = heedful.subject(model, tokenizer).read(TEXTS[:2])
    for how in reading.ways:
        reading.without(torch.arange(2), some_gone_of(reading), how)
    assert all(torch.equal(values, before[name]) for name, values in model.state_dict().items())
    assert model.config.to_dict() == config
    assert [part.training for part in model.modules()] == training
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in model.modules())
    assert all(values.grad is None for values in model.parameters())


def some_gone_of(reading: Any) -> Tensor:
    return torch.arange(int(reading.units.offsets[-1])) % 2 == 0


def test_what_a_family_cannot_do_it_does_not_offer() -> None:
    """A mask that hides nothing, a class read off a word: such units cannot be cut off from attention."""
    ways = {family: subject_of(family).ways for family in OTHERS}
    assert ways["fnet"] == (DELETE, MASK)
    assert ways["llama without an end"] == (DELETE, MASK)
    assert ways["bare bert"] == (DELETE, MASK)
    assert ways["llama without padding"] == (DELETE, MASK, ATTENTION)
    with pytest.raises(UnknownName, match=r"no way to take units away 'attention'.*Known: delete, mask"):
        reading_of("fnet").without(torch.arange(len(TEXTS)), some_gone(reading_of("fnet")), ATTENTION)


def test_a_decoder_that_knows_no_padding_reads_one_text_at_a_time() -> None:
    assert subject_of("llama without padding").at_once == 1
    assert subject_of("llama").at_once == PIECES_AT_ONCE


def test_without_a_mask_token_the_unknown_one_stands_in_or_nothing_is_masked() -> None:
    model, _ = made("bert")
    assert heedful.subject(model, wordpiece(mask_token=None)).mask == 1  # type: ignore[attr-defined]
    model, _ = made("llama")
    bare = heedful.subject(model, byte_pairs(mask_token=None, unk_token=None))
    assert bare.read(["a film"]).ways == (DELETE, ATTENTION)


UNITS = {
    "bert": ["Déjà", "vu", ".", ".", ".", "filming", "😀", "a", "GOOD", "one", ",", '"', "well", "-", "made", "!", '"'],
    "roberta": ["Déjà", "vu", "...", "filming", "😀", "a", "GOOD", "one", ",", '"', "well", "-", "made", '!"'],
}


@pytest.mark.parametrize("family", UNITS)
def test_pieces_are_folded_into_words_of_the_text_itself(family: str) -> None:
    """Accents, capitals and emoji stand as they are written; marks that share a piece are one unit."""
    reading = reading_of(family)
    assert [reading.units.shown[place] for place in reading.units.of_rows(torch.tensor([1]))] == UNITS[family]
    own = reading.pieces.owners[int(reading.pieces.offsets[1]) : int(reading.pieces.offsets[2])]
    assert (own == -1).nonzero().squeeze(1).tolist() == [0, len(own) - 1]
    assert own[1:-1].unique_consecutive().tolist() == list(range(len(UNITS[family])))


@pytest.mark.parametrize(
    ("text", "words", "places", "spans", "owners"),
    [
        ("good film", [(0, 4), (5, 9)], [(0, 0), (0, 4), (5, 7), (7, 9), (0, 0)], [(0, 4), (5, 9)], [-1, 0, 1, 1, -1]),
        ("a  b", [(0, 1), (3, 4)], [(0, 0), (0, 1), (1, 2), (2, 4), (0, 0)], [(0, 1), (3, 4)], [-1, 0, 1, 1, -1]),
        ("a b ", [(0, 1), (2, 3)], [(0, 0), (0, 1), (1, 3), (3, 4), (0, 0)], [(0, 1), (2, 3)], [-1, 0, 1, 1, -1]),
        ("a-st", [(0, 1), (1, 2), (2, 4)], [(0, 0), (0, 1), (1, 3), (3, 4), (0, 0)], [(0, 1), (1, 4)], [-1, 0, 1, 1, -1]),  # noqa: E501
        ("a ? b", [(0, 1), (2, 3), (4, 5)], [(0, 0), (0, 1), (4, 5), (0, 0)], [(0, 1), (4, 5)], [-1, 0, 1, -1]),
        ("of the", [(0, 2), (3, 6)], [(0, 0), (0, 6), (0, 0)], [(0, 6)], [-1, 0, -1]),
        ("x", [(0, 1)], [(0, 0), (0, 0), (0, 1), (0, 0)], [(0, 1)], [-1, 0, 0, -1]),
    ],
)  # fmt: skip
def test_who_owns_a_piece_by_hand(text: str, words: Any, places: Any, spans: Any, owners: list[int]) -> None:
    special = [int(place in (0, len(places) - 1)) for place in range(len(places))]
    assert owned(text, words, places, special) == (spans, owners)


@settings(max_examples=60)
@given(text=strategies.texts)
@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_units_of_hostile_texts_lie_in_them(family: str, text: str) -> None:
    """They follow each other without overlap, cover all pieces, and special tokens are in none."""
    whole = f"film {text}"[:18]  # 13 characters of four bytes each, 5 letters, and 2 special tokens at most
    units, pieces = subject_of(family).cut([whole])
    assert units.spans is not None
    ends = units.spans.flatten().tolist()
    assert ends == sorted(ends)
    assert all(
        shown and shown == whole[start:end] for shown, (start, end) in zip(units.shown, units.spans, strict=True)
    )
    inner = pieces.owners[1:-1]
    assert pieces.owners[[0, -1]].tolist() == [-1, -1]
    assert torch.equal(inner.unique(), torch.arange(len(units.shown)))
    assert (inner.diff() >= 0).all()


def test_special_tokens_that_are_written_in_the_text_are_words_of_it() -> None:
    reading = subject_of("bert").read(["a [SEP] film"])
    assert list(reading.units.shown) == ["a", "[SEP]", "film"]
    assert reading.pieces.numbers.tolist()[2] == 3


def test_texts_beyond_the_positions_are_refused_or_cut_where_that_is_asked() -> None:
    for family, longest in (("bert", 60), ("roberta", 58), ("mpnet", 58), ("distilbert", 60)):
        model, tokenizer = tiny(family)
        assert subject_of(family).longest == longest
        text = "a " * 70
        with pytest.raises(SubjectError) as told:
            subject_of(family).read(["a film", text])
        assert str(told.value) == (
            f"{family} cannot read text 1 (the first is 0), '{text[:30]}': it has more pieces than the {longest} that "
            "can be read. Cut such texts, or read only their beginnings (truncate=True, on the command line "
            "--truncate)."
        )
        cut = heedful.subject(model, tokenizer, truncate=True).read([text, "a film"])
        assert cut.probabilities.shape == (2, 3)
        assert cut.units.lengths[0] < 70


def test_nan_in_the_weights_is_said() -> None:
    model, tokenizer = made("bert")
    with torch.no_grad():
        model.classifier.weight[1, 2] = torch.nan
    with pytest.raises(SubjectError, match=r"What BertForSequenceClassification says must be finite; it holds NaN"):
        heedful.subject(model, tokenizer)


def test_a_pipeline_of_the_library_is_its_model_and_tokenizer() -> None:
    model, tokenizer = tiny("bert")
    found = heedful.subject(transformers.pipeline("text-classification", model=model, tokenizer=tokenizer, device=-1))
    assert isinstance(found, PretrainedSubject)
    assert found.ways == subject_of("bert").ways
    assert torch.equal(found.read(TEXTS).probabilities, reading_of("bert").probabilities)


def test_a_model_without_its_tokenizer_is_refused() -> None:
    model, _ = tiny("bert")
    with pytest.raises(SubjectError, match=r"Classification needs its tokenizer: heedful.subject\(model, tokenizer\)"):
        heedful.subject(model)
    with pytest.raises(SubjectError, match="does not say where its pieces stand in the text"):
        heedful.subject(model, str.split)
    with pytest.raises(SubjectError, match=r"The tokenizer of .* knows no words"):
        heedful.subject(model, transformers.BertTokenizer())


def test_the_tokenizer_of_another_model_is_refused() -> None:
    model, _ = tiny("bert")
    with pytest.raises(SubjectError, match=r"it has pieces beyond the \d+ of the model: its tokenizer is another one"):
        heedful.subject(model, byte_pairs())


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["no", "yes"], r"has 3 classes \(no, yes, perhaps\), and 2 names were given"),
        (["a", "b", "c", "d"], "and 4 names were given"),
        (["a", "a", "b"], "must be two different names or more"),
        ("abc", "must be two different names or more"),
    ],
)
def test_class_names_that_do_not_fit_are_refused(names: Any, sentence: str) -> None:
    with pytest.raises(SubjectError, match=sentence):
        heedful.subject(*tiny("bert"), class_names=names)


def test_own_class_names_are_taken() -> None:
    assert heedful.subject(*tiny("bert"), class_names=["bad", "so", "good"]).class_names == ("bad", "so", "good")


def with_config(**settings: Any) -> Any:
    config = transformers.BertConfig(
        vocab_size=200, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, **settings
    )
    return transformers.BertForSequenceClassification(config)


def test_other_problems_than_one_class_per_text_are_refused() -> None:
    with pytest.raises(SubjectError, match="is made for multi label classification; one class of several"):
        heedful.subject(with_config(problem_type="multi_label_classification"), wordpiece())
    for more in ({}, {"problem_type": "regression"}):
        with pytest.raises(SubjectError, match="is made for one output, as for regression"):
            heedful.subject(with_config(num_labels=1, **more), wordpiece())


def test_one_output_is_the_logit_of_the_second_class_where_classes_are_named() -> None:
    model, tokenizer = with_config(num_labels=1).eval(), wordpiece()
    reading = heedful.subject(model, tokenizer, class_names=["no", "yes"]).read(TEXTS[:1])
    with torch.no_grad():
        expected = model(**tokenizer(TEXTS[0], return_tensors="pt")).logits.double().sigmoid()
    torch.testing.assert_close(reading.probabilities[:, 1:], expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", ["BertModel", "BertForTokenClassification", "BertForMaskedLM"])
def test_what_is_no_sequence_classifier_is_refused(kind: str) -> None:
    model = getattr(transformers, kind)(with_config().config)
    with pytest.raises(SubjectError, match=rf"{kind} must give logits \[texts, classes\], .* classification of whole"):
        heedful.subject(model, wordpiece())


def test_a_model_that_reads_more_than_pieces_is_refused() -> None:
    """XLNet's tokenizer gives the last token a type of its own; types are not kept when pieces go."""
    model, tokenizer = made("bert")
    with torch.no_grad():
        model.bert.embeddings.token_type_embeddings.weight[1] += 9

    class Typed:
        is_fast, all_special_ids, model_max_length = True, tokenizer.all_special_ids, 10**30
        mask_token_id, unk_token_id, bos_token_id, eos_token_id, pad_token_id = 4, 1, None, None, 0

        def __len__(self) -> int:
            return len(tokenizer)

        def __call__(self, texts: Any, **how: Any) -> Any:
            told = tokenizer(texts, **how)
            if "return_tensors" in how:
                told["token_type_ids"] = torch.ones_like(told["input_ids"])
            return told

    with pytest.raises(SubjectError, match=r"when it is given the pieces alone .*token_type_ids.*cannot be examined"):
        heedful.subject(model, Typed())


@pytest.mark.parametrize(("texts", "sentence"), [([], "empty list"), ([""], "at least one word"), (b"x", "got bytes")])
def test_what_is_no_text_is_refused(texts: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        subject_of("bert").read(texts)


def test_a_text_that_the_tokenizer_drops_is_refused() -> None:
    with pytest.raises(SubjectError, match=r"cannot read text 1 .*: it has no piece that the tokenizer knows"):
        subject_of("bert").read(["film", "\u200b\u200b"])


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    subject = heedful.subject(*tiny("bert"), watch=lambda done, of: told.append((done, of)))
    assert not told
    assert len(subject.read(TEXTS).probabilities) == len(TEXTS)
    assert told[-1] == (len(TEXTS), len(TEXTS))
    assert [done for done, _ in told] == sorted(done for done, _ in told)
