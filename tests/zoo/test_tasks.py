"""What is drawn for each task of the zoo is what its words say: every answer and right place found again literally."""

import datetime
import itertools
from pathlib import Path

import pytest
import torch
from scipy.spatial import ConvexHull
from torch import Tensor

from heedful.errors import StoreError
from heedful.tensor_files import load_tensors, save_tensors
from heedful.zoo.networks import recurrent
from heedful.zoo.task import Entrant, Examples, Outcome, Task
from heedful.zoo.tasks import (
    TASKS,
    aspects,
    correction,
    dates,
    hull,
    matching,
    order,
    planted,
    preferences,
    stories,
    visits,
)
from heedful.zoo.tasks.matching import pairs
from heedful.zoo.training import answer, make
from tests.covering import covers

pytestmark = pytest.mark.usefixtures("one_thread")

COUNT = 60
HERE = [name for name, task in TASKS.items() if not task.missing()]
EVERY = pytest.mark.parametrize("name", HERE)
ENTRANTS = pytest.mark.parametrize(
    ("name", "entrant"), [(name, one.name) for name in HERE for one in TASKS[name].entrants]
)


def drawn(task: Task, split: str = "train", count: int = COUNT, seed: int = 0) -> Examples:
    return task.draw(split, count, torch.Generator().manual_seed(seed))


def only(marks: Tensor) -> list[int]:
    """Which places are marked."""
    return [int(place) for place in marks.nonzero().flatten()]


@EVERY
def test_the_same_generator_draws_the_same(name: str) -> None:
    first, second, other = (drawn(TASKS[name], seed=seed) for seed in (1, 1, 2))
    for part, again in zip(first.inputs.values(), second.inputs.values(), strict=True):
        assert part.equal(again)
    assert first.targets.equal(second.targets)
    assert any(
        part.shape != another.shape or not part.equal(another)
        for part, another in zip(first.inputs.values(), other.inputs.values(), strict=True)
    )


@ENTRANTS
def test_every_entrant_answers_and_learns(name: str, entrant: str) -> None:
    """Answers have the shape of the targets, looks that of the right places; gradients are numbers."""
    task = TASKS[name]
    examples, network = drawn(task, count=8), make(task.entrant(entrant), 0)
    outcome = network(examples, forced=True)
    assert outcome.logits.shape[:2] == examples.targets.shape
    for look, marks in examples.sources.items():
        if look in outcome.weights:
            assert outcome.weights[look].shape == marks.shape
            assert bool((outcome.weights[look] >= 0).all())
    task.loss(outcome, examples).backward()
    slopes = [one.grad for one in network.parameters() if one.grad is not None]
    assert all(bool(slope.isfinite().all()) for slope in slopes)
    assert len(slopes) >= 0.6 * len([*network.parameters()])  # a baseline leaves out what it is without
    figures = task.judge(answer(network, examples), examples)
    assert task.best in figures


@EVERY
def test_baselines_have_as_many_parameters(name: str) -> None:
    """That learn: no less than nine tenths of the first member's; the same for controls, but for those that leave out a
    layer: a hop less learns no way between hops."""
    task = TASKS[name]
    examples = drawn(task, count=8)

    def learned(entrant: Entrant) -> int:
        network = make(entrant, 0)
        task.loss(network(examples, forced=True), examples).backward()
        return sum(part.numel() for part in network.parameters() if part.grad is not None)

    counts = {one.name: learned(one) for one in task.entrants}
    first, *others = (counts[one.name] for one in task.entrants if one.role != "member" or one is task.entrants[0])
    assert all(other >= (0.87 if "one hop less" in counts else 0.9) * first for other in others), counts


@EVERY
def test_a_place_that_may_not_be_read_has_no_weight(name: str) -> None:
    task = TASKS[name]
    examples = drawn(task, count=6)
    for entrant in task.entrants:
        network = make(entrant, 0)
        before = answer(network, examples, forced=True)
        if not before.weights:
            continue
        top = {look: marks_of(weights) for look, weights in before.weights.items()}
        after = answer(network, examples, forced=True, without=top)
        for look, marks in top.items():
            first = after.weights[look][:, 0][marks[:, 0]]  # at later steps another place is asked from
            assert float(first.abs().max()) == 0.0, (entrant.name, look)


def marks_of(weights: Tensor) -> Tensor:
    return torch.zeros_like(weights, dtype=torch.bool).scatter(-1, weights.argmax(-1, keepdim=True), True)


@EVERY
def test_a_picture_has_words_for_all_that_is_shown(name: str) -> None:
    task = TASKS[name]
    examples = drawn(task, task.tests[0], count=3)
    outcome = answer(make(task.entrants[0], 0), examples)
    words = task.show(examples, outcome, 1)
    for look, rows in words.rows.items():
        assert len(rows) <= outcome.weights[look].shape[1]
        assert 0 < len(words.columns[look]) <= outcome.weights[look].shape[2]
        assert all(rows)


@covers(task=("sort",))
def test_numbers_are_sorted() -> None:
    examples = drawn(TASKS["sort"])
    for row, numbers in enumerate(examples.inputs["items"][..., 0].tolist()):
        assert [numbers[place] for place in examples.targets[row].tolist()] == sorted(numbers)
        assert [only(step) for step in examples.sources[""][row]] == [[x] for x in examples.targets[row].tolist()]


@covers(task=("hull",))
def test_hulls_are_those_of_scipy() -> None:
    examples = drawn(TASKS["hull"])
    for row in range(COUNT):
        points = examples.inputs["items"][row, examples.inputs["mask"][row]]
        found = ConvexHull(points.numpy())
        corners = [int(corner) for corner in found.vertices]
        first = min(range(len(corners)), key=lambda place: float(points[corners[place], 0]))
        expected = [corner + 1 for corner in corners[first:] + corners[:first]] + [hull.STOP]
        asked = examples.targets[row][examples.targets[row] >= 0].tolist()
        assert asked == expected
        whole = hull.area(points.unsqueeze(0), torch.tensor([asked[:-1]]) - 1)
        assert float(whole) == pytest.approx(found.volume, abs=1e-6)


def test_the_area_of_what_was_answered_by_hand() -> None:
    """The unit square, of which three corners are named: half of it."""
    square = torch.tensor([[[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]])
    assert hull.area(square, torch.tensor([[0, 1, 2, 3]])).tolist() == [1.0]
    assert hull.area(square, torch.tensor([[0, 1, 2, -1]])).tolist() == [0.5]


@pytest.mark.parametrize(("name", "say"), [("reverse", lambda text: text[::-1]), ("shift", lambda text: text[1:])])
@covers(task=("reverse", "shift"))
def test_letters_are_written_in_the_other_order(name: str, say: "object") -> None:
    assert callable(say)
    examples = drawn(TASKS[name])
    for row in range(COUNT):
        source = "".join(order.SYMBOLS[x] for x in examples.inputs["source"][row].tolist() if x)
        asked = examples.targets[row] >= 0
        assert "".join(order.SYMBOLS[x] for x in examples.targets[row][asked].tolist()) == say(source) + "∎"
        places = [only(step) for step in examples.sources[""][row][asked]]
        assert "".join(source[place] for (place,) in places[:-1]) == say(source)
        assert places[-1] == []


@covers(task=("dates",))
def test_dates_are_written_as_numbers() -> None:
    examples = drawn(TASKS["dates"])
    for row in range(COUNT):
        source = "".join(dates.LETTERS[x] for x in examples.inputs["source"][row].tolist() if x)
        said = "".join(dates.WRITTEN[x] for x in examples.targets[row].tolist())
        date = datetime.date.fromisoformat(said)
        marked = ["".join(source[place] for place in only(step)) for step in examples.sources[""][row]]
        assert marked[:4] == list(str(date.year))
        assert marked[4] == marked[7] == ""
        name = dates.MONTHS[date.month - 1]
        assert marked[5] == marked[6]
        assert marked[5] in {name, name[:3], str(date.month)}
        assert marked[8] == marked[9] == str(date.day)


def test_a_date_by_hand() -> None:
    text, places = dates.write(datetime.date(2015, 3, 9), "{weekday}, {day} {month} {year}")
    assert text == "Monday, 9 March 2015"
    assert {part: text[place.start : place.stop] for part, place in places.items()} == {
        "weekday": "Monday", "day": "9", "month": "March", "year": "2015",
    }  # fmt: skip


@covers(task=("copy",))
def test_copies_stand_one_further() -> None:
    for split, length in (("50", 50), ("200", 200)):
        examples = drawn(TASKS["copy"], split, 5)
        source, targets = examples.inputs["source"], examples.targets
        assert targets.shape == (5, length + 1)
        assert source[:, 1:-1].equal(targets[:, :-1])
        assert bool((targets[:, -1] == 0).all())
        assert bool((examples.sources[""].float().argmax(-1) == torch.arange(1, length + 2)).all())


@covers(task=("matching", "two-matches"))
def test_tokens_that_match_are_two() -> None:
    signs, other = pairs(COUNT, torch.Generator().manual_seed(1))
    for row, places in zip(signs.tolist(), other.tolist(), strict=True):
        for place, sign in enumerate(row):
            assert [at for at in range(len(row)) if row[at] == sign and at != place] == [places[place]]
    for name in ("matching", "two-matches"):
        examples = drawn(TASKS[name])
        symbols = examples.inputs["symbols"]
        others = [examples.sources[""].int().argmax(-1)] if name == "matching" else examples.inputs["others"].unbind(1)
        for number, places in enumerate(others):
            assert symbols[..., number].gather(1, places).equal(symbols[..., number])
            asked = examples.targets[:, 12 * number : 12 * number + 12]
            assert symbols[..., -1].gather(1, places).equal(asked)
    for number, row in enumerate(others[0].tolist()):
        for place, first in enumerate(row):
            both = sorted({first, int(others[1][number, place])})
            assert [only(examples.sources[look][number, place]) for look in ("head 1", "head 2")] == [both, both]


def test_heads_may_share_two_questions_either_way() -> None:
    """Heads that look where the other one should are as good; a head that finds its place every second time is half."""
    examples = drawn(TASKS["two-matches"])
    first, second = (recurrent.marks(places, 12).float() for places in examples.inputs["others"].unbind(1))
    logits = torch.zeros(COUNT, 24, 10)

    def judged(one: Tensor, other: Tensor) -> float:
        outcome = Outcome(logits=logits, weights={"head 1": one, "head 2": other})
        return matching.judge_two(outcome, examples)["pointed"]

    assert judged(first, second) == judged(second, first) == 1.0
    half = torch.where(torch.arange(12).unsqueeze(1) < 6, first, torch.eye(12))
    assert judged(half, second) == pytest.approx(0.75)


@pytest.mark.parametrize("most", [1, 2, 3])
@covers(task=("one-fact", "two-facts", "three-facts"))
def test_questions_are_answered_by_their_facts(most: int) -> None:
    """Read as a person would, from the last fact back."""
    examples = stories.drawn(most)("test", COUNT, torch.Generator().manual_seed(most))
    for row in range(COUNT):
        facts = [[stories.WORDS[word] for word in fact] for fact in examples.inputs["facts"][row].tolist()]
        kind, what = (stories.WORDS[word] for word in examples.inputs["question"][row].tolist())
        said, path = read_back(facts, kind, what)
        assert stories.WORDS[int(examples.targets[row, 0])] == said
        assert [only(examples.sources[f"hop {hop + 1}"][row, 0]) for hop in range(most)] == [[at] for at in path]


def read_back(facts: list[list[str]], kind: str, what: str) -> tuple[str, list[int]]:
    """The answer, and the facts that lead to it."""
    path: list[int] = []
    while True:
        for at, (who, does, something) in reversed(list(enumerate(facts))):
            if does == "went to the" and who == what and kind == "where is":
                return something, [*path, at]
            if something == what and does == "took the":
                path.append(at)
                if kind == "who took the":
                    return who, path
                what = who
                break
            if who == what and does == "is in the":
                path.append(at)
                if kind == "what holds the":
                    return something, path
                what = something
                break
        else:
            raise AssertionError(f"nothing is said of {what}")


@covers(task=("planted-sentence",))
def test_one_sentence_has_a_cue() -> None:
    examples = drawn(TASKS["planted-sentence"], count=200)
    for row, text in enumerate(examples.inputs["words"].tolist()):
        sentences = [[planted.word_of(word) for word in one if word] for one in text]
        cued = [place for place, one in enumerate(sentences) if any(word.startswith("CUE") for word in one)]
        assert cued == only(examples.sources["sentence"][row, 0])
        sides = [[word[:-1] for word in one if word[0] in "GB"] for one in sentences if one]
        assert all(len(one) == 1 for one in sides)
        assert sides[cued[0]] == [("BAD", "GOOD")[int(examples.targets[row, 0])]]
        told = [sentences[cued[0]][place][0] for place in only(examples.sources["word"][row, cued[0]])]
        assert sorted(told) in (["B", "C"], ["C", "G"])
    assert 0.4 < float(examples.targets.float().mean()) < 0.6


@covers(task=("aspects",))
def test_ratings_are_the_sum_of_opinions() -> None:
    examples = drawn(TASKS["aspects"])
    for row in range(COUNT):
        user, item = (
            [aspects.word_of(x) for x in examples.inputs[name][row].tolist() if x] for name in ("user", "item")
        )
        wanted = [word[:-1] for word in user if word.endswith("?")]
        said = {word[:-1]: 1 if word.endswith("+") else -1 for word in item if word[-1] in "+−"}
        assert (len(wanted), len(said)) == (2, 4)
        assert float(examples.targets[row, 0]) == sum(said.get(aspect, 0) for aspect in wanted)
        assert [user[place][:-1] for place in only(examples.sources["user"][row, 0])] == wanted
        assert [item[place][:-1] for place in only(examples.sources["item"][row, 0])] == list(said)


@covers(task=("preferences",))
def test_one_item_of_a_history_is_of_the_genre() -> None:
    examples = drawn(TASKS["preferences"])
    for row in range(COUNT):
        genre = int(preferences.LIKES[examples.inputs["user"][row]])
        history = examples.inputs["history"][row]
        genres = examples.inputs["genres"][row]
        assert all(len(set(parts)) == preferences.PARTS for parts in genres.tolist())
        has = [genre in parts for parts in genres.tolist()]
        assert [place for place, one in enumerate(has) if one] == only(examples.sources["item"][row, 0])
        (place,) = only(examples.sources["item"][row, 0])
        (part,) = only(examples.sources["component"][row, place])
        assert int(genres[place, part]) == genre
        candidates = examples.inputs["candidates"][row]
        taken = candidates[int(examples.targets[row, 0])]
        assert int(preferences.ITEM_STYLES[taken]) == int(preferences.ITEM_STYLES[history[place]])
        assert preferences.ITEM_STYLES[candidates].tolist() == list(range(preferences.STYLES))
        seen = examples.inputs["components"][row, place, part] - preferences.looks()[genre]
        assert float(seen.norm()) < 1.0


@pytest.mark.skipif("visits" not in HERE, reason="HEEDFUL_DATA is not set: the ontology is not at hand")
@covers(task=("visits",))
def test_visits_follow_the_ontology() -> None:
    tree, examples = visits.ontology(), TASKS["visits"].draw("test", 2000, torch.Generator().manual_seed(0))
    codes = examples.inputs["codes"]
    kinds = tree.kind[codes]
    assert kinds[:, 0].equal(kinds[:, 1])
    assert 0.8 < float((tree.after[kinds[:, 0]] == examples.targets[:, 0]).float().mean()) < 0.9
    marks = examples.sources[""]
    assert not marks[:, 2].any()
    for row in range(20):
        (place,) = only(marks[row, 0])
        node = int(tree.ancestors[codes[row, 0], place])
        same = {int(tree.ancestors[code, tree.planted[code]]) for code in (tree.kind == kinds[row, 0]).nonzero()[:, 0]}
        assert same == {node}
    learned, _, seen = visits.training()
    for code in codes[:20, 0].tolist():
        assert int(seen[code]) == int((learned[:, :2] == code).sum())


@covers(task=("correction",))
def test_sentences_are_corrected() -> None:
    """What the source says with its mistakes, word by word; held-out misspellings are never drawn in training."""
    wrong: dict[str, set[str]] = {"train": set(), "test": set()}
    for split, forms in wrong.items():
        examples = drawn(TASKS["correction"], split)
        for row in range(COUNT):
            source = ["".join(correction.LETTERS[x] for x in word if x)[1:-1] for word in
                      examples.inputs["letters"][row].tolist() if any(word)]  # fmt: skip
            targets, kinds = examples.targets[row], examples.inputs["kinds"][row]
            steps = [step for step in range(correction.STEPS) if int(kinds[step]) >= 0]
            assert int(targets[len(steps)]) == correction.END
            came_from = [source[only(examples.sources["word"][row, step])[0]] for step in steps]
            for step, given in zip(steps, came_from, strict=True):
                word, kind = correction.KNOWN[int(targets[step])], int(kinds[step])
                if kind == correction.PLAIN:
                    assert given == word
                elif kind == correction.MISSPELT:
                    assert given != word
                    assert distance(given, word) <= 2
                    forms.add(given)
                elif kind == correction.DROPPED:
                    assert word == "the"
                    assert given != "the"
                else:
                    begin = correction.STEPS + step * correction.WRITTEN
                    spelt = targets[begin : begin + correction.WRITTEN]
                    letters = "".join(correction.LETTERS[x] for x in spelt.tolist() if x > 0)
                    assert letters == f"{given}∎"
                    marks = examples.sources["letter"][row, begin - correction.STEPS :][: len(letters)]
                    assert ["".join(f"^{given}∎"[place] for place in only(step)) for step in marks] == list(letters)
    assert len(wrong["train"]) > 20
    assert not wrong["train"] & wrong["test"]


def distance(one: str, other: str) -> int:
    """Letters to be left out, put in or changed."""
    rows = {(i, 0): i for i in range(len(one) + 1)} | {(0, j): j for j in range(len(other) + 1)}
    for i, j in itertools.product(range(1, len(one) + 1), range(1, len(other) + 1)):
        rows[i, j] = min(rows[i - 1, j] + 1, rows[i, j - 1] + 1, rows[i - 1, j - 1] + (one[i - 1] != other[j - 1]))
    return rows[len(one), len(other)]


@ENTRANTS
def test_every_network_is_kept_and_found_again(name: str, entrant: str, tmp_path: Path) -> None:
    first, other = (make(TASKS[name].entrant(entrant), seed) for seed in (0, 1))
    save_tensors(tmp_path / "network.safetensors", first.state_dict())
    other.load_state_dict(load_tensors(tmp_path / "network.safetensors", StoreError)[0])
    for found, expected in zip(other.parameters(), first.parameters(), strict=True):
        assert found.equal(expected)
