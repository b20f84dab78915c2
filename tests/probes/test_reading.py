"""Input-level erasure beside a literal loop, and beside attention-level erasure where the two must be the same."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from heedful.analysis.erasure import first_flips
from heedful.analysis.flips import Grid
from heedful.analysis.quality import compare_levels
from heedful.analysis.rankings import ranked
from heedful.config import ModelSettings
from heedful.errors import InputError, UnknownName
from heedful.models.classifier import Classifier, make_classifier
from heedful.probes.reading import flips_by_level, input_flips
from heedful.text.corpus import Split
from heedful.text.ragged import Batch, Sentences, offsets_of
from heedful.text.tokenize import Tokens
from heedful.tracing import trace
from heedful.training.loop import limited_threads
from tests.models.test_classifier import make_model

Documents = list[list[list[int]]]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Models this small are slowed by threads that wait for each other."""
    with limited_threads(1):
        yield


def a_model(structure: str, encoder: str, classes: int = 3, seed: int = 3) -> Classifier:
    """Untrained, with a bias and parameters large enough that decisions flip here and there."""
    settings: dict[str, Any] = {"structure": structure, "encoder": encoder, "attention": "additive", "score_scale": 1.0}
    chosen = ModelSettings.of({"embedding_size": 4, "hidden_size": 6, "readout_bias": True, **settings})
    model = make_classifier(make_model(classes).interface, chosen, torch.Generator().manual_seed(seed))
    generator = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        model.embedding.normal_(0, 2, generator=generator)
        model.readout_weight.normal_(0, 3, generator=generator)
        assert model.readout_bias is not None
        usual = torch.stack([model(as_batch(document)).logits[0] for document in documents(20, seed=9)]).mean(0)
        model.readout_bias.sub_(usual - 0.3 * torch.randn(classes, generator=generator))  # no class is favoured much
    return model


def documents(count: int = 16, seed: int = 0) -> Documents:
    """Of one to four sentences of one to four words, w0 … w8 (1 … 9 in the vocabulary)."""
    rng = np.random.default_rng(seed)
    return [[rng.integers(1, 10, rng.integers(1, 5)).tolist() for _ in range(rng.integers(1, 5))] for _ in range(count)]


def as_split(found: Documents) -> Split:
    """Each sentence on a line of its own, each word two characters wide."""
    texts = ["\n".join(" ".join(f"w{word - 1}" for word in line) for line in document) for document in found]
    words = [word for document in found for line in document for word in line]
    lengths = torch.tensor([sum(map(len, document)) for document in found])
    spans = [[3 * place, 3 * place + 2] for length in lengths.tolist() for place in range(length)]
    tokens = Tokens(
        numbers=torch.tensor(words), offsets=offsets_of(lengths), spans=torch.tensor(spans, dtype=torch.int32)
    )
    return Split(texts=texts, labels=torch.zeros(len(found), dtype=torch.int64), tokens=tokens)


def as_batch(document: list[list[int]]) -> Batch:
    words = torch.tensor([word for line in document for word in line])
    return Batch(
        tokens=words,
        offsets=torch.tensor([0, len(words)]),
        labels=torch.zeros(1, dtype=torch.int64),
        instances=torch.zeros(1, dtype=torch.int64),
        sentences=Sentences(
            bounds=offsets_of(torch.tensor([len(line) for line in document])), offsets=torch.tensor([0, len(document)])
        ),
    )


def literal_flips(model: Classifier, found: Documents, order: list[list[int]], mode: str) -> list[int | None]:
    """One document, one unit after the other, the whole model each time."""
    model = model.double()
    flips: list[int | None] = []
    for document, units in zip(found, order, strict=True):
        parts = document if model.hierarchical else [[word] for line in document for word in line]
        before = int(model(as_batch(parts)).logits.argmax())
        flips.append(None)
        for count in range(1, len(parts) + 1):
            gone = set(units[:count])
            left = [[0] * len(part) if place in gone else part for place, part in enumerate(parts)]
            if mode == "delete":
                left = [part for place, part in enumerate(parts) if place not in gone]
            after = int(model(as_batch(left)).logits.argmax()) if left else int(model.bias().argmax())
            if after != before:
                flips[-1] = count
                break
    model.float()
    return flips


def orders(model: Classifier, split: Split, by: str) -> list[list[int]]:
    """The positions of each document from the most important on."""
    found = trace(model, split)
    units = ranked(found, by)
    return [
        (units[begin:end] - begin).tolist()
        for begin, end in zip(found.offsets[:-1].tolist(), found.offsets[1:].tolist(), strict=True)
    ]


def counts(table: pd.DataFrame) -> list[int | None]:
    return [None if pd.isna(erased) else int(erased) for erased in table["erased"]]


@pytest.mark.parametrize("mode", ["delete", "mask"])
@pytest.mark.parametrize("encoder", ["none", "gru", "conv"])
@pytest.mark.parametrize("structure", ["flat", "hierarchical"])
def test_flips_are_those_of_a_literal_loop(structure: str, encoder: str, mode: str) -> None:
    model, found = a_model(structure, encoder), documents()
    split = as_split(found)
    for by in ("attention", "product"):
        expected = literal_flips(model, found, orders(model, split, by), mode)
        assert counts(input_flips(model, split, by, mode=mode)) == expected
        assert len(set(expected)) > 2  # some early, some late: a loop that never flips would show nothing


@pytest.mark.parametrize("structure", ["flat", "hierarchical"])
@pytest.mark.parametrize("by", ["attention", "gradient", "product", "random", "margin"])
def test_without_an_encoder_deleting_is_erasing(structure: str, by: str) -> None:
    model, split = a_model(structure, "none"), as_split(documents(60, seed=1))
    pd.testing.assert_frame_equal(
        input_flips(model, split, by, seed=5), first_flips(trace(model, split), by=by, seed=5), rtol=1e-12
    )


def test_the_two_notions_are_one_without_an_encoder_and_two_with_one() -> None:
    split = as_split(documents(60, seed=2))
    same = compare_levels(flips_by_level(a_model("flat", "none"), split, modes=["delete"]))
    assert same["ranking"].tolist() == ["attention", "gradient", "product", "random"]
    assert same["equal"].tolist() == [1.0] * 4
    assert same["correlation"].tolist() == pytest.approx([1.0] * 4)
    assert same["input_sooner"].tolist() == [0.0] * 4
    assert (same["median_fraction_input"] == same["median_fraction_attention"]).all()
    flips = flips_by_level(a_model("flat", "gru"), split, rankings=("attention",), modes=["delete"])
    other = compare_levels(flips).iloc[0]
    assert 0 < other["equal"] < 1
    assert other["correlation"] < 1


def test_a_row_of_the_comparison_by_hand() -> None:
    split = as_split(documents(60, seed=2))
    model = a_model("flat", "gru")
    row = compare_levels(flips_by_level(model, split, rankings=("gradient",), modes=["mask"])).iloc[0]
    long = split.lengths.numpy() > 1
    one = input_flips(model, split, "gradient", mode="mask")[long]["erased"]
    two = first_flips(trace(model, split), by="gradient")[long]["erased"]
    both = one.notna() & two.notna()
    assert (row["instances"], row["both"]) == (long.sum(), both.sum())
    assert (row["never_input"], row["never_attention"]) == (one.isna().sum(), two.isna().sum())
    assert row["correlation"] == pytest.approx(one[both].astype(float).rank().corr(two[both].astype(float).rank()))
    assert row["equal"] == pytest.approx(((one == two).fillna(False) | (one.isna() & two.isna())).mean())


def test_mass_and_fraction_are_those_of_the_removed_units() -> None:
    model, split = a_model("flat", "conv"), as_split(documents())
    found, table = trace(model, split), input_flips(model, split, "gradient")
    for row, order in enumerate(orders(model, split, "gradient")):
        erased = table["erased"][row]
        if pd.isna(erased):
            assert np.isnan(table["mass"][row])
            assert np.isnan(table["fraction"][row])
        else:
            weights = found.attention_weights[found.instance(row)]
            assert table["mass"][row] == pytest.approx(float(weights[order[:erased]].sum()))
            assert table["fraction"][row] == erased / len(weights)


def test_the_looks_of_a_grid() -> None:
    assert Grid().sizes(3) == [1, 2, 3]
    assert Grid(steps=4).sizes(10) == [3, 5, 8, 10]
    assert Grid(steps=10).sizes(100) == [10, 20, 30, 40, 50, 60, 70, 80, 90, 100]
    assert Grid(steps=5, spacing="geometric").sizes(10_000) == [1, 10, 100, 1_000, 10_000]
    assert Grid(steps=1, spacing="geometric").sizes(7) == [1, 7]
    assert Grid(steps=7).sizes(7) == list(range(1, 8))


@pytest.mark.parametrize("spacing", ["even", "geometric"])
def test_with_a_grid_the_first_look_that_shows_a_flip_counts(spacing: str) -> None:
    model, found = a_model("flat", "gru"), documents(12, seed=4)
    split = as_split(found)
    table = input_flips(model, split, steps=3, spacing=spacing)
    model = model.double()
    for document, order, erased in zip(found, orders(model, split, "attention"), counts(table), strict=True):
        words = [word for line in document for word in line]
        before = int(model(as_batch([words])).logits.argmax())
        shown = None
        for size in Grid(steps=3, spacing=spacing).sizes(len(words)):
            left = [word for place, word in enumerate(words) if place not in order[:size]]
            after = int(model(as_batch([left])).logits.argmax()) if left else int(model.bias().argmax())
            shown = size if shown is None and after != before else shown
        assert erased == shown


def test_both_notions_look_at_the_same_sizes() -> None:
    split = as_split(documents(60, seed=2))
    flips = flips_by_level(a_model("flat", "none"), split, steps=3, rankings=("attention", "random"), modes=["delete"])
    assert compare_levels(flips)["equal"].tolist() == [1.0, 1.0]


def test_every_level_has_the_table_of_its_own_function() -> None:
    """And the documents keep their numbers at each."""
    model, split, rows = a_model("flat", "gru"), as_split(documents(20, seed=2)), [7, 3, 11]
    told: list[tuple[int, int]] = []
    flips = flips_by_level(
        model, split, rankings=("gradient", "random"), rows=rows, seed=5, watch=lambda *at: told.append(at)
    )

    def table(level: str, by: str) -> pd.DataFrame:
        rows = flips[(flips["level"] == level) & (flips["ranking"] == by)]
        return rows.drop(columns=["level", "ranking"]).reset_index(drop=True)

    whole = first_flips(trace(model, split), by="gradient").set_index("instance").loc[rows].reset_index()
    pd.testing.assert_frame_equal(table("attention", "gradient"), whole)
    for mode in ("delete", "mask"):
        expected = input_flips(model, split, "random", mode=mode, rows=rows, seed=5)
        pd.testing.assert_frame_equal(table(mode, "random"), expected)
    assert told == [(done, 6) for done in range(1, 7)]


def test_some_documents_keep_their_numbers() -> None:
    model, split = a_model("hierarchical", "gru"), as_split(documents())
    whole = input_flips(model, split, "attention").set_index("instance")
    some = input_flips(model, split, "attention", rows=[7, 3]).set_index("instance")
    assert some.index.tolist() == [7, 3]
    assert some["erased"].tolist() == whole.loc[[7, 3], "erased"].tolist()


def test_what_cannot_be_asked_is_said() -> None:
    model, split = a_model("flat", "none"), as_split(documents(3))
    with pytest.raises(UnknownName, match="no mode of input erasure 'drop'"):
        input_flips(model, split, mode="drop")
    with pytest.raises(UnknownName, match="no spacing 'log'"):
        input_flips(model, split, spacing="log")
    with pytest.raises(InputError, match="steps must be 1 or more"):
        input_flips(model, split, steps=0)
    with pytest.raises(InputError, match="documents from 0 to 2; got 9"):
        input_flips(model, split, rows=[0, 9])
    with pytest.raises(InputError, match="got none"):
        input_flips(model, split, rows=[])
    with pytest.raises(UnknownName, match="no ranking 'atention'"):
        input_flips(model, split, "atention")
