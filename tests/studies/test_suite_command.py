"""`heedful faithfulness` and `heedful audit --model`: what they print and save, and every wrong thing as a sentence."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import torch
import transformers

import heedful
from heedful.analysis.faithfulness import plant
from heedful.analysis.faithfulness.suite import Faithfulness
from heedful.eraser_files import write_eraser
from heedful.errors import DataError, InputError
from heedful.explainers import explain
from heedful.explanation_files import read_explanations, write_explanations
from heedful.models.classifier import Classifier
from heedful.studies.compare import BESIDE, choose, chosen_explainers, compare, in_intervals
from heedful.studies.faithfulness import Wanted, measure_subject, measure_trace
from heedful.studies.watching import marked_world, watch_on
from heedful.subjects import DELETE
from heedful.text.corpus import Corpus
from tests.commands import Call, write_corpus
from tests.tiny_transformers import made, tiny

pytestmark = [pytest.mark.xdist_group("suite"), pytest.mark.usefixtures("one_thread", "undrawn")]

WORDS = ("good", "dull", "well", "made", "film", "the")


def films(path: Path, labels: tuple[str, ...] = ("no", "yes", "perhaps")) -> Path:
    """Ninety texts of three words in two splits, the first word marked."""
    rows = [
        {"text": f"{a} {b} {c}", "label": labels[number // 3 % len(labels)], "split": "test" if number % 3 else "train"}
        for number, (a, b, c) in enumerate((a, b, c) for a in WORDS for b in WORDS for c in WORDS[:3])
    ]
    table = pd.DataFrame([row | {"rationales": json.dumps([[0, 1]])} for row in rows])
    table.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    transformers.utils.logging.disable_progress_bar()
    place = tmp_path_factory.mktemp("models") / "mine"
    for part in tiny("bert"):
        part.save_pretrained(place)
    return place


QUICK = ("--texts", 8, "--by", "attention,leave_one_out,random", "--metrics", "aopc,correlation,auprc")


def test_the_suite_is_printed_and_saved_with_plausibility(call: Call, folder: Path, tmp_path: Path) -> None:
    data = films(tmp_path / "films.csv")
    done = call("faithfulness", data, "--model", folder, *QUICK, "--out", tmp_path / "out")
    assert done.code == 0, done.err
    assert "leave_one_out" in done.out
    table = pd.read_parquet(tmp_path / "out" / "faithfulness.parquet").set_index(["metric", "method"])
    assert len(table) == 9
    assert table.loc[("auprc", "attention"), "remark"] == "base rate 0.333"
    assert {path.suffix for path in (tmp_path / "out").glob("faithfulness.*")} == {".csv", ".parquet", ".tex"}
    assert (tmp_path / "out" / "explanations-by-metrics.svg").is_file()
    assert "explaining" in done.err


def test_what_was_explained_is_saved_and_can_be_measured_again(call: Call, folder: Path, tmp_path: Path) -> None:
    data = films(tmp_path / "films.csv")
    done = call("faithfulness", data, "--model", folder, *QUICK, "--out", tmp_path / "out", "--json")
    kept = read_explanations(tmp_path / "out" / "explained-texts.parquet")
    assert [one.method for one in kept] == ["attention", "leave_one_out", "random"]
    rows = pd.read_csv(tmp_path / "out" / "explained-texts.csv")
    assert len(rows) == 3 * 8 * 3  # explanations, texts, words
    files = ("--explanations", tmp_path / "out" / "explained-texts.parquet")
    again = call("faithfulness", data, "--model", folder, *files, "--by", "shapley", "--metrics", "aopc", "--json")
    values = [pd.DataFrame(one.json["tables"]["faithfulness"]).set_index(["metric", "method"]) for one in (done, again)]
    first, second = (one["value"]["aopc"] for one in values)
    assert second[first.index].tolist() == first.tolist()
    assert "shapley" in second


def test_the_payload_is_json(call: Call, folder: Path, tmp_path: Path) -> None:
    done = call("faithfulness", films(tmp_path / "films.csv"), "--model", folder, *QUICK, "--json")
    rows = pd.DataFrame(done.json["tables"]["faithfulness"])
    assert set(rows["method"]) == {"attention", "leave_one_out", "random"}
    assert "read, drawn by seed 0" in " ".join(done.json["notices"])


def test_metrics_that_are_asked_for_are_shown_and_what_has_no_value_is_said(
    call: Call, folder: Path, tmp_path: Path
) -> None:
    about = ("faithfulness", films(tmp_path / "films.csv"), "--model", folder, "--texts", 4, "--by", "attention,random")
    done = call(*about, "--metrics", "sensitivity,aopc,violation")
    (header,) = (line for line in done.out.splitlines() if line.split()[:1] == ["explanation"])
    assert header.split()[1::2] == ["sensitivity", "aopc", "violation", "seconds"]
    assert "All these metrics" not in done.out


def test_a_trace_file_needs_no_data(call: Call, small_model: Classifier, small_corpus: Corpus, tmp_path: Path) -> None:
    heedful.trace(small_model, small_corpus.test).save(tmp_path / "mine.parquet")
    done = call(
        "faithfulness", "--model", tmp_path / "mine.parquet", "--texts", 20, "--metrics", "aopc,naopc", "--json"
    )
    methods = set(pd.DataFrame(done.json["tables"]["faithfulness"])["method"])
    assert {"attention", "gradient", "product", "margin", "random"} <= methods
    about = ("--model", tmp_path / "mine.parquet", "--metrics", "sensitivity,aopc")
    told = " ".join(call("faithfulness", *about, "--texts", 20).out.split())
    assert "No value of sensitivity: give again=, a function that explains under noise" in told
    beside = call("faithfulness", "synthetic-2", *about)
    assert "a trace has its own texts: leave DATA away" in beside.err
    for command in ("audit", "faithfulness --watch"):
        other = call(*command.split(), "synthetic-2", *about[:2])
        assert "is a trace and no model. Its explanations are measured by: heedful faithfulness --model" in other.err


def test_explanations_of_files_stand_beside_the_others(call: Call, folder: Path, tmp_path: Path) -> None:
    subject = heedful.subject(folder)
    texts = ["a good film", "the dull film", "well made"]
    own = heedful.explain(subject, texts, by="leave_one_out")
    write_explanations(tmp_path / "mine.jsonl", [own.with_scores(-own.scores, "mine")])
    done = call(
        *("faithfulness", films(tmp_path / "films.csv"), "--model", folder, "--by", "leave_one_out"),
        *("--metrics", "aopc", "--explanations", tmp_path / "mine.jsonl", "--json"),
    )
    table = pd.DataFrame(done.json["tables"]["faithfulness"]).set_index("method")["value"]
    assert table["mine"] < table["leave_one_out"]
    assert "The 3 texts are those of the files of explanations." in done.json["notices"]


NAMED = ["a good film", "the dull film", "well made", "dull"]


def eraser_of(path: Path, found: heedful.Explanation, *, spans: bool = False) -> Path:
    """An explanation as ERASER's file, or its first word alone as a span; rows upside down, called t0, t1, …"""
    write_eraser(path, found, ids=[f"t{row}" for row in range(len(found))])
    rows = [json.loads(line) for line in path.read_text().splitlines()][::-1]
    for row in rows if spans else ():
        (rationale,) = row["rationales"]
        del rationale["soft_rationale_predictions"]
        rationale["hard_rationale_predictions"] = [{"start_token": 0, "end_token": 1}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def with_ids(path: Path) -> Path:
    """The films, and those that are called t0, t1, …"""
    table = pd.read_csv(films(path)).drop(columns="rationales")
    more = pd.DataFrame({"text": NAMED, "label": "no", "split": "train"})
    whole = pd.concat([table, more], ignore_index=True)
    whole["annotation_id"] = [*(f"f{row}" for row in range(len(table))), *(f"t{row}" for row in range(len(NAMED)))]
    whole.to_csv(path, index=False)
    return path


def test_files_of_eraser_are_matched_by_annotation_id(call: Call, folder: Path, tmp_path: Path) -> None:
    own = heedful.explain(heedful.subject(folder), NAMED, by="leave_one_out")
    soft, hard = eraser_of(tmp_path / "soft.jsonl", own), eraser_of(tmp_path / "hard.jsonl", own, spans=True)
    done = call(
        *("faithfulness", with_ids(tmp_path / "films.csv"), "--model", folder, "--by", "leave_one_out,random"),
        *("--metrics", "aopc", "--explanations", soft, "--explanations", hard, "--json", "--out", tmp_path / "out"),
    )
    assert done.code == 0, done.err
    rows = pd.read_parquet(tmp_path / "out" / "faithfulness-texts.parquet")
    table = rows.pivot(index="instance", columns="method", values="value")
    assert table["soft"].tolist() == pytest.approx(table["leave_one_out"].tolist())
    said = " ".join(done.json["notices"])
    assert "The 4 texts are those of the files of explanations." in said
    assert "'hard' has spans and no degrees: units in a span have the score 1" in said
    reading = heedful.subject(folder).read(NAMED[::-1])
    first = heedful.Explanation.of_lists(
        [[1.0] + [0.0] * (len(text.split()) - 1) for text in NAMED[::-1]],
        targets=reading.decisions,
        class_names=reading.class_names,
        method="first",
    )
    by_hand = heedful.faithfulness(reading, first, ["aopc"]).instances["value"]
    assert table["hard"].tolist() == pytest.approx(by_hand.tolist(), abs=1e-6)  # in single precision


def test_files_of_eraser_that_do_not_fit_are_a_sentence(call: Call, folder: Path, tmp_path: Path) -> None:
    own = heedful.explain(heedful.subject(folder), NAMED, by="leave_one_out")
    file = eraser_of(tmp_path / "mine.jsonl", own)
    asked = (
        "--model",
        folder,
        "--by",
        "random",
        "--metrics",
        "aopc",
        "--explanations",
        file,
        "--out",
        tmp_path / "out",
    )
    without = call("faithfulness", films(tmp_path / "films.csv"), *asked)
    assert (without.code, "'mine.jsonl' does not say of which texts it is." in without.err) == (1, True), without.err
    data = with_ids(tmp_path / "films.csv")
    data.write_text(data.read_text().replace("t2", "u2"))
    unknown = call("faithfulness", data, *asked)
    assert "Of 4 rows 1 have an annotation_id that no text of the data has, such as 't2'" in unknown.err
    data.write_text(data.read_text().replace("u2", "t2").replace("well made,no", "well made it,no"))
    longer = call("faithfulness", data, *asked)
    assert "Row 1 has 2 scores; its text has 3 tokens between white space." in longer.err
    data.write_text(data.read_text().replace("t2", "t1"))
    assert "Two texts of 'films.csv' have the same id 't1'." in call("faithfulness", data, *asked).err
    assert not (tmp_path / "out").exists()


def test_texts_whose_file_explains_another_class_are_left_out(folder: Path, tmp_path: Path) -> None:
    subject = heedful.subject(folder)
    own = heedful.explain(subject, NAMED, by="leave_one_out")
    corpus = heedful.load_corpus(films(tmp_path / "films.csv"))
    other = (own.targets + torch.tensor([0, 1, 0, 0])) % 3
    write_explanations(tmp_path / "some.jsonl", [replace(own, targets=other, method="mine")])
    wanted = Wanted(by=["random"], metrics=["aopc"], files=[tmp_path / "some.jsonl"])
    found = measure_subject(corpus, subject, wanted)
    assert found.tables["faithfulness"]["count"].tolist() == [3, 3]
    assert "Of 1 text more they explain another class than the model decides for." in found.page.notices
    write_explanations(tmp_path / "some.jsonl", [replace(own, targets=(own.targets + 1) % 3, method="mine")])
    with pytest.raises(DataError, match=r"explain another class than mine decides for in all of their 4 texts"):
        measure_subject(corpus, subject, wanted)


def test_explanations_of_a_trace_are_of_all_its_instances(tmp_path: Path) -> None:
    trace = heedful.Trace.from_arrays(
        offsets=[0, 2, 4, 6, 8],
        bias=[0.5],
        attention_scores=[0.0, 1.0] * 4,
        polarity_scores=[2.0, -3.0, 2.0, -3.0, -3.0, 1.0, 4.0, 1.0],
    )
    own = explain(trace, by="product")
    write_explanations(tmp_path / "mine.jsonl", [own.with_scores(own.scores, "mine")])
    wanted = Wanted(by=["product", "random"], metrics=["aopc"], files=[tmp_path / "mine.jsonl"], texts=2)
    rows = (
        measure_trace(trace, wanted)
        .tables["faithfulness-texts"]
        .pivot(index="instance", columns="method", values="value")
    )
    assert rows["mine"].tolist() == rows["product"].tolist()
    write_explanations(tmp_path / "mine.jsonl", [own.take(torch.arange(3)).with_scores(own.scores[:6], "mine")])
    with pytest.raises(DataError, match=r"'mine.jsonl' explains 3 texts, the trace has 4 instances"):
        measure_trace(trace, wanted)


def test_metrics_are_watched_on_planted_worlds(call: Call) -> None:
    done = call(
        "faithfulness",
        "--watch",
        "--texts",
        30,
        "--metrics",
        "correlation,entropy",
        "--by",
        "leave_one_out,random",
        "--json",
    )
    found = pd.DataFrame(done.json["tables"]["diagnosticity"])
    means = found[found["world"] != "all"].groupby("metric")["diagnosticity"].mean()
    assert means["correlation"] > means["entropy"] + 0.2
    explainers = pd.DataFrame(done.json["tables"]["explainers"])
    assert explainers["explainer"].iloc[-1] == "random"


def test_a_planted_corpus_of_ones_own_watches_the_metrics() -> None:
    plain = [f"{a} {b} {c} {d}" for a in WORDS for b in WORDS for c in WORDS for d in WORDS]
    texts = [f"{plain[row]} superb {plain[-row]} {plain[row + 7]} {plain[row + 9]}" for row in range(200)]
    finds = heedful.subject(lambda texts: [0.9 if "superb" in text else 0.2 for text in texts], name="finds")
    marked = {text: ["superb"] for text in texts} | {plain[row]: ["good"] for row in range(40)}
    wanted = Wanted(metrics=["aopc", "gini"], by=["leave_one_out", "random"], texts=240)
    page = watch_on(finds, marked, wanted, name="mine")
    assert page.headline == "1 metric may be trusted here: aopc."
    assert page.notices == ["200 of 240 texts count: in the others finds decides the same without the marked words."]
    found = page.tables()["explainers"].set_index("explainer")["τ with the truth"]
    assert found["leave_one_out"] == pytest.approx(1.0)


def test_marks_that_nothing_rests_on_are_no_truth() -> None:
    finds = heedful.subject(lambda texts: [0.9 if "superb" in text else 0.2 for text in texts], name="finds")
    reading = finds.read(["a superb film", "a dull film"])
    for marked, why in (
        ({}, "No word is marked"),
        ({"a dull film": ["dull"]}, "In none of 2 texts the decision of finds is another without the marked words"),
    ):
        with pytest.raises(DataError, match=why):
            marked_world(finds, reading, marked, how=DELETE)
    world, said = marked_world(finds, reading, {"a superb film": ["superb"], "a dull film": ["dull"]}, how=DELETE)
    assert (world.truth.texts, world.truth.scores.tolist()) == (["a superb film"], [0, 1, 0])
    assert said == ["1 of 2 texts count: in the others finds decides the same without the marked words."]


def test_what_is_best_is_chosen_by_metrics_that_may_be_trusted() -> None:
    planted = plant("additive", texts=60, seed=2).reading
    found = compare(planted, by=["leave_one_out", "random"], metrics=["correlation", "aopc", "gini"])
    assert found.choice is not None
    assert (found.choice.best, found.choice.verdict) == ("leave_one_out", None)
    assert in_intervals(found.measured.table)["metric"].tolist() == ["correlation ↑", "aopc ↑", "gini"]
    assert chosen_explainers(planted, None)[1]["attention"].startswith("it needs a trace")


def of_areas(areas: Mapping[str, Sequence[float]]) -> Faithfulness:
    """Measured explanations with these AOPC, a number for each text."""
    rows = [
        {"method": method, "metric": "aopc", "instance": text, "value": value}
        for method, values in areas.items()
        for text, value in enumerate(values)
    ]
    table = pd.DataFrame([{"method": method, "metric": "aopc"} for method in areas])
    return Faithfulness(table=table, instances=pd.DataFrame(rows), bounds=None, how="delete", passes=0, seconds=0.0)


def test_what_is_best_is_chosen_by_the_number_that_is_tested() -> None:
    found = choose(of_areas({"attention": [0.4, 0.41] * 30, "a": [0.3] * 60, "b": [0.6, 0.61] * 30}))
    assert found is not None
    assert (found.best, found.verdict is not None and found.verdict.decision) == ("b", "yes")
    assert found.areas["explanation"].tolist() == ["b", "attention", "a"]
    assert found.words == "Use b rather than attention: its AOPC is larger."
    behind = choose(of_areas({"attention": [0.4, 0.41] * 30, "a": [0.2] * 60}))
    assert behind is not None
    assert behind.words == "By AOPC attention is truer to the model than a, the best of the others."


def test_nothing_is_recommended_on_few_texts_or_if_it_is_no_better_than_chance() -> None:
    few = choose(of_areas({"random": [0.1] * 10, "a": [0.9] * 10}))
    assert few is not None
    assert few.words == "There are too few texts to say which explanation to use: 20 are needed."
    same = choose(of_areas({"random": [0.1, 0.5] * 30, "a": [0.5, 0.1] * 30}))
    assert same is not None
    assert same.words.startswith("No explanation at hand is shown to be better than chance: the best is a (AOPC ")
    ahead = choose(of_areas({"random": [0.1, 0.12] * 30, "a": [0.5, 0.51] * 30}))
    assert ahead is not None
    assert ahead.words.startswith("Of the explanations at hand use a: it has the largest AOPC (+0.3")
    assert choose(of_areas({"a": [0.5] * 30, "b": [0.4] * 30})) is None


def test_explanations_of_another_class_are_not_compared() -> None:
    planted = plant("additive", texts=12, seed=2).reading
    own = explain(planted, by="leave_one_out")
    other = replace(own, targets=1 - own.targets, method="mine")
    with pytest.raises(
        InputError, match="'mine' explains another class than 'leave_one_out' in 12 texts, such as text 0"
    ):
        compare(planted, by=["leave_one_out"], given=[other], metrics=["aopc"])


def test_copies_in_a_trace_count_once() -> None:
    attention, polarity = [0.0, 1.0] * 24, [2.0, -3.0] * 23 + [2.0, -4.0]
    trace = heedful.Trace.from_arrays(
        offsets=range(0, 49, 2), bias=[0.5], attention_scores=attention, polarity_scores=polarity
    )
    found = measure_trace(trace, Wanted(by=["attention", "random"], metrics=["aopc"]))
    assert found.compared.measured.instances["instance"].nunique() == 2
    assert "no copies of others (22 are)" in found.page.notices[0]


def test_the_metrics_that_stand_beside_each_other_are_those_that_the_documentation_trusts() -> None:
    text = (Path(__file__).parents[2] / "docs" / "faithfulness.md").read_text(encoding="utf-8")
    rows = [line.split("|") for line in text.splitlines() if line.startswith("|") and "| trust |" in line]
    trusted = {name.strip() for row in rows for name in row[1].split(",")}
    assert set(BESIDE) == trusted - {"tau_loo", "naopc", "deletion"}


WRONG = {
    "a folder without a model": (("--model", "."), "'.' failed to load as a sequence classifier"),
    "an unknown explainer": (("--model", "FOLDER", "--by", "attentoin"), "Did you mean 'attention'?"),
    "an unknown metric": (("--model", "FOLDER", "--metrics", "aopcc"), "Did you mean 'aopc'?"),
    "a way that cannot be gone": (
        ("--model", "FOLDER", "--how", "erase"),
        "There is no way to take units away 'erase'",
    ),
    "a missing file": (("--model", "FOLDER", "--explanations", "none.jsonl"), "There is no file 'none.jsonl'"),
}


NAMES = {
    "an explainer": (("--by", "attention,limee"), "There is no explainer 'limee'. Did you mean 'lime'?"),
    "what stands after it": (("--by", "rollout@2"), "'rollout' takes nothing after @; got 'rollout@2'."),
    "no explainer": (("--by", ","), "One explainer or more must be named; an empty list was given."),
    "a metric": (("--metrics", "aopcc"), "There is no metric 'aopcc'. Did you mean"),
    "an explainer twice": (("--by", "random,random"), "The explainer 'random' is named twice"),
    "a metric twice": (("--metrics", "aopc,aopc"), "The metric 'aopc' is named twice"),
    "no share": (("--metrics", "comprehensiveness@1.5"), "a share of the units between 0 and 1; got 1.5."),
    "a way": (("--how", "remove"), "There is no way to take units away 'remove'."),
}


@pytest.mark.parametrize("command", ["audit", "faithfulness", "faithfulness --watch"])
@pytest.mark.parametrize("what", NAMES)
def test_a_mistyped_name_is_answered_before_anything_is_read(command: str, what: str, call: Call) -> None:
    options, why = NAMES[what]
    done = call(*command.split(), "there-are-no-such-data.csv", "--model", ".", *options)
    assert (done.code, why in done.err) == (1, True), done.err


@pytest.mark.parametrize("command", ["audit", "faithfulness"])
@pytest.mark.parametrize("what", WRONG)
def test_wrong_options_are_a_sentence(command: str, what: str, call: Call, folder: Path, tmp_path: Path) -> None:
    options, why = WRONG[what]
    if command == "audit" and "--explanations" in options:
        pytest.skip("audit reads no files of explanations")
    given = [str(folder) if one == "FOLDER" else one for one in options]
    done = call(command, films(tmp_path / "films.csv"), *given, "--out", tmp_path / "out")
    assert done.code == 1
    assert why in done.err
    assert "Traceback" not in done.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["audit", "faithfulness"])
def test_what_it_will_take_is_said_beforehand_and_limited(
    command: str, call: Call, folder: Path, tmp_path: Path
) -> None:
    options = (films(tmp_path / "films.csv"), "--model", folder, *QUICK, "--store", tmp_path / "runs")
    done = call(command, *options, "--json")
    said = re.search(r"explaining and measuring: up to ([\d,]+) changed texts of ([\d,]+) units in all", done.err)
    assert said is not None, done.err
    texts, units = (int(number.replace(",", "")) for number in said.groups())
    # Of 8 texts of three words: leave one out 3; curves 3 each for three explanations, and 64 sets for all of them.
    assert (texts, units) == (8 * (3 + 3 * 3 + 64), 3 * texts)
    refused = call(command, *options, "--most", units - 1, "--out", tmp_path / "none")
    assert refused.code == 1
    assert "would have to read up to" in refused.err
    assert "8 texts of up to 3 units cost that" in refused.err
    assert not (tmp_path / "none").exists()


def test_models_that_do_not_fit_are_a_sentence(call: Call, folder: Path, tmp_path: Path) -> None:
    two = call("audit", films(tmp_path / "two.csv", ("no", "yes")), "--model", folder, "--out", tmp_path / "out")
    assert (two.code, "mine has 3 classes (no, yes, perhaps), the data have 2 labels (no, yes)" in two.err) == (1, True)
    other = call("audit", films(tmp_path / "other.csv", ("no", "yes", "maybe")), "--model", folder)
    assert "mine does not know the labels maybe" in other.err
    bare = tmp_path / "bare"
    made("bert")[0].save_pretrained(bare)
    without = call("audit", films(tmp_path / "films.csv"), "--model", bare, "--out", tmp_path / "out")
    assert without.code == 1
    assert "Traceback" not in without.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["audit", "faithfulness"])
def test_a_model_that_is_no_folder_and_no_run_is_a_sentence(command: str, call: Call, tmp_path: Path) -> None:
    data = films(tmp_path / "films.csv")
    for name, what in (("./my-modl", "'./my-modl' with"), (data, f"'{data}' (it is a file) with")):
        done = call(command, data, "--model", name)
        assert (done.code, f"There is no folder {what} a model." in done.err) == (1, True), done.err


@pytest.mark.parametrize("command", ["audit", "faithfulness"])
def test_a_model_of_ones_own_is_not_asked_about_made_up_texts(command: str, call: Call, folder: Path) -> None:
    done = call(command, "--model", folder)
    assert (done.code, "give DATA, texts with labels, beside --model" in done.err) == (2, True), done.err


def test_a_model_is_named_or_metrics_are_watched(call: Call, tmp_path: Path) -> None:
    done = call("faithfulness", films(tmp_path / "films.csv"))
    assert done.code == 2
    assert "give --model" in done.err


def test_options_of_a_training_mean_nothing_beside_a_model(call: Call, folder: Path, tmp_path: Path) -> None:
    done = call("audit", films(tmp_path / "films.csv"), "--model", folder, "--epochs", 3)
    assert "With --model nothing is trained, so that epochs cannot be set." in done.err


def test_a_transformer_is_audited_on_the_command_line(call: Call, folder: Path, tmp_path: Path) -> None:
    data, store = films(tmp_path / "films.csv"), tmp_path / "runs"
    done = call("audit", data, "--model", folder, "--store", store, *QUICK[:-1], "aopc,gini", "--json", "--seed", 3)
    assert done.code == 0, done.err
    place = Path(done.json["report"])
    assert (place.parents[1], place.parent.name[12:]) == (store / "audits", "_mine_films.csv")
    assert Path(done.json["report"]).is_file()
    assert done.json["facts"]["Data"]["seed"] == 3
    claims = {row["claim"] for row in done.json["verdicts"]}
    assert claims >= {"M1", "D1", "D2", "D3"}
    assert "D5" not in claims, "a model that has learned nothing is not explained"


def test_a_run_is_audited_as_it_is(call: Call, tmp_path: Path) -> None:
    data, store = write_corpus(tmp_path / "corpus.csv"), tmp_path / "runs"
    assert call("train", data, "--store", store, "--epochs", 2, "--set", "model.embedding_size=8").code == 0
    (run,) = [path for path in store.iterdir() if (path / "manifest.json").is_file()]
    done = call("audit", data, "--model", run.name[:6], "--store", store, "--texts", 9, "--metrics", "aopc", "--json")
    assert done.code == 0, done.err
    assert {row["claim"] for row in done.json["verdicts"]} >= {"C1", "S13", "J3b", "D2"}


def test_a_subject_is_measured_in_python(small_corpus: Corpus) -> None:
    finds = heedful.subject(lambda texts: [len(text) / 200 for text in texts], class_names=small_corpus.class_names)
    wanted = Wanted(by=["leave_one_out", "random"], metrics=["aopc"], texts=10)
    told: list[str] = []
    found = measure_subject(small_corpus, finds, wanted, watch=lambda event: told.append(getattr(event, "what", "")))
    assert found.tables["faithfulness"]["count"].tolist() == [10, 10]
    assert told[0] == "reading the texts"


def test_the_planted_corpus_of_the_page_is_watched_as_it_says(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its code and commands on fewer texts."""
    page = (Path(__file__).parents[2] / "docs" / "faithfulness.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert "TEXTS = 3_000" in code
    exec(compile(code.replace("3_000", "1_000"), "faithfulness.md", "exec"), {})
    train, watch = (line.split()[1:] for line in re.findall(r"^heedful .*$", page, re.MULTILINE)[:2])
    done = call(*train, "--json")
    assert done.code == 0, done.err
    name = done.json["run"].rpartition("/")[2]
    few = ("--texts", 40, "--by", "attention,leave_one_out,integrated_gradients,random", "--metrics", "aopc,infidelity")
    done = call(*[name if word == "RUN" else word for word in watch], *few, "--json")
    assert done.code == 0, done.err
    found = pd.DataFrame(done.json["tables"]["explainers"]).set_index("explainer")["τ with the truth"]
    assert found["leave_one_out"] > 0.5 > 0.3 > found["attention"]
    assert re.search(r"of 40 texts count: in the others .* decides the same", " ".join(done.json["notices"]))
