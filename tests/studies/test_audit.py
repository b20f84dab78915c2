"""What an audit answers, and the tables it shows and saves."""

from pathlib import Path
from typing import Literal

import pandas as pd
import pytest

from heedful.analysis.statistics import Estimate
from heedful.claims import Verdict
from heedful.studies.audit import answer, strongest_tokens
from heedful.studies.statistics import corpus_statistics
from heedful.studies.tables import LATEX_ROWS, as_latex, save_table
from heedful.text.corpus import Corpus

Decision = Literal["holds", "does not hold", "undecided"]
YES: Decision = "holds"
NO: Decision = "does not hold"
OPEN: Decision = "undecided"


def verdict(claim: str, decision: Decision) -> Verdict:
    return Verdict(
        claim=claim,
        statement="s",
        decision=decision,
        statistic="x",
        estimate=Estimate(value=0.5, low=0.4, high=0.6, count=9),
        threshold=0.7,
        words="w",
    )


@pytest.mark.parametrize(
    ("decisions", "begins"),
    [
        ((YES, YES, YES), "For this model, attention points at the words that matter"),
        ((YES, NO, YES), "No: attention does not point"),
        ((YES, YES, NO), "No: attention does not point"),
        ((YES, OPEN, YES), "Undecided: attention leans"),
        ((YES, OPEN, OPEN), "Undecided: attention leans"),
        ((NO, YES, YES), "Not yet: the model itself is in doubt"),
        ((OPEN, YES, YES), "Undecided: too little is known of what the model uses"),
    ],
)
def test_the_answer_follows_from_the_verdicts(decisions: tuple[Decision, Decision, Decision], begins: str) -> None:
    verdicts = [verdict(claim, decision) for claim, decision in zip(("C1", "C2", "C8"), decisions, strict=True)]
    assert answer(verdicts)[0].startswith(begins)


def test_the_strongest_tokens_push_towards_their_class_and_are_not_rare() -> None:
    tokens = pd.DataFrame(
        {
            "token": ["good", "x" * 40, "bad", "rare"],
            "count_no": [0, 3, 9, 1],
            "count_yes": [7, 3, 0, 4],
            "polarity": [2.0, 0.5, -1.0, 9.0],
            "attention": [1.0, 0.0, 0.25, 5.0],
        }
    )
    found = strongest_tokens(tokens, ["no", "yes"])
    assert found["yes"]["token"].tolist() == ["good", "x" * 23 + "…"]
    assert found["no"].iloc[0].tolist() == ["bad", "-1.00", "+0.25", 9]


def test_the_strongest_tokens_of_several_classes_have_a_table_each() -> None:
    tokens = pd.DataFrame(
        {
            "token": ["one", "two"],
            **{f"count_{name}": [9, 9] for name in "abc"},
            "polarity_a": [1.0, -1.0],
            "polarity_b": [-1.0, 1.0],
            "polarity_c": [0.0, 0.5],
            "attention": [0.0, 0.0],
        }
    )
    found = strongest_tokens(tokens, list("abc"))
    assert {name: table["token"].tolist() for name, table in found.items()} == {
        "a": ["one"],
        "b": ["two"],
        "c": ["two"],
    }


def test_statistics_count_texts_classes_and_unknown_tokens(small_corpus: Corpus) -> None:
    found = corpus_statistics(small_corpus)
    assert found["splits"]["train"]["per_class"] == [300, 300]
    assert found["splits"]["train"]["mean_length"] == 12.0
    assert found["splits"]["train"]["unknown_tokens"] == 0.0
    assert found["vocabulary"] == len(small_corpus.vocabulary)


def test_latex_is_escaped() -> None:
    table = pd.DataFrame({"a_b": ["50 % & $x$ {#} ~^\\"], "value": [0.123456]})
    assert as_latex(table).splitlines() == [
        r"\begin{tabular}{ll}",
        r"\toprule",
        r"a\_b & value \\",
        r"\midrule",
        r"50 \% \& \$x\$ \{\#\} \textasciitilde{}\textasciicircum{}\textbackslash{} & 0.1235 \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_a_long_table_is_cut_in_latex_only(tmp_path: Path) -> None:
    table = pd.DataFrame({"number": range(LATEX_ROWS + 50)})
    save_table(table, tmp_path / "long")
    assert len(as_latex(table).splitlines()) == LATEX_ROWS + 6
    assert len(pd.read_csv(tmp_path / "long.csv")) == LATEX_ROWS + 50
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "long.parquet"), table)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["long.csv", "long.parquet", "long.tex"]
