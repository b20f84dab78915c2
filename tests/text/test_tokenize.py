"""Tokens find their characters again in the text as it was given; the vocabulary has the frequent ones first."""

import pytest
from hypothesis import given

from heedful.errors import DataError, UnknownName
from heedful.text.corpus import build_corpus
from heedful.text.tokenize import UNKNOWN, Tokenizer, Tokens, UnknownToken, Vocabulary, sentence_starts
from tests import strategies

NOTHING = Vocabulary.of([])


def cut(text: str, mode: str = "words", *, lowercase: bool = True) -> list[str]:
    """The characters of the original text that each token stands for."""
    spans = Tokenizer(mode, lowercase).encode([text], NOTHING).spans.tolist()
    return [text[start:end] for start, end in spans]


def spell(text: str, mode: str = "words", *, lowercase: bool = True) -> list[str]:
    """The tokens as the vocabulary writes them."""
    tokenizer = Tokenizer(mode, lowercase)
    vocabulary = tokenizer.vocabulary([text])
    return [vocabulary.tokens[number] for number in tokenizer.encode([text], vocabulary).numbers.tolist()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Good, not GREAT!", ["Good", ",", "not", "GREAT", "!"]),
        ("I don't, you don’t", ["I", "don't", ",", "you", "don’t"]),
        ("'quoted' -- twice", ["'", "quoted", "'", "-", "-", "twice"]),
        ("I 😀 it 😀😀", ["I", "😀", "it", "😀", "😀"]),
        ("cafe\u0301 CAFÉ", ["cafe\u0301", "CAFÉ"]),
        ("İstanbul is İYİ ok", ["İstanbul", "is", "İYİ", "ok"]),
        ("3.5 stars\n\tvery_good", ["3", ".", "5", "stars", "very_good"]),
        ("很好 great", ["很好", "great"]),
        ("a\u00a0b\u3000c", ["a", "b", "c"]),
        ("", []),
        (" \n\t", []),
    ],
)
@pytest.mark.parametrize("lowercase", [True, False])
def test_tokens_slice_the_original_text(text: str, expected: list[str], lowercase: bool) -> None:
    assert cut(text, lowercase=lowercase) == expected


@pytest.mark.parametrize("emoji", ["👍🏽", "❤️", "👩‍💻", "🇩🇪"], ids=["skin tone", "variation", "joined", "flag"])
def test_an_emoji_is_one_token_however_many_characters_it_has(emoji: str) -> None:
    assert cut(f"so {emoji} good") == ["so", emoji, "good"]


def test_lower_casing_changes_the_token_and_not_the_text() -> None:
    assert spell("GOOD Good") == ["good", "good"]
    assert spell("GOOD Good", lowercase=False) == ["GOOD", "Good"]
    assert spell("İyi") == ["i\u0307yi"]


def test_white_space_mode_keeps_tokens_as_they_come() -> None:
    assert cut("It 's n't -LRB- bad .", "whitespace") == ["It", "'s", "n't", "-LRB-", "bad", "."]
    assert spell("It 's", "whitespace") == ["it", "'s"]


def test_alphanumeric_runs_leave_marks_out() -> None:
    assert cut("It's n't -LRB- bad, 2nd… 😀", "alphanumeric") == ["It", "s", "n", "t", "LRB", "bad", "2nd"]


def test_a_literal_unknown_token_in_white_space_mode_is_the_unknown_token() -> None:
    tokens = Tokenizer("whitespace").encode(["a <unk> b"], Vocabulary.of(["a", "b"]))
    assert tokens.numbers.tolist() == [1, 0, 2]
    assert spell("a <unk> b", "whitespace") == ["a", "<unk>", "b"]


def test_a_literal_unknown_token_in_words_mode_is_three_tokens() -> None:
    assert spell("a <unk> b") == ["a", "<", "unk", ">", "b"]


def test_documents_follow_each_other_and_may_be_empty() -> None:
    tokens = Tokenizer().encode(["a b", "", "c"], Vocabulary.of(["a", "b", "c"]))
    assert tokens.numbers.tolist() == [1, 2, 3]
    assert tokens.offsets.tolist() == [0, 2, 2, 3]
    assert tokens.spans.tolist() == [[0, 1], [2, 3], [0, 1]]


def test_no_text_at_all_has_no_token() -> None:
    tokens = Tokenizer().encode([], NOTHING)
    assert tokens.offsets.tolist() == [0]
    assert tokens.spans.shape == (0, 2)


def test_more_texts_than_a_chunk_keep_their_order() -> None:
    texts = [str(number) for number in range(1300)]
    tokens = Tokenizer().encode(texts, Vocabulary.of(texts))
    assert tokens.numbers.tolist() == list(range(1, 1301))


@given(strategies.texts, strategies.flags)
def test_spans_lie_in_the_text_in_order_and_leave_only_white_space_out(text: str, lowercase: bool) -> None:
    spans = Tokenizer("words", lowercase).encode([text], NOTHING).spans.tolist()
    place = 0
    for start, end in [*spans, [len(text), len(text)]]:
        assert place <= start <= end
        assert not text[place:start].strip()
        place = end


def test_an_unknown_way_of_cutting_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UnknownName, match=r"There is no tokenizer 'word'. Did you mean 'words'\?"):
        Tokenizer("word")


def encode(text: str) -> Tokens:
    return Tokenizer().encode([text], NOTHING)


@pytest.mark.parametrize(
    ("text", "firsts"),
    [
        ("It rains. Is it wet? Yes!", ["It", "Is", "Yes"]),
        ("Dr. Smith came. He left.", ["Dr", "He"]),
        ("one line\nanother line", ["one", "another"]),
        ("😀😀 It rains. 😀 We go.", ["😀", "😀"]),
        ("  \n word", ["word"]),
        ("", []),
    ],
)
def test_sentences_begin_at_these_tokens(text: str, firsts: list[str]) -> None:
    spans = encode(text).spans
    words = [text[start:end] for start, end in spans.tolist()]
    assert [words[position] for position in sentence_starts(text, spans).tolist()] == firsts


def test_the_first_sentence_starts_at_the_first_token() -> None:
    text = "It rains. It pours."
    assert sentence_starts(text, encode(text).spans).tolist() == [0, 3]


def test_frequent_tokens_come_first_and_equals_in_alphabetical_order() -> None:
    vocabulary = Tokenizer().vocabulary(["b b a", "c a d"])
    assert vocabulary.tokens == (UNKNOWN, "a", "b", "c", "d")


def test_rare_tokens_are_left_out() -> None:
    vocabulary = Tokenizer().vocabulary(["b b a", "c a d"], min_count=2)
    assert vocabulary.tokens == (UNKNOWN, "a", "b")
    assert "c" not in vocabulary
    assert len(vocabulary) == 3


def test_case_counts_only_without_lower_casing() -> None:
    assert Tokenizer().vocabulary(["Good good"]).tokens == (UNKNOWN, "good")
    assert Tokenizer(lowercase=False).vocabulary(["Good good"]).tokens == (UNKNOWN, "Good", "good")


def test_a_literal_unknown_token_is_not_a_second_one() -> None:
    assert Tokenizer("whitespace").vocabulary(["a <unk> <unk>"]).tokens == (UNKNOWN, "a")


def test_only_the_training_split_is_counted() -> None:
    corpus = build_corpus(
        name="three",
        splits={"train": (["good", "bad"], [1, 0]), "dev": (["fine good"], [1]), "test": (["awful"], [0])},
        class_names=["negative", "positive"],
        tokenizer=Tokenizer(),
    )
    assert corpus.vocabulary.tokens == (UNKNOWN, "bad", "good")
    assert corpus.dev.tokens.numbers.tolist() == [0, 2]
    assert corpus.test.tokens.numbers.tolist() == [0]


def test_numbers_and_tokens_are_inverse() -> None:
    vocabulary = Vocabulary.of(["x", "y"])
    assert [vocabulary.number(token) for token in vocabulary.tokens] == [0, 1, 2]


def test_an_unknown_token_is_answered_with_its_neighbours() -> None:
    with pytest.raises(UnknownToken, match=r"no token 'goood'. Did you mean 'good'\? Known: good, goofy\."):
        Vocabulary.of(["good", "goofy", "bad"]).number("goood")


def test_a_token_without_neighbours_is_answered_with_frequent_ones() -> None:
    with pytest.raises(UnknownToken, match=r"no token 'x'. Known: <unk>, bad, good\."):
        Vocabulary.of(["good", "bad"]).number("x")


def test_a_vocabulary_must_begin_with_the_unknown_token() -> None:
    with pytest.raises(DataError, match="begins with the token <unk>"):
        Vocabulary(("good", "bad"))


def test_a_vocabulary_must_not_repeat_a_token() -> None:
    with pytest.raises(DataError, match="holds each token once"):
        Vocabulary((UNKNOWN, "good", "good"))
