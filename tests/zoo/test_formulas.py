"""Every member of the zoo beside its equations in plain Python, and by hand."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from heedful.attention.reading import Read
from heedful.attention.scores import place_vectors
from heedful.zoo.members import MEMBERS
from heedful.zoo.members.acf import CollaborativeFiltering
from heedful.zoo.members.d_attn import DualAttention
from heedful.zoo.members.nested import Nested
from heedful.zoo.members.self_attention import MultiHead
from tests.covering import covers
from tests.oracles import mechanisms
from tests.zoo.members import CASES, Inputs

pytestmark = pytest.mark.usefixtures("one_thread")

PLACES = pytest.mark.parametrize("places", [1, 2, 6])
LN2, LN3 = math.log(2), math.log(3)


def run(name: str, places: int) -> tuple[Any, Inputs, Read]:
    layer, inputs = CASES[name].layer(name), CASES[name].inputs(places, seed=places)
    return layer, inputs, layer(**inputs)


def held(parameter: Tensor) -> Any:
    return parameter.detach().tolist()


def same(found: Tensor, expected: Any) -> None:
    torch.testing.assert_close(found.detach(), torch.tensor(expected, dtype=found.dtype), atol=1e-12, rtol=0)


def readable(inputs: Inputs, example: int, name: str = "keys") -> Any:
    """The keys of an example that may be read."""
    return inputs[name][example][inputs["mask"][example].flatten()].tolist()


def same_look(read: Read, example: int, expected: mechanisms.Look) -> None:
    """Context and weights of an example; what may not be read stands last and has no weight."""
    context, weights = expected
    same(read.context[example], context)
    same(read.weights[example], weights + [0.0] * (read.weights.shape[-1] - len(weights)))


@PLACES
@covers(mechanism=("bahdanau",))
def test_bahdanau(places: int) -> None:
    layer, inputs, read = run("bahdanau", places)
    score = layer.score
    for i in range(2):
        W, U, v = map(held, (score.query_weight, score.key_weight, score.vector))
        same_look(read, i, mechanisms.bahdanau(held(inputs["query"][i]), readable(inputs, i), W, U, v))


@PLACES
@covers(mechanism=("luong-dot",))
def test_luong_dot(places: int) -> None:
    _, inputs, read = run("luong-dot", places)
    for i in range(2):
        same_look(read, i, mechanisms.luong_dot(held(inputs["query"][i]), readable(inputs, i)))


@PLACES
@covers(mechanism=("luong-general",))
def test_luong_general(places: int) -> None:
    layer, inputs, read = run("luong-general", places)
    for i in range(2):
        query, W = held(inputs["query"][i]), held(layer.score.weight)
        same_look(read, i, mechanisms.luong_general(query, readable(inputs, i), W))


@PLACES
@covers(mechanism=("luong-concat",))
def test_luong_concat(places: int) -> None:
    """Its matrix, of query and key one after the other, is kept as two."""
    layer, inputs, read = run("luong-concat", places)
    W, v = held(torch.cat([layer.score.query_weight, layer.score.key_weight], 1)), held(layer.score.vector)
    for i in range(2):
        same_look(read, i, mechanisms.luong_concat(held(inputs["query"][i]), readable(inputs, i), W, v))


@PLACES
@covers(mechanism=("luong-location",))
def test_luong_location(places: int) -> None:
    layer, inputs, read = run("luong-location", places)
    for i in range(2):
        query, W = held(inputs["query"][i]), held(layer.score.weight)
        same_look(read, i, mechanisms.luong_location(query, readable(inputs, i), W))


@pytest.mark.parametrize(("places", "step"), [(1, 0), (2, 1), (6, 0), (6, 3), (6, 4)])
@covers(mechanism=("luong-local-m",))
def test_luong_local_m(places: int, step: int) -> None:
    layer, inputs, _ = run("luong-local-m", places)
    read = layer(**inputs, step=step)
    for i in range(2):
        query, W = held(inputs["query"][i]), held(layer.score.weight)
        same_look(read, i, mechanisms.luong_local_m(query, readable(inputs, i), W, step, 2))


@pytest.mark.parametrize("places", [1, 2, 6, 12])
@covers(mechanism=("luong-local-p",))
def test_luong_local_p(places: int) -> None:
    layer, inputs, read = run("luong-local-p", places)
    W, W_p, v_p = map(held, (layer.score.weight, layer.place_weight, layer.place_vector))
    for i in range(2):
        query = held(inputs["query"][i])
        same_look(read, i, mechanisms.luong_local_p(query, readable(inputs, i), W, W_p, v_p, 2))


@PLACES
@covers(mechanism=("content",))
def test_content(places: int) -> None:
    _, inputs, read = run("content", places)
    for i in range(2):
        same_look(read, i, mechanisms.content(held(inputs["query"][i]), readable(inputs, i), 2.0))


@PLACES
@covers(mechanism=("self-attention",))
def test_self_attention(places: int) -> None:
    layer, inputs, read = run("self-attention", places)
    matrices = [held(part.weight) for part in (layer.query, layer.key, layer.value)]
    for i in range(2):
        x = readable(inputs, i)
        for place, (context, weights) in enumerate(mechanisms.self_attention(x, *matrices)):
            same(read.context[i, place], context)
            same(read.weights[i, 0, place, : len(x)], weights)


@PLACES
@covers(mechanism=("multi-head",))
def test_multi_head(places: int) -> None:
    layer, inputs, read = run("multi-head", places)
    W_q, W_k, W_v, W_o = (held(part.weight) for part in (layer.query, layer.key, layer.value, layer.combine))
    for i in range(2):
        x = readable(inputs, i)
        contexts, weights = mechanisms.multi_head(x, W_q, W_k, W_v, W_o, 2)
        same(read.context[i, : len(x)], contexts)
        same(read.weights[i, :, : len(x), : len(x)], weights)


@pytest.mark.parametrize("heads", [1, 2, 4])
def test_multi_head_is_that_of_torch(heads: int) -> None:
    ours = MultiHead(8, heads).double()
    theirs = nn.MultiheadAttention(8, heads, bias=False, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([ours.query.weight, ours.key.weight, ours.value.weight]))
        assert isinstance(ours.combine, nn.Linear)
        theirs.out_proj.weight.copy_(ours.combine.weight)
    query, keys, values = (torch.randn(3, n, 8, dtype=torch.float64) for n in (4, 6, 6))
    mask = torch.arange(6) < torch.tensor([[6], [4], [1]])
    read = ours(query, keys, values, mask=mask.unsqueeze(1))
    context, weights = theirs(query, keys, values, key_padding_mask=~mask, average_attn_weights=False)
    torch.testing.assert_close(read.context, context, atol=1e-12, rtol=0)
    torch.testing.assert_close(read.weights, weights, atol=1e-12, rtol=0)


@PLACES
@covers(mechanism=("location-sensitive",))
def test_location_sensitive(places: int) -> None:
    layer, inputs, read = run("location-sensitive", places)
    score = layer.score
    by = map(held, (score.query_weight, score.key_weight, score.around_weight, score.bias, score.vector, score.filters))
    W, V, U, b, w, F = by
    for i in range(2):
        s, previous = held(inputs["query"][i]), readable(inputs, i, "previous")
        look = mechanisms.location_sensitive(s, readable(inputs, i), previous, W, V, U, b, w, F)
        same_look(read, i, look)


@PLACES
@covers(mechanism=("location-based",))
def test_location_based(places: int) -> None:
    layer, inputs, read = run("location-based", places)
    score = layer.score
    W, U, v, F = map(held, (score.key_weight, score.around_weight, score.vector, score.filters))
    for i in range(2):
        previous = readable(inputs, i, "previous")
        same_look(read, i, mechanisms.location_based(readable(inputs, i), previous, W, U, v, F))


@PLACES
@covers(mechanism=("hierarchical",))
def test_hierarchical(places: int) -> None:
    layer, inputs, read = run("hierarchical", places)
    by = [held(part) for one in (layer.words, layer.sentences)
          for part in (one.score.key_weight, one.score.bias, one.score.vector)]  # fmt: skip
    for i in range(2):
        words = [one[inputs["mask"][i, number]].tolist() for number, one in enumerate(inputs["words"][i])]
        context, weights, inside = mechanisms.hierarchical(words, *by)
        same_look(read, i, (context, weights))
        for number, word_weights in enumerate(inside):
            same(read.within[0].weights[i, number, : len(word_weights)], word_weights)


@PLACES
@covers(mechanism=("d-attn",))
def test_d_attn(places: int) -> None:
    layer, inputs, read = run("d-attn", places)

    def gate(one: Any) -> tuple[Any, float]:
        return held(one.window.weight[0].mT), one.window.bias.item()

    def filters(one: Any) -> tuple[Any, Any]:
        return held(one.weight.mT), held(one.bias)

    by = gate(layer.local), gate(layer.wide), filters(layer.local_filters), [filters(one) for one in layer.filters]
    for i in range(2):
        context, near, far = mechanisms.d_attn(readable(inputs, i, "words"), *by)
        same_look(read, i, (context, near))
        same(read.within[1].weights[i, : len(far)], far)


@PLACES
@covers(mechanism=("nested",))
def test_nested(places: int) -> None:
    layer, inputs, read = run("nested", places)

    def layers(one: Any) -> Any:
        score = one
        return (held(score.query_weight), held(score.query_bias)), (held(score.key_weight), held(score.key_bias))

    for i in range(2):
        letters = [[v for v, there in zip(word, mask, strict=True) if there] for word, mask in
                   zip(inputs["letters"][i].tolist(), inputs["letter_mask"][i].tolist(), strict=True)]  # fmt: skip
        outer, inner = mechanisms.nested(
            held(inputs["query"][i]), readable(inputs, i, "words"), held(inputs["letter_query"][i]), letters,
            layers(layer.words), layers(layer.letters)
        )  # fmt: skip
        same_look(read, i, outer)
        same_look(read.within[0], i, inner)


def test_nested_with_places() -> None:
    """The same equations on queries and keys with the vectors of their steps and places behind them."""
    layer = Nested(2, 2, 2, 2, 3, places=4).double()
    query, letter_query, words = row(0.3, -1.0), row(1.2, 0.4), torch.stack([row(0.1, 1.0), row(-2.0, 0.5)])
    letters = torch.stack([words + 1, words - 1])
    read = layer(query, words, letter_query, letters, step=1, letter_step=2)
    at = held(place_vectors(torch.arange(3, dtype=torch.float64), 4))

    def layers(score: Any) -> Any:
        return (held(score.query_weight), held(score.query_bias)), (held(score.key_weight), held(score.key_bias))

    def told(rows: Tensor) -> Any:
        return [one + place for one, place in zip(held(rows), at, strict=False)]

    outer, inner = mechanisms.nested(
        held(query) + at[1], told(words), held(letter_query) + at[2], [told(one) for one in letters],
        layers(layer.words), layers(layer.letters)
    )  # fmt: skip
    same(read.weights, outer[1])
    same(read.context, outer[0][:2])
    same(read.within[0].weights, inner[1])
    same(read.within[0].context, inner[0][:2])


@PLACES
@covers(mechanism=("memory",))
def test_memory(places: int) -> None:
    layer, inputs, read = run("memory", places)
    for i in range(2):
        facts = readable(inputs, i)
        context, hops = mechanisms.memory(held(inputs["query"][i]), facts, facts, held(layer.between.weight), 2)
        same_look(read, i, (context, hops[-1]))
        for number, weights in enumerate(hops):
            same(read.within[number].weights[i, : len(weights)], weights)


@PLACES
@covers(mechanism=("pointer",))
def test_pointer(places: int) -> None:
    layer, inputs, read = run("pointer", places)
    W1, W2, v = map(held, (layer.score.key_weight, layer.score.query_weight, layer.score.vector))
    for i in range(2):
        same_look(read, i, mechanisms.pointer(held(inputs["query"][i]), readable(inputs, i), W1, W2, v))


@PLACES
@covers(mechanism=("acf",))
def test_acf(places: int) -> None:
    layer, inputs, read = run("acf", places)

    def common(score: Any) -> dict[str, Any]:
        return {
            "u": held(score.query_weight),
            "b": [held(score.bias)],
            "w": [held(score.vector)],
            "c": [[held(score.offset)]],
        }

    components = {**common(layer.components.score), "x": held(layer.components.score.key_weight)}
    v, p, x = layer.items.score.key_weight.split([3, 3, 2], 1)
    items = {**common(layer.items.score), "v": held(v), "p": held(p), "x": held(x)}
    for i in range(2):
        there = int(inputs["mask"][i].sum())
        seen = [[row for row, kept in zip(one, mask, strict=True) if kept] for one, mask in
                zip(inputs["components"][i].tolist(), inputs["component_mask"][i].tolist(), strict=True)]  # fmt: skip
        context, weights, inside = mechanisms.acf(
            held(inputs["user"][i]), readable(inputs, i, "items"), readable(inputs, i, "auxiliary"), seen[:there],
            components, items
        )  # fmt: skip
        same_look(read, i, (context, weights))
        for number, beta in enumerate(inside):
            same(read.within[0].weights[i, number, : len(beta)], beta)


@covers(mechanism=("gram",))
def test_gram() -> None:
    layer, _, read = run("gram", 1)
    score, nodes = layer.score, held(layer.nodes)
    W = held(torch.cat([score.query_weight, score.key_weight], 1))
    for code, ancestors in enumerate([[0, 3, 4], [1, 3, 4], [2, 4]]):
        same_look(read, code, mechanisms.gram(nodes, ancestors, W, held(score.bias), held(score.vector)))


# By hand.


def put(parameter: Tensor, numbers: Any) -> None:
    with torch.no_grad():
        parameter.copy_(torch.tensor(numbers, dtype=parameter.dtype))


def row(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def column(*numbers: float) -> Tensor:
    return row(*numbers).unsqueeze(-1)


def single(name: str, **sizes: Any) -> Any:
    return MEMBERS[name].make(**sizes).double()


def test_additive_scores_by_hand() -> None:
    """Query 0, keys artanh ½ and 0, v = 2 ln 3: scores ln 3 and 0, weights ¾ and ¼. Of four members it is the same."""
    keys = column(math.atanh(0.5), 0.0)
    for name in ("bahdanau", "luong-concat", "pointer", "location-sensitive"):
        layer = single(name, query_size=1, key_size=1, size=1)
        put(layer.score.key_weight, [[1.0]])
        put(layer.score.vector, [2 * LN3])
        read = layer(row(0.0), keys, previous=row(0.0, 0.0))
        same(read.scores, [LN3, 0.0])
        same(read.weights, [0.75, 0.25])
        same(read.context, [0.75 * math.atanh(0.5)])


def test_luongs_scores_by_hand() -> None:
    """dot: hᵀh̄ = ln 2 and 0. general: 1 · W · h̄ with W = ln 2. location: rows ln 2 and 0, whatever stands there."""
    read = single("luong-dot", query_size=2, key_size=2)(row(1.0, 1.0), torch.stack([row(LN2, 0.0), row(1.0, -1.0)]))
    same(read.weights, [2 / 3, 1 / 3])
    same(read.context, [2 / 3 * LN2 + 1 / 3, -1 / 3])
    layer = single("luong-general", query_size=1, key_size=2)
    put(layer.score.weight, [[LN2, 5.0]])
    same(layer(row(1.0), torch.stack([row(2.0, 0.0), row(0.0, 0.0)])).weights, [0.8, 0.2])
    layer = single("luong-location", query_size=1, _key_size=1, places=3)
    put(layer.score.weight, [[LN2], [0.0], [9.0]])
    same(layer(row(1.0), column(5.0, -5.0)).weights, [2 / 3, 1 / 3])


def test_a_local_window_by_hand() -> None:
    """Step 3 and a reach of 1 leave places 2, 3, 4 of equal scores, a third each; of place 9 nothing is left."""
    layer = single("luong-local-m", query_size=1, key_size=1, reach=1)
    keys = column(*[0.0] * 6)
    same(layer(row(1.0), keys, step=3).weights, [0, 0, 1 / 3, 1 / 3, 1 / 3, 0])
    same(layer(row(1.0), keys, step=9).weights, [0.0] * 6)


def test_a_predicted_window_by_hand() -> None:
    """Four places, h = 0: p = 4 · ½ = 2. D = 1, σ = ½: places 1, 2, 3 have a third each, times e⁻², 1, e⁻²."""
    layer = single("luong-local-p", query_size=1, key_size=1, size=1, reach=1)
    read = layer(row(0.0), column(0.0, 0.0, 3.0, 0.0))
    same(read.weights, [0.0, math.exp(-2) / 3, 1 / 3, math.exp(-2) / 3])
    same(read.context, [1.0])


def test_content_by_hand() -> None:
    """Cosines 1 and 0 whatever the lengths are; with β = ln 3 weights ¾ and ¼."""
    layer = single("content", query_size=2, key_size=2, sharpness=LN3)
    same(layer(row(7.0, 0.0), torch.stack([row(0.1, 0.0), row(0.0, 50.0)])).weights, [0.75, 0.25])


def test_self_attention_by_hand() -> None:
    """Four features, so 1/√d = ½: the first place scores 2 ln 2 · ½ = ln 2 for itself and 0 for the other."""
    for name, sizes in (("self-attention", {"size": 4}), ("multi-head", {"size": 4, "heads": 1})):
        layer = single(name, **sizes)
        for part in (layer.query, layer.key, layer.value, layer.combine):
            if isinstance(part, nn.Linear):
                put(part.weight, torch.eye(4).tolist())
        x = torch.stack([row(math.sqrt(2 * LN2), 0, 0, 0), row(0, 0, 0, 0)])
        read = layer(x, x)
        same(read.weights, [[[2 / 3, 1 / 3], [0.5, 0.5]]])
        same(read.context[0], [2 / 3 * math.sqrt(2 * LN2), 0, 0, 0])


def test_two_heads_look_at_two_places_by_hand() -> None:
    """Head one sees feature one only, head two feature two: each finds the place that has its feature."""
    layer = single("multi-head", size=2, heads=2)
    for part in (layer.query, layer.key, layer.value, layer.combine):
        put(part.weight, torch.eye(2).tolist())
    x = torch.stack([row(LN2, 0.0), row(0.0, LN3)])
    asking = row(1.0, 1.0).unsqueeze(0)
    read = layer(asking, x)
    same(read.weights, [[[2 / 3, 1 / 3]], [[1 / 4, 3 / 4]]])
    same(read.context, [[2 / 3 * LN2, 3 / 4 * LN3]])


def test_the_last_place_by_hand() -> None:
    """A filter whose left arm is 1 brings the weight of the place before: what was looked at was place 0, so f = (0, 1)
    and the scores are 0 and v tanh(artanh ½) = ln 3."""
    sizes: list[tuple[str, dict[str, Any]]] = [
        ("location-sensitive", {"query_size": 1, "key_size": 1}),
        ("location-based", {"_query_size": 1, "key_size": 1}),
    ]
    for name, given in sizes:
        layer = single(name, **given, size=1, filters=1, width=3)
        put(layer.score.filters, [[1.0, 0.0, 0.0]])
        put(layer.score.around_weight, [[math.atanh(0.5)]])
        put(layer.score.vector, [2 * LN3])
        read = layer(row(0.0), column(0.0, 0.0), previous=row(1.0, 0.0))
        same(read.weights, [0.25, 0.75])


def test_two_levels_by_hand() -> None:
    """Words of vector 2 ln 3 · tanh: artanh ½ and 0 have ¾ and ¼ in the first sentence; the second has one word, 0.
    Its vector is 0, that of the first ¾ artanh ½, which u_s = 0 does not tell apart: ½ each."""
    layer = single("hierarchical", word_size=1, size=1)
    put(layer.words.score.key_weight, [[1.0]])
    put(layer.words.score.vector, [2 * LN3])
    put(layer.sentences.score.vector, [0.0])
    words = torch.stack([column(math.atanh(0.5), 0.0), column(0.0, 9.0)])
    read = layer(words, mask=torch.tensor([[True, True], [True, False]]))
    same(read.within[0].weights, [[0.75, 0.25], [1.0, 0.0]])
    same(read.weights, [0.5, 0.5])
    same(read.context, [0.375 * math.atanh(0.5)])


def test_gates_by_hand() -> None:
    """A window of one with W = ln 3: words 1 and 0 have gates ¾ and ½, which do not sum to one. The largest tanh of a
    filter of one, and of one of two words that adds them up, are tanh ¾ and tanh of the second gate's ½ + 0."""
    layer = single("d-attn", size=1, width=1, reach=1, local_filters=1, filters=1, widths=(2,))
    assert isinstance(layer, DualAttention)
    put(layer.local.window.weight, [[[LN3]]])
    put(layer.wide.window.weight, [[[0.0, 0.0, 0.0]]])
    put(layer.local_filters.weight, [[[1.0]]])
    second = layer.filters[0]
    assert isinstance(second, nn.Conv1d)
    put(second.weight, [[[1.0, 1.0]]])
    for part in layer.modules():
        if isinstance(part, nn.Conv1d) and part.bias is not None:
            put(part.bias, [0.0])
    read = layer(column(1.0, 0.0).unsqueeze(0))
    same(read.weights, [[0.75, 0.5]])
    same(read.within[1].weights, [[0.5, 0.5]])
    same(read.context, [[math.tanh(0.75), math.tanh(0.5)]])


def test_letters_of_the_word_that_is_looked_at_by_hand() -> None:
    """φ of both sides is tanh: query artanh ½, words artanh ½ and −artanh ½ give ±¼: weights 1 / (1 + e^∓½). The first
    word is looked at; its letters score the same way."""
    layer = single("nested", query_size=1, word_size=1, letter_query_size=1, letter_size=1, size=1)
    assert isinstance(layer, Nested)
    for name, parameter in layer.named_parameters():
        put(parameter, [0.0] if name.endswith("bias") else [[1.0]])
    x = math.atanh(0.5)
    letters = torch.stack([column(x, -x), column(9.0, 9.0)])
    read = layer(row(x), column(x, -x), row(x), letters)
    first = 1 / (1 + math.exp(-0.5))
    same(read.weights, [first, 1 - first])
    same(read.within[0].weights, [first, 1 - first])
    same(read.within[0].context, [x * (2 * first - 1)])


def test_two_hops_by_hand() -> None:
    """Facts a → b, b → c in three features, sharp keys of 40: the first hop brings b, the second, which asks with b
    (H = 0), brings c. Keys (40 a, 40 b, 0), values (b, c, 0)."""
    layer = single("memory", size=3, hops=2)
    put(layer.between.weight, [[0.0] * 3] * 3)
    a, b, c = torch.eye(3, dtype=torch.float64)
    read = layer(a, torch.stack([40 * a, 40 * b, 0 * c]), torch.stack([b, c, 0 * a]))
    same(read.within[0].weights, [1, 0, 0])
    same(read.within[1].weights, [0, 1, 0])
    same(read.context, [0, 0, 1])


def test_components_and_items_by_hand() -> None:
    """One user of vector 1. Components ln 2 and 0 score themselves (weights ⅔, ⅓), so x̄ = ⅔ ln 2 for the first item;
    the second has one component, 0. Items score x̄ · 3 / 2 = ln 2 and 0: ⅔ and ⅓ of p = 3 and 6 are 4."""
    layer = single("acf", user_size=1, item_size=1, component_size=1, size=1)
    assert isinstance(layer, CollaborativeFiltering)
    for parameter in layer.parameters():
        put(parameter, torch.zeros(parameter.shape).tolist())
    for part, numbers in ((layer.components, [[1.0]]), (layer.items, [[0.0, 0.0, 1.5]])):
        put(part.score.key_weight, numbers)  # type: ignore[arg-type]
        put(part.score.vector, [1.0])  # type: ignore[arg-type]
    components = torch.stack([column(LN2, 0.0), column(0.0, 9.0)])
    there = torch.tensor([[True, True], [True, False]])
    read = layer(row(1.0), column(0.0, 0.0), column(3.0, 6.0), components, component_mask=there)
    same(read.within[0].weights, [[2 / 3, 1 / 3], [1.0, 0.0]])
    same(read.weights, [2 / 3, 1 / 3])
    same(read.context, [4.0])


def test_ancestors_by_hand() -> None:
    """Codes artanh ½ and 0 below a root of 0. Of the first, itself scores 2 ln 3 · ½ = ln 3 and the root 0: ¾ and ¼."""
    layer = single("gram", ancestors=torch.tensor([[0, 2], [1, 2]]), node_size=1, size=1)
    put(layer.nodes, [[math.atanh(0.5)], [0.0], [0.0]])
    put(layer.score.query_weight, [[0.0]])
    put(layer.score.key_weight, [[1.0]])
    put(layer.score.bias, [0.0])
    put(layer.score.vector, [2 * LN3])
    read = layer()
    same(read.weights, [[0.75, 0.25], [0.5, 0.5]])
    same(read.context, [[0.75 * math.atanh(0.5)], [0.0]])
