"""Another attention with the same output, for people: a run's trace, a foreign trace and one text, by hand."""

import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from rich.console import Console

from heedful.analysis.adversary import adversarial_attention
from heedful.analysis.permutation import permutation_test
from heedful.cli.text_views import print_attacked
from heedful.config import RunSettings
from heedful.models.classifier import Classifier
from heedful.pipeline import Run, run
from heedful.store import Store
from heedful.studies import attack as module
from heedful.studies import audit
from heedful.studies.attack import (
    KINDS,
    MOST_TEXTS,
    Kind,
    attack_attention,
    attack_text,
    attack_trace,
    example_row,
    judged_rows,
    replaced_weights,
)
from heedful.studies.one_attention import determined_words, one_attention
from heedful.text.corpus import Corpus
from heedful.traces import Trace
from tests.commands import Call
from tests.covering import covers

ALONE = ([0.5, 0.25, 0.25], [3.0, 0.0, 0.0])
"""1.5: without the first unit there is nothing above 0."""

SHARED = ([0.5, 0.25, 0.25], [1.0, 2.0, 0.0])
"""1: half of each of the last two units gives it as well."""


def trace_of(*kinds: tuple[tuple[list[float], list[float]], int], **more: Any) -> Trace:
    """So many texts of each kind, their scores one after the other a little larger, so that none is a copy."""
    texts = [
        (weights, [(1 + place / 1000) * z for z in polarity]) for (weights, polarity), n in kinds for place in range(n)
    ]
    return Trace.from_arrays(
        offsets=np.cumsum([0, *(len(weights) for weights, _ in texts)]),
        attention_weights=[weight for weights, _ in texts for weight in weights],
        polarity_scores=[z for _, polarity in texts for z in polarity],
        bias=[0],
        **more,
    )


MIXED = trace_of((SHARED, 30), (ALONE, 10), (([1.0], [1.0]), 5))


def test_so_many_texts_have_the_same_output_without_their_most_attended_unit() -> None:
    found = attack_attention(MIXED)
    rows = found.others.set_index("kind")
    assert list(rows.index) == list(KINDS) == ["same", "within", "floor", "without top"]
    assert rows["texts"].tolist() == [40] * 4  # of one unit are five
    assert rows["exist"].tolist() == [1.0, 1.0, 1.0, 0.75]
    assert rows["exact"].tolist() == [1.0] * 4
    assert rows.loc["without top", "median_jsd"] == pytest.approx(
        math.log(2) - (0.5 * math.log(3) + math.log(1.5)) / 2  # two overlaps of ¼ and ½
    )
    judged = {verdict.claim: verdict for verdict in found.verdicts}
    assert list(judged) == ["J2", "J3", "J3b"]
    story = judged["J3b"].estimate
    assert story is not None
    assert (story.value, story.count, judged["J3b"].decision) == (0.75, 40, "yes")
    assert found.tables["adversary"].groupby("kind")["instance"].nunique().tolist() == [45] * 4
    assert found.words.startswith("Other weights (the very same output) lie as far as ")
    assert found.words.endswith(
        "(JSD, the median over 40 texts; log 2 = 0.69 is the most there is), and take 2 words of a text at most."
    )


def test_copies_of_a_text_count_once() -> None:
    many = MIXED.take(torch.cat([torch.arange(45), torch.full((60,), 31)]))
    assert attack_attention(many).others["exist"].tolist() == [1.0, 1.0, 1.0, 0.75]
    assert len(attack_attention(many).tables["permutation"]) == 105


def test_shuffles_are_summed_up_by_quarters_of_the_largest_weight() -> None:
    """A text of (¾, ¼) and scores (1, 0): shuffled it stays, or moves by σ(.75) − σ(.25)."""
    found = attack_attention(trace_of((([0.75, 0.25], [1.0, 0.0]), 3), (([0.5, 0.5], [1.0, 0.0]), 2)), shuffles=1)
    assert found.shuffled["largest_weight"].tolist() == [".5–.75", ".75–1"]
    assert found.shuffled["texts"].tolist() == [2, 3]
    first = found.shuffled.iloc[0]
    assert [first[name] for name in ("median_tvd", "barely", "flips")] == pytest.approx([0.0, 1.0, 0.0])
    moved = found.tables["permutation"]["tvd_median"][:3]
    largest = 1 / (1 + math.exp(-0.75)) - 1 / (1 + math.exp(-0.25))
    assert all(tvd == pytest.approx(0, abs=1e-12) or tvd == pytest.approx(largest, abs=1e-3) for tvd in moved)
    assert found.shuffled.loc[1, "median_tvd"] == moved.median()


def test_nothing_to_replace_is_said() -> None:
    alone = attack_attention(trace_of((([1.0], [1.0]), 12)))
    assert alone.words == "No test text has two words or more: there is no other attention."
    assert {verdict.decision for verdict in alone.verdicts} == {"not shown"}
    assert alone.section().tables[0].cells["exist"].tolist() == ["–"] * 4
    none = attack_attention(trace_of((ALONE, 12)), kinds={"asked": Kind.asked(0.0, 0.0, 1)})
    assert none.words == "No text has other weights (the very same output, without the 1 most attended)."


def test_what_was_not_found_is_not_said_not_to_exist() -> None:
    """Three classes, a wide ε and two units left out: for some texts there is neither an answer nor a proof."""
    trace = three_classes(60)
    found = attack_attention(trace, shuffles=1, kinds={"asked": Kind.asked(0.2, 0.0, 3)})
    table = found.once["adversary"]
    there, possible = table["jsd"].notna(), table["jsd_upper"].notna()
    assert 0 < (possible & ~there).sum() < possible.sum() < len(table)
    assert found.words.endswith(
        f" For {(~possible).sum()} texts there are none. For {(possible & ~there).sum()} texts none were found, and "
        "none are ruled out."
    )


def three_classes(count: int) -> Trace:
    draw = torch.Generator().manual_seed(0)
    return Trace.from_arrays(
        offsets=torch.arange(count + 1) * 5,
        attention_scores=torch.randn(count * 5, generator=draw, dtype=torch.float64),
        polarity_scores=torch.randn(count * 5, 3, generator=draw, dtype=torch.float64),
        bias=[0.0, 0.0, 0.0],
    )


def test_of_three_classes_a_draw_of_distinct_texts_is_judged_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = three_classes(14).take(torch.tensor([0, 0, *range(14)]))
    everything = attack_attention(trace)
    assert (everything.drawn, judged_rows(trace, 0).tolist()) == ("", [0, *range(3, 16)])
    monkeypatch.setattr(module, "MOST_TEXTS", 11)
    some = attack_attention(trace, seed=3)
    assert some.drawn == "Of 14 distinct texts 11 were drawn: with three classes or more each takes time."
    assert some.section().lead.endswith(some.drawn)
    rows = judged_rows(trace, 3).tolist()
    assert (len(set(rows)), rows == sorted(rows), set(rows) & {1, 2}) == (11, True, set())
    assert set(some.tables["adversary"]["instance"]) == set(rows)
    pd.testing.assert_series_equal(
        some.tables["adversary"].query("kind == 'same'")["jsd"].reset_index(drop=True),
        everything.tables["adversary"].query("kind == 'same' and instance in @rows")["jsd"].reset_index(drop=True),
    )
    assert judged_rows(trace, 4).tolist() != rows
    assert MOST_TEXTS == 300


def test_two_classes_take_all_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_TEXTS", 3)
    assert judged_rows(MIXED, 0).tolist() == list(range(45))


def test_the_example_is_the_rightly_decided_text_of_median_divergence() -> None:
    """Nine units: the first has most of the weight, so that texts differ in how far others lie from it."""
    tops = [0.2, 0.4, 0.6, 0.5, 0.3]
    kinds = [(([top, *[(1 - top) / 8] * 8], [1.0, *[1.0, -1.0] * 4]), 1) for top in tops]
    trace = trace_of(*kinds, (SHARED, 4), labels=[1, 1, 1, 0, 1, 1, 1, 1, 1])
    found = attack_attention(trace)
    chosen = example_row(found, trace)
    assert chosen is not None
    row, rule = chosen
    right = found.tables["adversary"].query("kind == 'same' and instance in [0, 1, 2, 4]").sort_values("jsd")
    assert row["instance"] == right["instance"].iloc[1]  # of four the lower of the two in the middle
    assert (
        rule == f"the text of median JSD ({row['jsd']:.2f}) among the 4 that are rightly decided and 8 to 25 words long"
    )
    weights = replaced_weights(row)
    own = trace.instance(int(row["instance"]))
    assert float(weights.sum()) == pytest.approx(1)
    assert float(weights @ trace.polarity_scores[own, 1]) == pytest.approx(float(trace.logits[int(row["instance"]), 1]))
    short = trace_of((SHARED, 3))
    chosen = example_row(attack_attention(short), short)
    assert chosen is not None
    assert chosen[1].endswith("among the 3 shortest")
    assert example_row(attack_attention(trace_of((([1.0], [1.0]), 2))), trace_of((([1.0], [1.0]), 2))) is None


@covers(figure=("audit other-attention", "audit shuffled-attention"))
def test_the_pictures_of_an_audit_are_of_its_own_texts() -> None:
    once = attack_attention(MIXED).once
    others, shuffled = (figure.draw(once) for figure in audit.MANIPULATED)
    assert [text.get_text() for text in others.legends[0].get_texts()] == [kind.words for kind in KINDS.values()]
    (panel,) = others.axes
    assert panel.get_title(loc="left") == "test texts, this model"
    heights = [float(np.asarray(patch.get_xy())[:, 1].sum()) for patch in panel.patches]  # type: ignore[attr-defined]
    assert heights[3] < heights[0]  # ten texts have none without their most attended unit
    assert [label.get_text() for label in shuffled.axes[0].get_xticklabels()][2] == ".5–.75\n40"


@pytest.fixture(scope="module")
def kept(small_corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Run:
    settings = RunSettings().change({"model.embedding_size": 8, "training.batch_size": 100, "training.epochs": 2})
    return run(settings, Store(tmp_path_factory.mktemp("attacked")), corpus=small_corpus)


def test_the_command_on_a_run_prints_what_an_audit_does_and_saves_the_tables(
    kept: Run, call: Call, tmp_path: Path
) -> None:
    said = call("attack", kept.path, "--out", tmp_path)
    assert said.code == 0
    assert "every weight a tenth of an even share or more" in said.out
    page = attack_trace(kept.trace(), seed=0, unit="words")
    assert (
        call("attack", "--run", kept.path, "--json").json["tables"]
        == call("attack", kept.path, "--json").json["tables"]
    )
    assert {verdict.claim: verdict.decision for _, verdict in page.verdicts()} == {
        found.claim: found.decision for found in attack_attention(kept.trace()).verdicts
    }
    assert sorted(path.name for path in tmp_path.glob("*.parquet")) == [
        "adversary.parquet", "other-attention.parquet", "permutation.parquet", "shuffled-attention.parquet",
    ]  # fmt: skip
    saved = pd.read_parquet(tmp_path / "adversary.parquet").query("kind == 'within'")
    assert saved["jsd"].tolist() == adversarial_attention(kept.trace(), 0.05)["jsd"].tolist()
    shuffled = pd.read_csv(tmp_path / "permutation.csv")
    assert shuffled["tvd_median"].tolist() == pytest.approx(permutation_test(kept.trace())["tvd_median"].tolist())


def test_with_determined_the_command_asks_what_one_attention_for_the_whole_corpus_could_do(
    kept: Run, small_corpus: Corpus, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heedful.pipeline.read_corpus", lambda _: small_corpus)
    said = call("attack", kept.path, "--determined", "--json").json
    assert [section["name"] for section in said["sections"]] == ["attack", "tables", "one-attention", "determined"]
    found = one_attention(kept.model(), small_corpus, kept.table("tokens"))
    assert said["verdicts"][-1]["claim"] == "J4"
    assert said["verdicts"][-1]["value"] == found.tables["orders"]["reversed"].mean()
    words = determined_words(kept.model(), small_corpus, kept.table("tokens"), words=12)
    assert [row["token"] for row in said["tables"]["determined"]] == words["token"].tolist()
    assert (words["low"] <= words["attention"]).all()
    assert (words["attention"] <= words["high"]).all()
    scores = kept.table("tokens").set_index("token")
    assert words["polarity"].tolist() == scores["polarity"].loc[words["token"]].tolist()
    assert said["sections"][-1]["pictures"].keys() == {"determined"}
    refused = call("attack", "--trace", "x.parquet", "--determined").err
    assert "give a RUN alone" in " ".join(refused.split())


def test_every_word_is_asked_about_where_so_many_are_wanted_and_drawn(
    kept: Run, small_corpus: Corpus, call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("heedful.pipeline.read_corpus", lambda _: small_corpus)
    said = call("attack", kept.path, "--determined", "--words", 10_000, "--out", tmp_path)
    counts = torch.bincount(small_corpus.train.tokens.numbers, minlength=1)
    table = pd.read_parquet(tmp_path / "determined.parquet")
    assert table["number"].tolist() == (counts >= 10).nonzero().squeeze(1).tolist()
    without = int((table["low"] == -np.inf).sum())
    assert f"{len(table)} words that occur 10 times or more" in " ".join(said.out.split())
    assert f"{without} could do without attention" in " ".join(said.out.split())
    assert (tmp_path / "determined.svg").read_text().startswith("<?xml")


def test_the_command_on_a_trace_finds_what_is_asked_for(call: Call, tmp_path: Path) -> None:
    MIXED.save(tmp_path / "mixed.parquet")
    said = call("attack", "--trace", tmp_path / "mixed.parquet", "--epsilon", 0.1, "--without-top", 1, "--shuffles", 3)
    assert "output within 0.1, without the 1 most attended" in " ".join(said.out.split())
    assert "J3 " not in said.out  # is of another kind
    table = call("attack", "--trace", tmp_path / "mixed.parquet", "--floor", 0.01, "--json").json["tables"]
    assert [row["words"] for row in table["other-attention"]] == ["the very same output, no weight below 0.01"]
    expected = adversarial_attention(MIXED, floor=0.01)["jsd"]
    assert [row["jsd"] for row in table["adversary"]] == pytest.approx(expected.tolist())


def test_one_text_shows_its_weights_and_others_with_the_probabilities_of_both(
    small_model: Classifier,
) -> None:
    found = attack_text(small_model, "a good thing and a bad one")
    before, after = found.explanation.trace.probabilities[0], found.after
    assert after is not None
    assert after.tolist() == pytest.approx(before.tolist(), abs=1e-9)
    row = adversarial_attention(found.explanation.trace).iloc[0]
    summary = found.summary()
    assert [unit["other_weight"] for unit in summary["units"]] == replaced_weights(row).tolist()
    assert (summary["jsd"], summary["exact"], summary["asked"]["epsilon"]) == (row["jsd"], True, 0.0)
    screen = Console(record=True, width=200, file=io.StringIO())
    print_attacked(found, screen)
    lines = [line.rstrip() for line in screen.export_text().splitlines()]
    assert lines[1:5] == [
        "other weights: the very same output",
        "attention   a good thing and a bad one",
        "another     a good thing and a bad one",
        "would push  a good thing and a bad one",
    ]
    assert lines[5] == f"JSD {row['jsd']:.3f} nats, of log 2 = 0.693 at most"
    assert lines[6].startswith(f"probabilities: negative {before[0]:.1%} → {before[0]:.1%}, positive ")
    assert lines[7].startswith("shuffled 100 times: the output moves by 0.")
    assert lines[9] == "weight α   other  push z   token"


def test_a_text_whose_output_needs_what_is_left_out_has_no_other_weights(call: Call, kept: Run) -> None:
    found = call("attack", "good", "--run", kept.path, "--without-top", 1, "--json").json
    assert (found["jsd"], found["other_probabilities"], found["units"][0]["other_weight"]) == (None, None, None)
    assert found["exact"] is None
    said = call("attack", "good", "--run", kept.path, "--without-top", 1)
    assert "there are no such weights: the output needs the units that are left out" in said.out
    assert call("attack", "good", "--run", kept.path, "--floor", 0.9).code == 0
    asked = ("attack", "good thing", "--run", kept.path, "--floor", 0.6, "--without-top", 1)
    assert "there are no such weights\n" in call(*asked).out


def test_of_a_long_text_the_most_attended_units_are_shown(small_model: Classifier) -> None:
    found = attack_text(small_model, " ".join(f"good{place}" for place in range(300)))
    screen = Console(record=True, width=10**5, file=io.StringIO())
    print_attacked(found, screen)
    said = screen.export_text()
    assert "shown are 200 of 300 units: those attended to most" in said
    assert "and 288 more with less weight (--all shows them)" in said


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--epsilon", 2], 1, "heedful: epsilon is how far a probability may move, from 0 to below 1; got 2.0."),
        (["--floor", -1], 1, "heedful: floor is the least weight of a unit, from 0 to below 1; got -1.0."),
        (["--without-top", -2], 1, "heedful: without_top is a number of units, 0 or more; got -2."),
        (["--shuffles", 0], 1, "heedful: shuffles is how often weights are dealt out anew, 1 or more; got 0."),
        (["--seed", -1], 2, "greater than or equal to 0"),
        (["more"], 2, "unexpected extra argument"),
        (["--trace", "x.parquet"], 2, "give a TEXT with --run, or a RUN alone, or --trace alone"),
    ],
)
def test_what_cannot_be_asked_is_a_sentence(
    arguments: list[object], code: int, words: str, call: Call, kept: Run
) -> None:
    said = call("attack", kept.path, *arguments)
    assert (said.code, words in " ".join(said.err.split())) == (code, True)


def test_what_is_attacked_must_be_said(call: Call, kept: Run) -> None:
    assert "give a TEXT with --run" in call("attack").err
    assert "--out is for the tables of many texts" in call("attack", "good", "--run", kept.path, "-o", "x").err
    assert call("attack", "--trace", "none.parquet").err == "heedful: There is no trace file 'none.parquet'.\n"
    assert "No run in the store" in call("attack", "nowhere").err
