"""Norms of value vectors and values at zero, by hand and beside a BERT that is read position by position."""

import math

import pytest
import torch
from torch import nn

import heedful
from heedful.explainers import EXPLAINERS, explain_all
from heedful.explainers.values import by_head, mixed_norms
from tests.covering import covers
from tests.explainers.test_attention import TEXTS, folded, reading_of, rows
from tests.oracles import explaining as oracle
from tests.oracles.transformer_passes import double
from tests.tiny_transformers import FAMILIES, made, tiny

pytestmark = pytest.mark.usefixtures("one_thread")


def test_norms_by_hand() -> None:
    """Two heads of one feature, (3, 4) and (1, 0), weights ½ ½ and 1 0, and a projection that doubles the second."""
    weights = torch.tensor([[[[0.5, 0.5], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]]])
    values, out = torch.tensor([[[3.0, 4.0], [1.0, 0.0]]]), torch.diag(torch.tensor([1.0, 2.0]))
    found = mixed_norms(weights, values, out, torch.tensor([[1.0, 0.0]]).double())
    assert found.tolist() == [pytest.approx([math.hypot(1.5, 8), 0.5])]
    mean = mixed_norms(weights, values, out, torch.tensor([[0.5, 0.5]]).double())
    assert mean.tolist() == [pytest.approx([math.hypot(1.5, 8) / 2, 0.25 + 0.5])]


def test_several_heads_may_share_values() -> None:
    shared = by_head(torch.tensor([[[1.0, 2.0]]]), 1, 4)
    assert shared.flatten().tolist() == [1, 1, 2, 2]


@covers(explainer=("norms", "value_zeroing"))
def test_a_bert_position_by_position() -> None:
    reading, state = reading_of("bert"), double(tiny("bert")[0].state_dict())
    names = ["norms", "norms@0", "value_zeroing@0", "value_zeroing@1", "value_zeroing"]
    found = explain_all(reading, names)
    for row in range(len(TEXTS)):
        numbers = reading.pieces.of_row(row).tolist()
        blocks = oracle.bert_blocks(state, numbers)
        zeroed = [oracle.value_zeroing(state, numbers, layer) for layer in (0, 1)]
        expected = [oracle.norms(state, layer, blocks[layer], 0) for layer in (1, 0)]
        expected += [zeroed[0][0], zeroed[1][0], oracle.product(zeroed[1], zeroed[0])[0]]
        for one, values in zip(found, expected, strict=True):
            assert rows(one)[row] == pytest.approx(folded(reading, row, values), rel=1e-4, abs=1e-5)
    pieces = len(reading.pieces.numbers)
    assert [one.passes for one in found[:2]] == [2 * len(TEXTS)] * 2
    assert found[4].passes == pieces + 2 * len(TEXTS)
    assert found[2].passes == math.ceil(pieces / 2) + 2 * len(TEXTS)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_has_values(family: str) -> None:
    """That they are the right ones is proved on the first text: weights times values is what goes on."""
    found = explain_all(reading_of(family), ["norms", "value_zeroing"])
    assert all((one.scores >= 0).all() and one.scores.sum() > 0 for one in found)


def test_values_that_are_not_what_goes_on_are_refused() -> None:
    """A projection of values that is used otherwise, and one that has another name."""
    model, tokenizer = made("bert")
    own = model.bert.encoder.layer[0].attention.self
    own.value = nn.Sequential(own.value, nn.Tanh())
    reading = heedful.subject(model, tokenizer, name="odd").read(TEXTS)
    assert EXPLAINERS["norms"].why_not(reading) == "Where a block of odd makes its value vectors is not known."
    model, tokenizer = made("bert")
    own = model.bert.encoder.layer[1].attention.output
    own.dense.register_forward_pre_hook(lambda _, given: (given[0] * 1.5,))
    reading = heedful.subject(model, tokenizer, name="odd").read(TEXTS)
    assert EXPLAINERS["value_zeroing"].why_not(reading) == (
        "The attention of odd times its value vectors is not what it goes on with."
    )
    assert EXPLAINERS["attention"].why_not(reading) == ""


def test_values_of_no_transformer_are_not_there() -> None:
    reading = heedful.subject(lambda texts: [0.5] * len(texts)).read(["a"])
    assert EXPLAINERS["value_zeroing"].why_not(reading) == "it needs a classifier of the transformers library."
