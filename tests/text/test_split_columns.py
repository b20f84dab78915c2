"""Which column names the splits, what its values mean, and the ways out where they mean nothing."""

import hashlib
import json
import shlex
from collections.abc import Sequence
from typing import Any

import pandas as pd
import pytest

from heedful.config import DataSettings, RunSettings, write_split_values
from heedful.errors import DataError
from heedful.sweep.plan import Plan
from heedful.text.columns import parse_split_values
from heedful.text.corpus import Corpus
from heedful.text.datasets import load_corpus
from heedful.version import RESULTS_VERSION

OWN = ["rest"] * 12 + ["validate"] * 4 + ["held-out"] * 4
TOLD = {"rest": "train", "validate": "dev", "held-out": "test"}


def table_of(splits: Sequence[object], column: str = "split") -> pd.DataFrame:
    rows = range(len(splits))
    return pd.DataFrame({"text": [f"text{row}" for row in rows], "label": [row % 2 for row in rows], column: splits})


def sizes(corpus: Corpus) -> tuple[int, int, int]:
    return len(corpus.train), len(corpus.dev), len(corpus.test)


def refusal(table: pd.DataFrame, **options: Any) -> str:
    with pytest.raises(DataError) as caught:
        load_corpus(table, **options)
    return str(caught.value)


@pytest.mark.parametrize(
    "values", [TOLD, "train=rest,dev=validate,test=held-out", "test=Held-Out , train=rest, dev=validate"]
)
def test_values_of_ones_own_are_told(values: Any) -> None:
    corpus = load_corpus(table_of(OWN), split_values=values)
    assert sizes(corpus) == (12, 4, 4)
    assert corpus.dev.texts == ("text12", "text13", "text14", "text15")
    assert corpus.notices == ()


def test_values_are_told_of_a_column_that_is_named() -> None:
    assert sizes(load_corpus(table_of(OWN, "part"), split_column="part", split_values=TOLD)) == (12, 4, 4)


@pytest.mark.parametrize("folds", [[0, 1, 2, 3], [0.0, 1.0, 2.0, None], ["0", "1", "2", "3"]])
def test_folds_with_numbers_are_told(folds: list[object]) -> None:
    rest = "" if folds[3] is None else folds[3]
    told = {folds[0]: "test", folds[1]: "dev", folds[2]: "train", rest: "train"}
    corpus = load_corpus(table_of([fold for fold in folds for _ in range(6)], "fold"), split_values=told)
    assert sizes(corpus) == (12, 6, 6)
    assert corpus.test.texts == tuple(f"text{row}" for row in range(6))


def test_a_told_meaning_wins_over_the_usual_one() -> None:
    table = table_of(["train"] * 10 + ["test"] * 4 + ["val"] * 4)
    assert sizes(load_corpus(table, split_values={"test": "dev", "val": "test"})) == (10, 4, 4)


def test_rows_to_be_skipped_are_left_out_and_said() -> None:
    """Neither their labels nor their texts are looked at."""
    table = table_of(["train"] * 10 + ["test"] * 4 + ["dev"] * 4 + ["hidden"] * 3 + [None] * 2)
    table["label"] = table["label"].where(table["split"].notna() & (table["split"] != "hidden"), -1)
    corpus = load_corpus(table, split_values="skip=hidden,skip=")
    assert sizes(corpus) == (10, 4, 4)
    assert corpus.class_names == ("0", "1")
    assert corpus.notices == ("5 rows left out: column 'split' holds '' and 'hidden'.",)


def test_a_value_with_a_comma_can_be_told() -> None:
    table = table_of(["train"] * 10 + ["dev"] * 2 + ["a, b=c"] * 4)
    told = {"a, b=c": "test"}
    assert write_split_values(told) == '"test=a, b=c"'
    for values in (told, write_split_values(told)):
        assert sizes(load_corpus(table, split_values=values)) == (10, 2, 4)


@pytest.mark.parametrize("word", ["none", "None", "NONE", " none "])
def test_none_uses_no_column(word: str) -> None:
    corpus = load_corpus(table_of(["train"] * 10 + ["none"] * 10), split_column=word)
    assert sizes(corpus) == (16, 2, 2)
    assert [notice.split(" (")[0] for notice in corpus.notices] == [
        "The test split was drawn from the training rows",
        "The dev split was drawn from the training rows",
    ]


def test_a_column_that_is_called_none_is_meant_first() -> None:
    table = table_of(["train"] * 10 + ["dev"] * 3 + ["test"] * 3, "none")
    assert sizes(load_corpus(table, split_column="none")) == (10, 3, 3)
    assert sizes(load_corpus(table, split_column="None")) == (12, 2, 2)


@pytest.mark.parametrize("name", ["", "  "])
def test_an_empty_name_is_answered_with_what_can_be_given(name: str) -> None:
    assert refusal(table_of(OWN), split_column=name) == (
        "The name of the split column is empty. Name a column, give none to draw all splits anew, or leave the option "
        "away to have a column recognised."
    )


def test_unknown_values_are_named_with_the_ways_out() -> None:
    said = refusal(table_of(["train"] * 10 + ["x", "holdout", "holdout"]))
    assert said == (
        "Column 'split' holds 'holdout' and 'x' in 3 rows, where the name of a split was expected: train, training, "
        "trn, dev, val, valid, validation, development, test, testing, tst, eval, evaluation. Say what that is with "
        "--split-values skip=holdout,skip=x (or train, dev or test in place of skip), in Python "
        "split_values={'holdout': 'skip', 'x': 'skip'}. Or --split-column none (in Python split_column='none') draws "
        "all splits anew."
    )


def test_the_ways_out_lead_out() -> None:
    table = table_of(["train"] * 10 + ["test"] * 4 + ["none"] * 4)
    said = refusal(table)
    assert "--split-values skip=none " in said
    assert "in Python split_values={'none': 'skip'}." in said
    assert sizes(load_corpus(table, split_values="skip=none")) == (8, 2, 4)
    assert sizes(load_corpus(table, split_values={"none": "skip"})) == (8, 2, 4)
    assert sizes(load_corpus(table, split_column="none")) == (14, 2, 2)


GIVEN: dict[str, tuple[dict[str, Any], str, dict[str, Any], tuple[int, int, int]]] = {
    "nothing": ({}, "--split-values skip=Rest", {"split_values": {"Rest": "skip"}}, (12, 4, 4)),
    "a mapping": (
        {"split_values": {"my dev": "dev"}},
        "--split-values 'dev=my dev,skip=Rest'",
        {"split_values": {"my dev": "dev", "Rest": "skip"}},
        (12, 4, 4),
    ),
    "an option": (
        {"split_values": " dev=my dev , test=test"},
        "--split-values 'dev=my dev,test=test,skip=Rest'",
        {"split_values": {"my dev": "dev", "test": "test", "Rest": "skip"}},
        (12, 4, 4),
    ),
    "a column": (
        {"split_column": "my part", "split_values": "dev=my dev"},
        "--split-column 'my part' --split-values 'dev=my dev,skip=Rest'",
        {"split_column": "my part", "split_values": {"my dev": "dev", "Rest": "skip"}},
        (12, 4, 4),
    ),
    "no training": (
        {"split_values": "dev=my dev,skip=train"},
        "--split-values 'dev=my dev,skip=train,train=Rest'",
        {"split_values": {"my dev": "dev", "train": "skip", "Rest": "train"}},
        (6, 4, 4),
    ),
}


@pytest.mark.parametrize("what", GIVEN)
def test_the_way_out_keeps_what_was_given(what: str) -> None:
    """As an option and in Python, and both do what they say."""
    given, option, in_python, expected = GIVEN[what]
    dev = "dev" if what == "nothing" else "my dev"
    table = table_of(["train"] * 12 + [dev] * 4 + ["test"] * 4 + ["Rest"] * 6, str(given.get("split_column", "split")))
    said = refusal(table, **given)
    written = ", ".join(f"{name}={value!r}" for name, value in in_python.items())
    assert f"Say what that is with {option} (or " in said
    assert f"in place of {'train' if what == 'no training' else 'skip'}), in Python {written}. Or " in said
    words = shlex.split(option)
    typed: dict[str, Any] = {
        name.removeprefix("--").replace("-", "_"): value for name, value in zip(words[::2], words[1::2], strict=True)
    }
    assert sizes(load_corpus(table, **in_python)) == expected
    assert sizes(load_corpus(table, **typed)) == expected


def test_what_was_given_stands_also_before_what_is_left_to_the_reader() -> None:
    folds = [f"fold {row % 8}" for row in range(40)]
    said = refusal(table_of(folds), split_values={"fold 1": "dev", "fold 0": "train"})
    assert (
        "--split-values 'dev=fold 1,train=fold 0',train=VALUE,dev=VALUE,test=VALUE (skip=VALUE leaves rows out), in "
        "Python split_values={'fold 1': 'dev', 'fold 0': 'train', 'VALUE': 'train'}."
    ) in said


def test_a_row_without_a_split_is_refused() -> None:
    said = refusal(table_of(["train"] * 10 + [None]))
    assert said.startswith("Column 'split' holds '' in 1 row, where the name of a split was expected: train, ")
    assert "--split-values skip= (or train, dev or test in place of skip), in Python split_values={'': 'skip'}." in said


def test_a_row_that_is_left_out_anyway_needs_no_split() -> None:
    table = table_of(["train"] * 10 + [None])
    table.loc[10, "text"] = None
    assert load_corpus(table).notices[0] == "1 row left out: column 'text' holds no text."


def test_one_value_that_is_not_known_is_offered_for_training() -> None:
    said = refusal(table_of(["all"] * 20), split_column="split")
    assert (
        "--split-column split --split-values train=all (or dev, test or skip in place of train), in Python "
        "split_column='split', split_values={'all': 'train'}" in said
    )


WHICH = (
    "Say what they are with --split-values train=VALUE,dev=VALUE,test=VALUE (skip=VALUE leaves rows out), in Python "
    "split_values={'VALUE': 'train'}."
)


def test_a_column_of_texts_is_answered_shortly() -> None:
    said = refusal(table_of(["train"] * 10 + [f"a long text {row} " * 9 for row in range(30)]), split_column="split")
    assert "and 25 others in 30 rows" in said
    assert WHICH in said
    assert len(said) < 800


def test_a_given_split_column_must_name_training_rows() -> None:
    assert refusal(table_of(["test"] * 10 + ["dev"] * 10), split_column="split") == (
        f"Column 'split' names no training rows, only 'dev' and 'test'. {WHICH} Or --split-column none (in Python "
        "split_column='none') draws all splits anew."
    )


@pytest.mark.parametrize(("splits", "held"), [(["test", "val"], "'test' and 'val'"), (["all"], "'all'")])
def test_a_recognised_column_without_training_rows_is_left_alone_and_said(splits: list[str], held: str) -> None:
    corpus = load_corpus(table_of(splits * (20 // len(splits))))
    assert sizes(corpus) == (16, 2, 2)
    assert corpus.notices[0] == f"Column 'split' is not used: it names no training rows, only {held}. {WHICH}"


def test_lists_in_a_column_that_is_called_like_a_split_are_left_alone() -> None:
    corpus = load_corpus(table_of([["a", row] for row in range(20)], "set"))
    assert sizes(corpus) == (16, 2, 2)
    assert corpus.notices[0].startswith("Column 'set' is not used: it names no training rows, only '['a', 0]', ")


def test_of_two_split_columns_one_is_taken_and_said() -> None:
    splits = ["train"] * 10 + ["dev"] * 3 + ["test"] * 3
    corpus = load_corpus(table_of(splits, "fold").assign(Split=splits[::-1]))
    assert corpus.test.texts == ("text0", "text1", "text2")
    assert corpus.notices == (
        "The splits are read from column 'Split'; 'fold' could name them too. "
        "Choose with --split-column, in Python split_column.",
    )


def test_a_column_that_is_the_label_is_no_split() -> None:
    table = table_of(["train", "test"] * 10, "subset").drop(columns="label")
    corpus = load_corpus(table, label_column="subset")
    assert corpus.class_names == ("test", "train")
    assert sizes(corpus) == (16, 2, 2)


NOT_USED = (
    "The values of a split column are told, but no column is used as one. Name it (--split-column, in Python "
    "split_column), or call it one of split, fold, partition, subset, set and say which value is train."
)

WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no equals sign": ({"split_values": "validate"}, "told as split=value, such as dev=validate,test=held-out or"),
    "nothing": ({"split_values": ""}, "or skip=unused; got ''."),
    "a comma too many": ({"split_values": "dev=validate,"}, "or skip=unused; got ''."),
    "value and split exchanged": (
        {"split_values": "validate=dev"},
        "A value of the split column means train, dev, test or skip; 'dev' cannot mean 'validate'. "
        "Write --split-values dev=validate, in Python split_values={'validate': 'dev'}.",
    ),
    "no split": ({"split_values": {"validate": "x"}}, "'validate' cannot mean 'x'."),
    "two splits": (
        {"split_values": "dev=rest,test=rest"},
        "The value 'rest' of the split column cannot mean both dev and test.",
    ),
    "a slip of the pen": (
        {"split_values": {**TOLD, "valdate": "dev"}},
        "Split values are told that column 'split' does not hold: 'valdate'. It holds 'held-out', 'rest' and 'valid",
    ),
    "some values only": (
        {"split_values": "dev=validate,test=held-out"},
        "Column 'split' holds 'rest' in 12 rows, where the name of a split was expected",
    ),
    "no column": ({"split_values": TOLD, "split_column": "none"}, NOT_USED),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_told_wrongly_is_answered_with_a_sentence(what: str) -> None:
    options, sentence = WRONG[what]
    assert sentence in refusal(table_of(OWN), **options)


def test_values_of_no_column_are_answered_with_a_sentence() -> None:
    assert refusal(table_of(OWN, "part"), split_values=TOLD) == NOT_USED


def test_values_are_parsed_from_both_spellings() -> None:
    assert parse_split_values(None) == {}
    assert parse_split_values("dev=Validate, valid=v2,skip=,train=a=b") == {
        "validate": "dev",
        "v2": "dev",
        "": "skip",
        "a=b": "train",
    }
    assert parse_split_values('dev=one\n"test=two, three"') == {"one": "dev", "two, three": "test"}
    assert parse_split_values({"Validate": "dev", 3: "train"}) == {"validate": "dev", "3": "train"}


def test_settings_take_values_as_text_or_mapping_and_stay_keys() -> None:
    as_mapping = DataSettings.of({"split_values": TOLD})
    as_text = DataSettings(split_values="train=rest,dev=validate,test=held-out")
    assert {as_mapping: 1}[as_text] == 1
    corpus = load_corpus(table_of(OWN), **as_text.model_dump(exclude={"source"}))
    assert sizes(corpus) == (12, 4, 4)


def test_settings_without_split_values_are_the_runs_they_were() -> None:
    content = {"settings": {"data": {"source": "x.csv"}}, "data": "data", "results": RESULTS_VERSION}
    before = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    settings = RunSettings().override(["data.source=x.csv"])
    assert settings.digest("data") == before
    assert settings.override(["data.split_values=dev=validate"]).digest("data") != before


def test_none_is_a_word_for_the_split_column_and_nothing_for_the_others() -> None:
    changed = RunSettings().override(
        ["data.split_column=none", "data.label_column=none", "data.split_values=dev=a,skip=b"]
    )
    assert changed.data == DataSettings(split_column="none", label_column=None, split_values="dev=a,skip=b")
    assert changed.override(["data.split_values=none"]).data.split_values is None


def test_a_plan_can_say_that_no_column_is_used() -> None:
    plan = Plan.of(runs=[{"data.split_column": "none"}], grid={"data.seed": [0, 1]})
    assert len(plan) == 2
    assert {run.data.split_column for run in plan.runs} == {"none"}
