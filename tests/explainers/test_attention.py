"""Attention of transformers: by hand, by literal forward passes of a tiny BERT, and families of every kind."""

import copy
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor

import heedful
from heedful.adapters.asking import SubjectError
from heedful.adapters.pieces import PieceReading
from heedful.errors import InputError
from heedful.explainers import explain_all, possible
from heedful.explainers.attention import effects, effects_rolled, layers_mean, rolled, special_share, weights_of
from heedful.explainers.listening import Heard, listening, reads_of
from tests.covering import covers
from tests.oracles import explaining as oracle
from tests.oracles.transformer_passes import double
from tests.tiny_transformers import FAMILIES, made, tiny

pytestmark = pytest.mark.usefixtures("one_thread")

TEXTS = [
    "a good film!",
    'Déjà vu... filming 😀 a GOOD one, "well-made!"',
    "bad",
    "good good film good",
    "the film is dull",
]
INSIDE = ["attention", "attention_layers", "rollout", "attention_gradient", "attention_gradient_rollout"]
LOOKING = [*INSIDE, "norms", "value_zeroing"]


@cache
def reading_of(family: str) -> PieceReading:
    found = heedful.subject(*tiny(family), name=family).read(TEXTS)
    assert isinstance(found, PieceReading)
    return found


def rows(found: heedful.Explanation) -> list[list[float]]:
    return [part.tolist() for part in found.scores.split(found.lengths.tolist())]


def folded(reading: PieceReading, row: int, values: list[float]) -> list[float]:
    """The sums over the pieces of each unit of a text."""
    own = slice(int(reading.pieces.offsets[row]), int(reading.pieces.offsets[row + 1]))
    found = [0.0] * int(reading.units.lengths[row])
    for owner, value in zip(reading.pieces.owners[own].tolist(), values, strict=True):
        if owner >= 0:
            found[owner] += value
    return found


def by_hand(*layers: list[list[list[float]]], reads: list[float]) -> Heard:
    """One text of two pieces, the heads of each layer as matrices, with a probability that is Σ c A, c = 1, 2, …"""
    attention = tuple(torch.tensor([layer]).double().requires_grad_() for layer in layers)
    told = sum(((torch.arange(one.numel()) + 1).view_as(one) * one).sum() for one in attention)
    assert isinstance(told, Tensor)
    own, where = torch.tensor([reads]).double(), torch.arange(len(reads))[None]
    return Heard(rows=torch.zeros(1, dtype=torch.int64), where=where, attention=attention, reads=own, chosen=told[None])


def test_one_layer_with_one_head_by_hand() -> None:
    heard, again = (by_hand([[[0.2, 0.8], [0.6, 0.4]]], reads=[1.0, 0.0]) for _ in range(2))
    for flow in (weights_of(None, None), weights_of(0, 0), layers_mean):
        assert flow(heard).tolist() == [pytest.approx([0.2, 0.8])]
    assert rolled(heard).tolist() == [pytest.approx([0.6, 0.4])]  # ½ (.2 + 1), ½ .8
    assert effects(heard).tolist() == [pytest.approx([1 * 0.2 + 3 * 0.6, 2 * 0.8 + 4 * 0.4])]
    assert effects_rolled(again).tolist() == [pytest.approx([0.2, 1.6])]
    mean = by_hand([[[0.2, 0.8], [0.6, 0.4]]], reads=[0.5, 0.5])
    assert weights_of(None, None)(mean).tolist() == [pytest.approx([0.4, 0.6])]


def test_two_layers_by_hand() -> None:
    layers = [[[0.5, 0.5], [1.0, 0.0]]], [[[0.2, 0.8], [0.6, 0.4]]]
    heard, again = (by_hand(*layers, reads=[1.0, 0.0]) for _ in range(2))
    assert rolled(heard).tolist() == [pytest.approx([0.6 * 0.75 + 0.4 * 0.5, 0.6 * 0.25 + 0.4 * 0.5])]
    assert weights_of(0, None)(heard).tolist() == [pytest.approx([0.5, 0.5])]
    assert layers_mean(heard).tolist() == [pytest.approx([0.35, 0.65])]
    first, second = [[0.5, 1.0], [3.0, 0.0]], [[0.2, 1.6], [1.8, 1.6]]  # A ∂p/∂A
    assert effects(heard).tolist() == [pytest.approx([0.5 + 3 + 0.2 + 1.8, 1 + 0 + 1.6 + 1.6])]
    through = [1 + second[0][0], second[0][1]]
    expected = [through[j] + sum(through[k] * first[k][j] for k in range(2)) for j in range(2)]
    assert effects_rolled(again).tolist() == [pytest.approx([expected[0] - 1, expected[1]])]


@covers(explainer=("attention", "attention_layers", "rollout"))
def test_a_bert_position_by_position() -> None:
    reading, state = reading_of("bert"), double(tiny("bert")[0].state_dict())
    names = ["attention", "attention@0", "attention@1.0", "attention_layers", "rollout"]
    found = [rows(one) for one in explain_all(reading, names)]
    for row in range(len(TEXTS)):
        blocks = oracle.bert_blocks(state, reading.pieces.of_row(row).tolist())
        means = [oracle.heads_mean(block) for block in blocks]
        both = [(a + b) / 2 for a, b in zip(means[0][0], means[1][0], strict=True)]
        expected = [means[1][0], means[0][0], blocks[1].attention[0][0], both, oracle.rollout(means)[0]]
        for own, values in zip(found, expected, strict=True):
            assert own[row] == pytest.approx(folded(reading, row, values), abs=1e-5)


def nudged(family: str, layer: int, head: int, place: tuple[int, int], by: float) -> Tensor:
    """What a BERT says of the first text when one weight of its attention is another, in double precision."""
    model = copy.deepcopy(tiny(family)[0]).double().eval()
    model.set_attn_implementation("eager")
    own = model.bert.encoder.layer[layer].attention.self
    usual = own.dropout.p
    assert usual >= 0
    numbers = reading_of(family).pieces.of_row(0)[None]

    def change(part: Any, given: Any, told: Any) -> Any:
        weights = told[1].clone()
        weights[0, head, place[0], place[1]] += by
        values = part.value(given[0]).view(1, numbers.shape[1], 2, -1).transpose(1, 2)
        return (weights @ values).transpose(1, 2).reshape(told[0].shape), weights

    own.register_forward_hook(change)
    with torch.no_grad():
        said: Tensor = model(input_ids=numbers).logits[0].softmax(0)
    return said


@covers(explainer=("attention_gradient", "attention_gradient_rollout"))
def test_gradients_of_attention_are_those_of_finite_differences() -> None:
    reading = reading_of("bert")
    targets, heard = reading.decisions, None
    for one in listening(reading, targets, torch.tensor([0]), gradients=True):
        heard = one
    assert heard is not None
    grown = torch.autograd.grad(heard.chosen.sum(), heard.attention, retain_graph=True)
    for layer, head, place in [(0, 0, (1, 2)), (0, 1, (3, 0)), (1, 0, (0, 2)), (1, 1, (0, 5)), (1, 1, (2, 5))]:
        up, down = (nudged("bert", layer, head, place, by) for by in (1e-4, -1e-4))
        slope = float((up - down)[targets[0]]) / 2e-4
        assert float(grown[layer][0, head, place[0], place[1]]) == pytest.approx(slope, abs=1e-6)
    found, rolled_out = explain_all(reading, ["attention_gradient", "attention_gradient_rollout"])
    taken = [(a * g).sum((0, 1, 2)) for a, g in zip(heard.attention, grown, strict=True)]
    assert rows(found)[0] == pytest.approx(folded(reading, 0, (taken[0] + taken[1]).tolist()), abs=1e-6)
    positive = [(a * g).clamp(min=0).mean(1)[0].tolist() for a, g in zip(heard.attention, grown, strict=True)]
    flows = oracle.product(plus_one(positive[1]), plus_one(positive[0]))[0]
    assert rows(rolled_out)[0] == pytest.approx(folded(reading, 0, [flows[0] - 1, *flows[1:]]), abs=1e-6)


def plus_one(matrix: list[list[float]]) -> list[list[float]]:
    return [[value + (i == j) for j, value in enumerate(row)] for i, row in enumerate(matrix)]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_gives_its_attention(family: str) -> None:
    """Emoji, one word, repeated words; units and special tokens share what there is."""
    reading = reading_of(family)
    assert set(LOOKING) <= set(possible(reading))
    for by in ("attention", "attention_layers", "rollout"):
        found = heedful.explain(reading, by=by)
        units = torch.zeros(len(TEXTS)).double().index_add_(0, found.segments, found.scores)
        torch.testing.assert_close(units, 1 - special_share(reading, by), rtol=0, atol=1e-5)
        assert (found.scores >= 0).all()
        assert found.passes == len(TEXTS)
        share = float(special_share(reading, by).mean())
        assert found.remark == (
            f"Special tokens hold {share:.0%} of it in the mean, which is left out." if share else ""
        )


READ = {"llama": -1} | dict.fromkeys(set(FAMILIES) - {"llama"}, 0)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_position_that_the_head_reads_is_found(family: str) -> None:
    for heard in listening(reading_of(family), torch.zeros(len(TEXTS), dtype=torch.int64)):
        expected = torch.zeros_like(heard.reads)
        expected[:, READ[family]] = 1
        assert torch.equal(heard.reads, expected)


def test_a_head_that_reads_the_mean_reads_all_positions() -> None:
    model, tokenizer = made("modernbert")
    model.config.classifier_pooling = "mean"
    reading = heedful.subject(model, tokenizer).read(TEXTS)
    for heard in listening(reading, torch.zeros(len(TEXTS), dtype=torch.int64)):
        torch.testing.assert_close(heard.reads, torch.full_like(heard.reads, 1 / heard.reads.shape[1]))
        mean = heard.attention[-1].mean((1, 2)).double()
        torch.testing.assert_close(weights_of(None, None)(heard), mean, atol=1e-6, rtol=0)


def test_what_a_head_reads_by_hand() -> None:
    """One position, the mean of all, or neither."""
    one, even = torch.tensor([[[0.0, 0.0], [0.0, 2.0]]]), torch.tensor([[[1.0, 2.0], [1.0, 2.0]]])
    assert reads_of(one, "it").tolist() == [[0, 1]]
    assert reads_of(even, "it").tolist() == [[0.5, 0.5]]
    for neither in (torch.tensor([[[1.0, 2.0], [2.0, 1.0]]]), torch.zeros(1, 2, 2)):
        with pytest.raises(
            SubjectError, match="The head of it reads neither one position of a text nor the mean of all"
        ):
            reads_of(neither, "it")


@pytest.mark.parametrize("family", FAMILIES)
def test_the_model_is_left_bitwise_as_it_was(family: str) -> None:
    model, tokenizer = made(family, seed=1)
    reading = heedful.subject(model, tokenizer).read(TEXTS[:2])
    state, config, attention = (
        copy.deepcopy(model.state_dict()),
        model.config.to_dict(),
        model.config._attn_implementation,
    )
    parts = [(part.training, sorted(vars(part))) for part in model.modules()]
    explain_all(reading, [*LOOKING, "input_gradient", "integrated_gradients@3"])
    assert all(torch.equal(values, state[name]) for name, values in model.state_dict().items())
    assert (model.config.to_dict(), model.config._attn_implementation) == (config, attention)
    assert [(part.training, sorted(vars(part))) for part in model.modules()] == parts
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in model.modules())
    assert all(values.grad is None for values in model.parameters())
    with torch.no_grad():  # and its own attention can still be had
        model.set_attn_implementation("eager")
        told = model(input_ids=reading.pieces.of_row(0)[None], output_attentions=True)  # type: ignore[attr-defined]
    assert len(told.attentions) == 2


@pytest.mark.parametrize("family", ["bert", "modernbert", "llama"])
def test_frozen_parameters_and_other_batches_change_nothing(family: str) -> None:
    model, tokenizer = made(family)
    frozen = heedful.subject(model.requires_grad_(False), tokenizer).read(TEXTS[::-1])
    for by in LOOKING:
        found, turned = heedful.explain(reading_of(family), by=by), heedful.explain(frozen, by=by)
        for own, other in zip(rows(found), rows(turned)[::-1], strict=True):
            assert own == pytest.approx(other, rel=1e-3, abs=1e-5)


def test_same_bits_again() -> None:
    for by in LOOKING:
        first, again = (heedful.explain(reading_of("bert"), by=by) for _ in range(2))
        assert torch.equal(first.scores, again.scores)


def test_texts_that_are_cut_are_explained_as_far_as_they_are_read() -> None:
    subject = heedful.subject(*tiny("bert"), truncate=True)
    found = heedful.explain(subject, ["a " * 70, "a film"])
    assert found.lengths.tolist() == [58, 2]
    assert float(found.scores[:58].sum()) < 1


def test_layers_and_heads_that_are_not_there_are_refused() -> None:
    with pytest.raises(InputError, match=r"There are 2 layers, counted from 0 to 1; there is no layer 2\."):
        heedful.explain(reading_of("bert"), by="attention@2")
    with pytest.raises(InputError, match=r"There are 2 heads, counted from 0 to 1; there is no head 7\."):
        heedful.explain(reading_of("bert"), by="attention@1.7")
    with pytest.raises(InputError, match=r"There are 2 layers"):
        heedful.explain(reading_of("bert"), by="norms@2")


def test_models_without_attention_say_so() -> None:
    fnet = heedful.subject(*tiny("fnet"), name="fnet").read(TEXTS)
    assert not set(LOOKING) & set(possible(fnet))
    with pytest.raises(
        InputError, match=r"'rollout' cannot be had here: fnet does not give the attention of its 2 layers"
    ):
        heedful.explain(fnet, by="rollout")
    with pytest.raises(InputError, match=r"Special tokens have no share here: it needs a classifier of the transf"):
        special_share(heedful.subject(lambda texts: [0.5] * len(texts)).read(["a"]))


def test_attention_that_says_something_else_is_refused() -> None:
    model, tokenizer = made("bert")
    reading = heedful.subject(model, tokenizer).read(["film"])
    assert reading.probabilities.shape == (1, 3)
    with torch.no_grad():
        model.classifier.bias += torch.tensor([3.0, 0, 0])
    with pytest.raises(SubjectError, match="says something else when it also gives its attention"):
        next(listening(reading, torch.zeros(1, dtype=torch.int64)))
