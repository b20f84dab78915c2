"""Forward passes of transformer classifiers, position by position and head by head, in double precision.

Each takes the parameters under the names of the model's state, the numbers of the pieces, and the positions whose keys
nobody may attend to. Nothing of this is shared with the package or with the library.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence

import torch
from torch import Tensor

State = Mapping[str, Tensor]
Hidden = Collection[int]

Allowed = Sequence[Sequence[int]]
"""For each position those that it may attend to."""

HEADS = 2

BERT = ["attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"]
BERT += ("attention.output.LayerNorm", "intermediate.dense", "output.dense", "output.LayerNorm")
DISTIL = ["attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin"]
DISTIL += ("sa_layer_norm", "ffn.lin1", "ffn.lin2", "output_layer_norm")
MPNET = ["attention.attn.q", "attention.attn.k", "attention.attn.v", "attention.attn.o"]
MPNET += ("attention.LayerNorm", "intermediate.dense", "output.dense", "output.LayerNorm")


def double(state: State) -> State:
    return {name: values.detach().double() for name, values in state.items()}


def linear(state: State, name: str, x: Tensor) -> Tensor:
    shift = state.get(f"{name}.bias", 0.0)
    return state[f"{name}.weight"] @ x + shift


def layer_norm(state: State, name: str, x: Tensor, eps: float = 1e-12) -> Tensor:
    shift = state.get(f"{name}.bias", 0.0)
    centred = x - x.mean()
    return state[f"{name}.weight"] * centred / torch.sqrt((centred**2).mean() + eps) + shift


def rms_norm(state: State, name: str, x: Tensor, eps: float) -> Tensor:
    return state[f"{name}.weight"] * x / torch.sqrt((x**2).mean() + eps)


def gelu(x: Tensor) -> Tensor:
    return torch.stack([value * (1 + math.erf(value.item() / math.sqrt(2))) / 2 for value in x])


def silu(x: Tensor) -> Tensor:
    return x / (1 + torch.exp(-x))


def attend(
    queries: Sequence[Tensor], keys: Sequence[Tensor], values: Sequence[Tensor], allowed: Allowed, bias: Tensor
) -> list[Tensor]:
    """One head: Σ_j softmax_j(q_i · k_j / √d + b_ij) v_j over those j that i may attend to."""
    mixed = []
    for i, query in enumerate(queries):
        scores = [float(query @ keys[j]) / math.sqrt(len(query)) + float(bias[i, j]) for j in allowed[i]]
        strengths = [math.exp(score - max(scores)) for score in scores]
        weighted = [s / sum(strengths) * values[j] for s, j in zip(strengths, allowed[i], strict=True)]
        mixed.append(torch.stack(weighted).sum(0) if weighted else torch.zeros_like(values[0]))
    return mixed


def heads_of(vectors: Sequence[Tensor], count: int) -> list[list[Tensor]]:
    """The vectors of each head."""
    return [[vector.chunk(count)[head] for vector in vectors] for head in range(count)]


def all_heads(
    queries: Sequence[Tensor],
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    allowed: Allowed,
    bias: Tensor | None = None,
    key_heads: int = HEADS,
) -> list[Tensor]:
    """The heads side by side; several heads of queries may share one of keys."""
    q, k, v = heads_of(queries, HEADS), heads_of(keys, key_heads), heads_of(values, key_heads)
    biases = torch.zeros(HEADS, len(queries), len(keys)) if bias is None else bias
    shared = HEADS // key_heads
    told = [attend(q[h], k[h // shared], v[h // shared], allowed, biases[h]) for h in range(HEADS)]
    return [torch.cat([one[place] for one in told]) for place in range(len(queries))]


def near(count: int, hidden: Hidden, reach: int | None = None) -> Allowed:
    """Each may attend to all that are not hidden, within so many positions."""
    far = count if reach is None else reach
    return [[j for j in range(count) if j not in hidden and abs(i - j) <= far] for i in range(count)]


def blocks_after_norm(
    state: State,
    prefix: str,
    names: Sequence[str],
    layers: int,
    x: list[Tensor],
    hidden: Hidden,
    bias: Tensor | None = None,
) -> list[Tensor]:
    """x ← norm(x + attention(x)), x ← norm(x + W₂ gelu(W₁ x)), as in BERT."""
    for layer in range(layers):
        query, key, value, out, norm, up, down, last = (f"{prefix}.{layer}.{name}" for name in names)
        q, k, v = ([linear(state, name, one) for one in x] for name in (query, key, value))
        mixed = all_heads(q, k, v, near(len(x), hidden), bias)
        x = [layer_norm(state, norm, one + linear(state, out, more)) for one, more in zip(x, mixed, strict=True)]
        x = [layer_norm(state, last, one + linear(state, down, gelu(linear(state, up, one)))) for one in x]
    return x


def embedded(state: State, prefix: str, numbers: Sequence[int], first_position: int = 0) -> list[Tensor]:
    """Word, position and, where there is one, the first type, normed."""
    words, positions = state[f"{prefix}.word_embeddings.weight"], state[f"{prefix}.position_embeddings.weight"]
    types = state.get(f"{prefix}.token_type_embeddings.weight")
    kind = 0.0 if types is None else types[0]
    sums = [words[number] + positions[first_position + place] + kind for place, number in enumerate(numbers)]
    return [layer_norm(state, f"{prefix}.LayerNorm", one) for one in sums]


def bert(state: State, numbers: Sequence[int], hidden: Hidden) -> Tensor:
    x = embedded(state, "bert.embeddings", numbers)
    first = blocks_after_norm(state, "bert.encoder.layer", BERT, 2, x, hidden)[0]
    return linear(state, "classifier", torch.tanh(linear(state, "bert.pooler.dense", first)))


def distilbert(state: State, numbers: Sequence[int], hidden: Hidden) -> Tensor:
    x = embedded(state, "distilbert.embeddings", numbers)
    first = blocks_after_norm(state, "distilbert.transformer.layer", DISTIL, 2, x, hidden)[0]
    return linear(state, "classifier", linear(state, "pre_classifier", first).clamp(min=0))


def roberta(state: State, numbers: Sequence[int], hidden: Hidden) -> Tensor:
    x = embedded(state, "roberta.embeddings", numbers, first_position=2)
    first = blocks_after_norm(state, "roberta.encoder.layer", BERT, 2, x, hidden)[0]
    return linear(state, "classifier.out_proj", torch.tanh(linear(state, "classifier.dense", first)))


def electra(state: State, numbers: Sequence[int], hidden: Hidden) -> Tensor:
    x = [linear(state, "electra.embeddings_project", one) for one in embedded(state, "electra.embeddings", numbers)]
    first = blocks_after_norm(state, "electra.encoder.layer", BERT, 2, x, hidden)[0]
    return linear(state, "classifier.out_proj", gelu(linear(state, "classifier.dense", first)))


def mpnet(state: State, numbers: Sequence[int], hidden: Hidden) -> Tensor:
    """A bias for how far apart two positions are: 16 buckets each way, exact below 8, then ever wider."""

    def bucket(apart: int) -> int:
        far = abs(apart)
        wide = 8 + int(math.log(max(far, 1) / 8) / math.log(128 / 8) * 8) if far >= 8 else far
        return min(wide, 15) + (16 if apart > 0 else 0)

    table, places = state["mpnet.encoder.relative_attention_bias.weight"], range(len(numbers))
    bias = torch.stack([torch.stack([table[bucket(j - i)] for j in places]) for i in places]).permute(2, 0, 1)
    x = embedded(state, "mpnet.embeddings", numbers, first_position=2)
    first = blocks_after_norm(state, "mpnet.encoder.layer", MPNET, 2, x, hidden, bias)[0]
    return linear(state, "classifier.out_proj", torch.tanh(linear(state, "classifier.dense", first)))


def rotated(x: Tensor, position: int, base: float) -> Tensor:
    """Each pair (x_c, x_{c + d/2}) of one head turned by position / base^(2c/d)."""
    half = len(x) // 2
    turned = x.clone()
    for c in range(half):
        angle = position / base ** (2 * c / len(x))
        turned[c] = x[c] * math.cos(angle) - x[c + half] * math.sin(angle)
        turned[c + half] = x[c + half] * math.cos(angle) + x[c] * math.sin(angle)
    return turned


def rotated_heads(vectors: Sequence[Tensor], count: int, base: float) -> list[Tensor]:
    return [torch.cat([rotated(part, at, base) for part in one.chunk(count)]) for at, one in enumerate(vectors)]


def modernbert(state: State, numbers: Sequence[int], hidden: Hidden) -> Tensor:
    """A layer over everything, then one over two positions to each side; norms before the blocks, gated."""
    eps, prefix = 1e-5, "model.layers"
    words = state["model.embeddings.tok_embeddings.weight"]
    x = [layer_norm(state, "model.embeddings.norm", words[number], eps) for number in numbers]
    for layer, (base, reach) in enumerate([(160_000.0, len(x)), (10_000.0, 2)]):
        here = x if layer == 0 else [layer_norm(state, f"{prefix}.{layer}.attn_norm", one, eps) for one in x]
        cut = [linear(state, f"{prefix}.{layer}.attn.Wqkv", one).chunk(3) for one in here]
        q, k, v = ([one[part] for one in cut] for part in range(3))
        q, k = (rotated_heads(vectors, HEADS, base) for vectors in (q, k))
        mixed = all_heads(q, k, v, near(len(x), hidden, reach))
        x = [one + linear(state, f"{prefix}.{layer}.attn.Wo", more) for one, more in zip(x, mixed, strict=True)]
        normed = [layer_norm(state, f"{prefix}.{layer}.mlp_norm", one, eps) for one in x]
        pairs = [linear(state, f"{prefix}.{layer}.mlp.Wi", one).chunk(2) for one in normed]
        x = [
            one + linear(state, f"{prefix}.{layer}.mlp.Wo", gelu(own) * gate)
            for one, (own, gate) in zip(x, pairs, strict=True)
        ]
    first = layer_norm(state, "model.final_norm", x[0], eps)
    return linear(state, "classifier", layer_norm(state, "head.norm", gelu(linear(state, "head.dense", first)), eps))


def llama(state: State, numbers: Sequence[int], hidden: Hidden) -> Tensor:
    """A decoder: nobody attends to what comes later, two heads of queries share one of keys, the last piece speaks."""
    eps, prefix, base = 1e-6, "model.layers", 10_000.0
    x = [state["model.embed_tokens.weight"][number] for number in numbers]
    for layer in range(2):
        here = [rms_norm(state, f"{prefix}.{layer}.input_layernorm", one, eps) for one in x]
        q, k, v = ([linear(state, f"{prefix}.{layer}.self_attn.{name}_proj", one) for one in here] for name in "qkv")
        earlier = [[j for j in range(i + 1) if j not in hidden] for i in range(len(x))]
        mixed = all_heads(rotated_heads(q, HEADS, base), rotated_heads(k, 1, base), v, earlier, key_heads=1)
        out = f"{prefix}.{layer}.self_attn.o_proj"
        x = [one + linear(state, out, more) for one, more in zip(x, mixed, strict=True)]
        normed = [rms_norm(state, f"{prefix}.{layer}.post_attention_layernorm", one, eps) for one in x]
        x = [one + _gated(state, f"{prefix}.{layer}.mlp", own) for one, own in zip(x, normed, strict=True)]
    return linear(state, "score", rms_norm(state, "model.norm", x[-1], eps))


def _gated(state: State, name: str, x: Tensor) -> Tensor:
    gate, up = (linear(state, f"{name}.{one}_proj", x) for one in ("gate", "up"))
    return linear(state, f"{name}.down_proj", silu(gate) * up)


PASSES: Mapping[str, Callable[[State, Sequence[int], Hidden], Tensor]] = {
    "bert": bert,
    "distilbert": distilbert,
    "roberta": roberta,
    "mpnet": mpnet,
    "electra": electra,
    "modernbert": modernbert,
    "llama": llama,
}
