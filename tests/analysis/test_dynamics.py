"""Closed-form gradients, flow terms and dot products against autograd in float64, by hand, and against the print."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from torch import Tensor

from heedful.analysis.dynamics import (
    Moment,
    Parameters,
    dot_product_terms,
    dot_products,
    flow_of,
    observe,
    output_pulls,
    summary,
)
from heedful.probes.recording import pair_kinds, sample_pairs
from heedful.text.ragged import Batch
from tests import strategies
from tests.oracles import flow as oracle

TEXTS = [[0, 1, 1, 2], [3, 0, 3, 3, 4], [5], [2, 2], [4, 1, 0, 5, 5, 1]]  # words come up to three times; token 6 never
LABELS = {1: [1, 0, 1, 0, 0], 3: [0, 2, 1, 0, 2]}
TOKENS = 7
KINDS = ["dot", "affine", "additive", "affine-additive"]
EXACT = 1e-10


def draw(kind: str, outputs: int, *, scale: float = 2.0, spread: float = 1.0, seed: int = 0) -> oracle.Model:
    """A random model with other sizes for embeddings, hidden vectors and scores wherever a matrix lies between them."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    hidden = 4 if "affine" in kind else 3
    context = 5 if "additive" in kind else hidden
    return oracle.Model(
        embedding=normal(TOKENS, 3) * spread,
        V=normal(context),
        W=normal(outputs, hidden),
        scale=scale,
        M=normal(hidden, 3) if "affine" in kind else None,
        Ma=normal(context, hidden) if "additive" in kind else None,
    )


def moment_of(model: oracle.Model, texts: oracle.Texts = TEXTS, labels: list[int] | None = None) -> Moment:
    parameters = Parameters(
        embedding=model.embedding.detach(),
        context_vector=model.V.detach(),
        readout_weight=model.W.detach(),
        score_scale=model.scale,
        encoder=None if model.M is None else model.M.detach(),
        projection=None if model.Ma is None else model.Ma.detach(),
    )
    lengths = [0, *(len(text) for text in texts)]
    documents = Batch(
        tokens=torch.tensor([token for text in texts for token in text]),
        offsets=torch.tensor(lengths).cumsum(0),
        instances=torch.arange(len(texts)),
        labels=torch.tensor(LABELS[len(model.W)] if labels is None else labels),
    )
    return observe(parameters, documents)


def close(ours: Tensor, true: Tensor) -> bool:
    return bool(((ours - true).abs() <= EXACT * (1 + true.abs())).all())


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_every_closed_form_gradient_equals_autograd(kind: str, outputs: int) -> None:
    model = draw(kind, outputs)
    ours = moment_of(model)
    found = {"embedding": -ours.embedding_flow, "V": -ours.context_flow, "W": -ours.readout_flow}
    if ours.parameters.encoder is not None:
        through_scores, through_readout = ours.encoder_flows
        found["M"] = -(through_scores + ours.parameters.readout_weight.T @ through_readout)
    if ours.parameters.projection is not None:
        found["Ma"] = -ours.projection_flow
    true = oracle.gradients(model, TEXTS, LABELS[outputs])
    assert found.keys() == true.keys()
    assert all(close(found[name], true[name]) for name in true)


@pytest.mark.parametrize("scale", [0.5, 10.0])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_the_terms_sum_to_the_autograd_rates(kind: str, outputs: int, scale: float) -> None:
    model = draw(kind, outputs, scale=scale)
    flow = flow_of(moment_of(model))
    polarity, attention = oracle.token_rates(model, TEXTS, LABELS[outputs])
    assert close(flow.polarity_rate, polarity)
    assert close(flow.attention_rate, attention)


@settings(deadline=None, max_examples=40)
@given(
    texts=strategies.documents(range(TOKENS)),
    kind=strategies.one_of(*KINDS),
    outputs=strategies.one_of(1, 3),
    seed=strategies.seeds,
)
def test_terms_sum_to_what_the_gradients_do_to_the_scores(
    texts: list[list[int]], kind: str, outputs: int, seed: int
) -> None:
    model = draw(kind, outputs, seed=seed)
    labels = [(seed + number) % max(2, outputs) for number in range(len(texts))]
    moment = moment_of(model, texts, labels)
    slope = oracle.gradients(model, texts, labels)
    assert close(-moment.embedding_flow, slope["embedding"])
    attention, polarity = oracle.token_scores(model, texts[0][0])
    flow = flow_of(moment)
    assert math.isclose(
        float(flow.attention_rate[texts[0][0]]), oracle.rate(model, attention, slope), rel_tol=1e-8, abs_tol=EXACT
    )
    assert math.isclose(
        float(flow.polarity_rate[texts[0][0], 0]), oracle.rate(model, polarity[0], slope), rel_tol=1e-8, abs_tol=EXACT
    )


def test_three_tokens_by_hand() -> None:
    """A positive "x y", z nowhere: a = (ln 3, 0), α = (3/4, 1/4), s_x = ln 3, s_y = −3 ln 3, s = 0, β = 1/2."""
    L = math.log(3)
    model = oracle.Model(
        embedding=torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], dtype=torch.float64),
        V=torch.tensor([2 * L, 0.0], dtype=torch.float64),
        W=torch.tensor([[L, -3 * L]], dtype=torch.float64),
        scale=2.0,
    )
    moment = moment_of(model, [[0, 1]], [1])
    flow = flow_of(moment)
    by_hand = {
        "A": [3 * L**3 / 8, -3 * L**3 / 8, 0.0],
        "B": [15 * L**2 / 4, 5 * L**2 / 4, 0.0],
        "C": [3 / 8, 1 / 8, 1 / 2],
        "D": [3 * L**2 / 8, L**2 / 8, 0.0],
        "E": [3 * L**3 / 8, -3 * L**3 / 8, 0.0],
        "F": [3 * L / 32, -3 * L / 32, 0.0],
    }
    found = {name: values.reshape(-1) for name, values in {**flow.polarity, **flow.attention}.items()}
    assert found.keys() == by_hand.keys()
    for name, values in by_hand.items():
        assert found[name].tolist() == pytest.approx(values, abs=1e-14)
    assert moment.pi[:, 0].tolist() == pytest.approx([3 / 8, 1 / 8, 0])
    assert moment.rho.tolist() == pytest.approx([3 * L / 8, -3 * L / 8, 0])
    numbers = summary(moment)
    assert float(numbers["mean_beta"]) == pytest.approx(0.5)
    assert float(numbers["loss"]) == pytest.approx(math.log(2))
    assert numbers["alignment"].tolist() == pytest.approx([2 * L**2])
    assert float(numbers["context_norm"]) == pytest.approx(2 * L)
    assert numbers["readout_norm"].tolist() == pytest.approx([math.sqrt(10) * L])
    # Ω of x and y: ρ(x) a_y + ρ(y) a_x = −3 L²/8, π(x) s_y + π(y) s_x = −9 L/8 + L/8
    terms = dot_product_terms(moment, torch.tensor([[0, 1]]))
    assert float(terms["A"]) == pytest.approx(-3 * L**2 / 8)
    assert float(terms["B"]) == pytest.approx(-L)


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_dot_product_rates_equal_autograd(kind: str, outputs: int) -> None:
    model = draw(kind, outputs)
    pairs = torch.tensor([[0, 1], [3, 3], [2, 6], [6, 6]])
    terms = dot_product_terms(moment_of(model), pairs)
    true = [oracle.pair_rate(model, i, k, TEXTS, LABELS[outputs]) for i, k in pairs.tolist()]
    assert (terms["A"] + terms["B"]).tolist() == pytest.approx(true, rel=EXACT, abs=EXACT)
    table = model.embedding.detach()
    assert dot_products(table, pairs).tolist() == pytest.approx([float(table[i] @ table[k]) for i, k in pairs.tolist()])


def test_equation_44_is_printed_with_one_lambda_too_many() -> None:
    model, labels = draw("dot", 1, scale=3.0), LABELS[1]
    true = oracle.pair_rate(model, 0, 1, TEXTS, labels)
    both = {
        corrected: sum(oracle.printed_44(model, i, k, TEXTS, labels, corrected=corrected) for i, k in ((0, 1), (1, 0)))
        for corrected in (True, False)
    }
    terms = dot_product_terms(moment_of(model), torch.tensor([[0, 1]]))
    assert float(terms["A"] + terms["B"]) == pytest.approx(true, abs=EXACT)
    assert both[True] == pytest.approx(true, abs=EXACT)
    assert abs(both[False] - true) > 1e-3


def test_equations_45_and_46_are_printed_without_the_number_of_documents() -> None:
    model, labels = draw("dot", 1, scale=1e7), LABELS[1]
    true = oracle.pair_rate(model, 0, 1, TEXTS, labels)
    printed = oracle.printed_46(model, 0, 1, TEXTS, labels)
    ours = float(dot_product_terms(moment_of(model), torch.tensor([[0, 1]]))["B"])
    assert ours == pytest.approx(true, rel=1e-5)
    assert printed == pytest.approx(len(TEXTS) * ours, abs=EXACT)
    assert abs(printed - true) > abs(true)


def test_equation_71_is_an_approximation_that_fails_for_large_embeddings() -> None:
    errors = {}
    for spread in (0.01, 0.1, 1.0):
        model = draw("additive", 1, spread=spread)
        flow = flow_of(moment_of(model))
        true = oracle.token_rates(model, TEXTS, LABELS[1])[1]
        printed = torch.tensor(
            [oracle.printed_71(model, token, TEXTS, LABELS[1]) for token in range(TOKENS)], dtype=torch.float64
        )
        assert flow.approximate_attention_rate is not None
        assert close(flow.approximate_attention_rate, printed)
        assert close(flow.attention_rate, true)
        errors[spread] = float((printed - true).norm() / true.norm())
    assert errors[0.01] < 0.01 < errors[0.1] < errors[1.0]
    assert errors[1.0] > 0.5


def test_equation_82_is_printed_without_the_attention_weight() -> None:
    model, labels = draw("dot", 3), LABELS[3]
    ours = flow_of(moment_of(model)).polarity_rate
    true = oracle.token_rates(model, TEXTS, labels)[0]
    forms = {
        corrected: torch.stack(
            [oracle.printed_82(model, token, TEXTS, labels, corrected=corrected) for token in range(TOKENS)]
        )
        for corrected in (True, False)
    }
    assert close(ours, true)
    assert close(forms[True], true)
    assert float((forms[False] - true).abs().max()) > 0.1


def test_equation_83_is_printed_with_the_wrong_sign_and_scale() -> None:
    model, labels = draw("dot", 3), LABELS[3]
    ours = flow_of(moment_of(model)).attention_rate
    true = oracle.token_rates(model, TEXTS, labels)[1]
    forms = {
        corrected: torch.tensor(
            [oracle.printed_83(model, token, TEXTS, labels, corrected=corrected) for token in range(TOKENS)],
            dtype=torch.float64,
        )
        for corrected in (True, False)
    }
    assert close(ours, true)
    assert close(forms[True], true)
    assert float((forms[False] - true).abs().max()) > 0.1


def test_two_outputs_move_like_one_output_of_their_difference() -> None:
    """W = (−w/2, w/2) has the same loss as one output w; the difference of its two polarity rates is half as fast."""
    one = draw("dot", 1)
    two = replace(one, W=torch.cat([-one.W.detach() / 2, one.W.detach() / 2]))
    binary, softmax = moment_of(one), moment_of(two, labels=LABELS[1])
    assert close(softmax.losses, binary.losses)
    assert close(softmax.pi[:, 1:], binary.pi)
    assert close(softmax.pi[:, :1], -binary.pi)
    assert close(softmax.rho, binary.rho)
    assert close(flow_of(softmax).attention_rate, flow_of(binary).attention_rate)


def test_pulls_do_not_cancel_when_the_label_is_all_but_certain() -> None:
    outputs = torch.tensor([[60.0, 0.0, 0.0]], dtype=torch.float64)
    pulls, losses = output_pulls(outputs, torch.tensor([0]))
    assert pulls[0].tolist() == pytest.approx([2 * math.exp(-60), -math.exp(-60), -math.exp(-60)], rel=1e-12, abs=0)
    single, single_losses = output_pulls(outputs[:, :1], torch.tensor([1]))
    assert float(single) == pytest.approx(math.exp(-60), rel=1e-12, abs=0)
    assert float(single_losses) == pytest.approx(math.exp(-60), rel=1e-12, abs=0)
    assert float(losses) >= 0


def test_small_scales_give_finite_terms() -> None:
    flow = flow_of(moment_of(draw("dot", 1, scale=0.001)))
    assert all(bool(values.isfinite().all()) for values in (*flow.polarity.values(), *flow.attention.values()))


def test_an_affine_model_reports_the_alignment_of_the_mapped_vectors() -> None:
    moment = moment_of(draw("affine", 1))
    numbers = summary(moment)
    V, W, M = moment.parameters.context_vector, moment.parameters.readout_weight[0], moment.parameters.encoder
    assert M is not None
    assert float(numbers["alignment"]) == pytest.approx(float(W @ V))
    assert float(numbers["alignment_mapped"]) == pytest.approx(float((M.T @ W) @ (M.T @ V)))


def test_drawn_pairs_are_distinct_and_named_by_their_groups() -> None:
    groups = ["none", *["neutral"] * 4, *["positive"] * 3, *["negative"] * 2]
    kinds, pairs = sample_pairs(groups, 5, seed=1)
    assert kinds == pair_kinds(groups, pairs)
    counts = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}
    assert counts == {"pos-pos": 3, "pos-neg": 5, "pos-neu": 5, "neg-neg": 1, "neg-neu": 5, "neu-neu": 5}
    unordered = {frozenset(pair) for pair in pairs.tolist()}
    assert len(unordered) == len(pairs)
    assert all(len(pair) == 2 for pair in unordered)
    assert torch.equal(sample_pairs(groups, 5, seed=1)[1], pairs)


def test_pairs_of_many_classes_carry_the_class_names() -> None:
    kinds, _ = sample_pairs(["sports", "health", "neutral", "sports"], 9, seed=0)
    assert set(kinds) == {"health-sports", "sports-sports", "health-neu", "sports-neu"}
    assert sample_pairs(["none", "none"], 9, seed=0)[0] == []


def test_all_pairs_within_a_group_can_be_drawn() -> None:
    _, pairs = sample_pairs(["neutral"] * 60, 10**6, seed=0)
    assert {tuple(pair) for pair in pairs.tolist()} == {(i, k) for k in range(60) for i in range(k)}
