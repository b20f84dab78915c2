"""The trainer of the zoo, what is kept of it, its commands, its examination and its pictures, on a task of a second."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.patches import Rectangle

from heedful.errors import UnknownName
from heedful.figures.attention import attention_grid
from heedful.files import write_json
from heedful.store import Store
from heedful.studies.zoo import cards, comparing, examining, looking, trying
from heedful.zoo import tasks
from heedful.zoo.members import MEMBERS
from heedful.zoo.members.luong import make_location
from heedful.zoo.networks.matching import Matching
from heedful.zoo.results import Result, Trial, find, keep, key_of, trials
from heedful.zoo.task import Examples, Network, Outcome, Task, cross_entropy, judge
from heedful.zoo.tasks import TASKS
from heedful.zoo.training import Checked, answer, examples_of, make, measure, train
from tests.commands import Call

pytestmark = pytest.mark.usefixtures("one_thread")

SHORT = replace(TASKS["matching"], steps=120, quick_steps=60, size=100, batch=32)
SELF = SHORT.entrant("self-attention")


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """The zoo has one task, and that is short."""
    monkeypatch.setattr(tasks, "TASKS", {"matching": SHORT})
    for module in (trying, cards, comparing):
        monkeypatch.setattr(module, "TASKS", {"matching": SHORT})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "runs")


def test_figures_by_hand() -> None:
    """Three steps of which one is not asked, in two examples: 3 of 4 right, one example exact; of three sources the
    largest weight lies on two."""
    logits = torch.tensor([[[2.0, 1.0], [0.0, 3.0], [9.0, 0.0]], [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]])
    targets = torch.tensor([[0, 1, -1], [0, 1, -1]])
    weights = {"": torch.tensor([[[0.6, 0.4], [0.3, 0.7], [0.5, 0.5]], [[0.9, 0.1], [0.2, 0.8], [1.0, 0.0]]])}
    marks = torch.zeros(2, 3, 2, dtype=torch.bool)
    marks[0, 0, 0] = marks[0, 1, 0] = marks[1, 1, 1] = True
    outcome = Outcome(logits=logits, weights=weights)
    examples = Examples(inputs={}, targets=targets, sources={"": marks})
    found = judge(outcome, examples)
    assert found == pytest.approx({"right": 0.75, "exact": 0.5, "pointed": 2 / 3})
    losses = [-torch.log_softmax(logits[i, j], 0)[targets[i, j]] for i in range(2) for j in range(2)]
    torch.testing.assert_close(cross_entropy(outcome, examples), torch.stack(losses).mean())


def test_a_training_learns_and_repeats_bit_by_bit() -> None:
    seen: list[Checked] = []
    first = train(SHORT, SELF, seed=3, observers=[seen.append])
    again = train(SHORT, SELF, seed=3)
    assert first.figures["test"]["pointed"] > 0.9
    assert first.figures == again.figures
    for part, same in zip(first.network.parameters(), again.network.parameters(), strict=True):
        assert part.equal(same)
    assert [one.step for one in seen] == list(range(6, 121, 6))
    assert first.history["step"].tolist() == [one.step for one in seen]
    right = first.history["right"].tolist()
    assert first.step == max(row["step"] for row in first.history.to_dict("records") if row["right"] == max(right))
    assert first.parameters == sum(part.numel() for part in first.network.parameters())


def test_torchs_own_generator_is_left_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    make(SELF, 1)
    assert torch.rand(3).equal(expected)


def test_a_training_is_kept_and_found(store: Store) -> None:
    (trial, *_) = trials(SHORT, seeds=[0], quick=True)
    assert trial == Trial(task="matching", entrant="self-attention", seed=0, steps=60)
    assert find(trial, SHORT, store) is None
    first, second = keep(trial, SHORT, store), keep(trial, SHORT, store)
    assert (first.new, second.new) == (True, False)
    assert first.path.parent.name == ".zoo"
    assert measure(second.network(SELF), SHORT, "test") == second.figures["test"]
    assert second.record["parameters"] == 5674
    assert len(second.history()) == 20
    assert find(trial, replace(SHORT, rate=1.0), store) is None
    assert store.rubbish(everything=True) == []


def test_what_was_reached_stands_beside_what_was_asked(store: Store) -> None:
    found = trying.try_tasks([SHORT], store, seeds=2, quick=True, workers=1)
    table = {(row["entrant"], row["figure"]): row for row in trying.reached(found).to_dict("records")}
    own = [one.figures["test"]["right"] for one in found if one.record["entrant"] == "self-attention"]
    row = table["self-attention", "right"]
    assert row["value"] == pytest.approx(np.mean(own))
    assert row["seeds"] == 2
    assert bool(row["reached"]) == (row["value"] >= 0.95)
    assert table["luong-location", "right"]["reached"]
    assert table["content", "right"]["reached"] is None
    assert 0.0 <= row["low"] <= row["value"] <= row["high"] <= 1.0
    costs = trying.costs(found).set_index("entrant")
    assert costs.loc["self-attention", "parameters"] == 5674
    assert trying.bar_of({"exact": (0.5, 1.0), "exact@50": (0.1, 1.0)}, TASKS["copy"], "50", "exact") == (0.1, 1.0)
    assert trying.bar_of({"exact": (0.5, 1.0)}, TASKS["copy"], "25", "exact") == (0.5, 1.0)
    assert trying.bar_of({"exact": (0.5, 1.0)}, TASKS["copy"], "50", "exact") is None


def test_erasing_a_place_runs_the_network_without_it() -> None:
    """The network that was trained: without the other token of a pair hardly an answer is what it was."""
    network = train(SHORT, SELF).network
    examples = examples_of(SHORT, "test").take(slice(0, 50))
    (row,) = examining.erasures(network, examples)
    before = answer(network, examples, forced=True)
    top = before.weights[""].argmax(-1)
    expected = 0
    for example in range(50):
        for place in range(12):
            hidden = torch.zeros(1, 12, 12, dtype=torch.bool)
            hidden[0, place, top[example, place]] = True
            after = network(examples.take(slice(example, example + 1)), without={"": hidden})
            expected += int(after.answers[0, place] != before.answers[example, place])
    assert row["top"] == pytest.approx(expected / 600)
    assert row["top"] == row["source"]
    assert expected / 600 > 0.8
    assert isinstance(row["random"], float)
    assert row["random"] < 0.05


def test_traces_of_networks_that_pool_into_an_affine_readout_give_their_outputs() -> None:
    for name, entrant in (("planted-sentence", "hierarchical"), ("planted-sentence", "one level"),
                          ("two-facts", "memory"), ("preferences", "acf")):  # fmt: skip
        task = ALL[name]
        network, examples = make(task.entrant(entrant), 0), examples_of(task, "test").take(slice(0, 30))
        found = examining.trace_of(network, examples)
        assert found is not None
        outputs = answer(network, examples).logits[:, 0].double()
        torch.testing.assert_close(found[0].logits, outputs, atol=1e-5, rtol=0)
    assert examining.trace_of(make(SELF, 0), examples_of(SHORT, "test")) is None


ALL = dict(TASKS)


def test_commands(call: Call, tmp_path: Path) -> None:
    store, out = tmp_path / "runs", tmp_path / "out"
    empty = call("zoo", "compare", "--store", store)
    assert (empty.code, "Nothing of it has been trained in this store" in empty.out) == (0, True)
    listed = json.loads(call("zoo", "list", "--json").out)
    assert [one["name"] for one in listed["members"]][:2] == ["bahdanau", "luong-dot"]
    done = call("zoo", "train", "matching", "--quick", "--workers", 1, "--store", store, "--json")
    assert done.code == 0, done.err
    rows = {(row["entrant"], row["figure"]): row for row in json.loads(done.out)["reached"]}
    assert rows["luong-location", "right"]["reached"] is True
    shown = call("zoo", "show", "self-attention", "--quick", "--store", store)
    assert "softmax(Q Kᵀ / √d) V" in shown.out
    assert f"{rows['self-attention', 'right']['value']:.3f}" in shown.out
    compared = call("zoo", "compare", "--quick", "--store", store, "--out", out)
    assert compared.code == 0, compared.err
    written = (out / "zoo.md").read_text()
    assert "![Weights of self-attention" in written
    assert (out / "matching-self-attention.png").is_file()
    assert "Not trained yet" not in written
    own = [line for line in written.splitlines() if line.startswith("| `matching` | self-attention |")]
    value = comparing.plain(pd.Series(rows["self-attention", "right"]))
    assert len(own) == 1
    assert own[0].split(" | ")[2] == value
    looks = pd.read_csv(out / "looks.csv").set_index("entrant")
    assert list(looks.index) == ["self-attention", "content", "luong-location"]
    wrong = call("zoo", "show", "self-atention")
    assert (wrong.code, "Did you mean 'self-attention'?" in wrong.err) == (1, True)
    assert "There is no member or task of the zoo 'matchin'" in call("zoo", "train", "matchin", "--store", store).err


def test_a_task_whose_data_are_missing_says_so(monkeypatch: pytest.MonkeyPatch, call: Call) -> None:
    needing = replace(SHORT, files=("nothing.csv",))
    monkeypatch.setattr(tasks, "TASKS", {"matching": needing})
    for module in (trying, cards):
        monkeypatch.setattr(module, "TASKS", {"matching": needing})
    assert "needs nothing.csv in the data folder" in call("zoo", "train", "matching").err
    assert "needs nothing.csv in the data folder" in call("zoo", "train", "self-attention").err
    shown = call("zoo", "show", "self-attention")
    assert (shown.code, "needs nothing.csv in the data folder" in shown.out) == (0, True)


def test_what_decides_on_numbers_decides_on_the_key() -> None:
    """Sizes that torch does not print are among it."""

    def key(task: Task) -> str:
        return key_of(Trial(task="reverse", entrant="luong-location", seed=0, steps=10), task)

    one, other = (
        replace(SHORT, entrants=(replace(SELF, name="luong-location", make=partial(located, places)),))
        for places in (12, 13)
    )
    assert key(one) == key(replace(one))
    assert len({key(one), key(other), key(replace(one, best="exact")), key(replace(one, rate=0.1))}) == 4


def located(places: int) -> Network:
    return Matching([16, 10], 32, look=lambda size: make_location(size, size, places), places=12)


def test_a_grid_frames_the_source() -> None:
    table = pd.DataFrame(
        [{"look": "", "row": row, "column": column, "weight": weight, "source": source, "row_word": "ab"[row],
          "column_word": "xyz"[column], "word": ""}
         for row, column, weight, source in ((0, 0, 0.0, False), (0, 1, 1.0, True), (0, 2, 0.0, False),
                                             (1, 0, 0.5, False), (1, 1, 0.5, False), (1, 2, 0.0, True))]
    )  # fmt: skip
    (axis,) = attention_grid(table).axes
    assert [label.get_text() for label in axis.get_xticklabels()] == ["x", "y", "z"]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["a", "b"]
    cells = [one for one in axis.patches if isinstance(one, Rectangle)]
    framed = [(round(one.get_x()), round(one.get_y())) for one in cells if not one.get_fill()]
    assert framed == [(1, 0), (2, 1)]
    filled = {(one.get_x(), one.get_y()): one.get_facecolor()[:3] for one in cells if one.get_fill()}
    assert filled[0, 0] == (1.0, 1.0, 1.0)
    assert filled[1, 0] == pytest.approx((0xE6 / 255, 0x9F / 255, 0.0))


def test_a_look_of_one_step_is_a_list_beside_what_has_its_words() -> None:
    """One sentence of two is looked at, and words in both: the list of sentences stands before the words."""
    table = pd.DataFrame(
        [{"look": look, "row": row, "column": column, "weight": 0.0, "source": (look, row, column) == ("s", 0, 1),
          "row_word": row_word, "column_word": column_word, "word": "x" * 30 if look == "w" else ""}
         for look, row, column, row_word, column_word in (
             ("s", 0, 0, "text", "first"), ("s", 0, 1, "text", "second"), ("w", 0, 0, "first", "1"),
             ("w", 0, 1, "first", "2"), ("w", 1, 0, "second", "1"), ("w", 1, 1, "second", "2"))]
    )  # fmt: skip
    sentences, words = attention_grid(table).axes
    assert [label.get_text() for label in sentences.get_yticklabels()] == ["first", "second"]
    assert [label.get_text() for label in sentences.get_xticklabels()] == ["text"]
    framed = [one for one in sentences.patches if isinstance(one, Rectangle) and not one.get_fill()]
    assert [(round(one.get_x()), round(one.get_y())) for one in framed] == [(0, 1)]
    assert [label.get_text() for label in words.get_yticklabels()] == []
    assert words.get_position().y0 == pytest.approx(sentences.get_position().y0)
    assert words.get_position().x0 > sentences.get_position().x1
    assert {text.get_text() for text in words.texts} == {"w", "x" * 23 + "…"}


def test_letters_are_shown_of_the_name_that_is_written() -> None:
    """Whoever copies the fifth letter looks at it: behind ^, so the place is one more."""
    task = TASKS["correction"]
    examples = examples_of(task, "test").take(slice(0, 40))
    logits = torch.nn.functional.one_hot(examples.targets.clamp(min=0), 64).float()
    outcome = Outcome(logits=logits, weights={look: marks.float() for look, marks in examples.sources.items()})
    seen = 0
    for number in range(40):
        words = task.show(examples, outcome, number)
        if "letter" in words.rows:
            seen += 1
            cells = looking.cells_of(words, examples, outcome, number)
            letters = cells[(cells["look"] == "letter") & cells["source"]]
            assert (letters["row_word"] == letters["column_word"]).all()
            assert [*letters["row_word"]] == [*words.rows["letter"]]
            assert (letters["weight"] == 1.0).all()
    assert seen > 10


def test_intervals_of_errors_may_lie_above_one(tmp_path: Path) -> None:
    """Two seeds, 1.2 and 1.4: Student's 97.5 % point for one degree of freedom is 12.706, so 1.3 ± 1.27; a share of
    .9 and .8 ends at one."""
    for seed in (0, 1):
        figures = {"test": {"rmse": 1.2 + 0.2 * seed, "right": 0.9 - 0.1 * seed}}
        record = {"task": "matching", "entrant": "self-attention", "seed": seed, "figures": figures}
        write_json(tmp_path / str(seed) / "result.json", record)
    found = [Result(path=tmp_path / str(seed)) for seed in (0, 1)]
    table = {(row["entrant"], row["figure"]): row for row in trying.reached(found).to_dict("records")}
    row = table["self-attention", "rmse"]
    assert (row["low"], row["value"], row["high"]) == pytest.approx((0.0295, 1.3, 2.5706), abs=1e-3)
    assert table["self-attention", "right"]["high"] == 1.0


def test_cards_in_the_documentation_are_those_of_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/zoo.md has every card and what every task asks, as they are now."""
    monkeypatch.setattr(tasks, "TASKS", ALL)
    written = (Path(__file__).parents[2] / "docs" / "zoo.md").read_text(encoding="utf-8")
    for member in MEMBERS.values():
        assert "\n".join(comparing.member_section(member)) in written, member.name
    for task in ALL.values():
        assert f"### {task.title} (`{task.name}`)\n\n{task.words}\n" in written, task.name


def test_nothing_is_asked_of_anyone_on_real_data() -> None:
    asked = {name: any(one.bars for one in task.entrants) for name, task in ALL.items()}
    assert {name for name, some in asked.items() if not some} >= {name for name, task in ALL.items() if task.real}
    assert all(ALL[name].files for name in ALL if ALL[name].real)


def test_a_member_is_trained_on_all_its_tasks() -> None:
    assert trying.chosen("self-attention") == [SHORT]
    with pytest.raises(UnknownName, match="Did you mean 'self-attention'"):
        trying.chosen("self-atention")


def test_how_many_seeds() -> None:
    real = replace(SHORT, seeds=1)
    found = [
        trying.seeds_of(task, given, quick) for task in (SHORT, real) for given in (None, 5) for quick in (False, True)
    ]
    assert found == [3, 1, 5, 5, 1, 1, 5, 5]
