"""The mechanisms of attention for one example each, in plain Python, written from the papers' equations.

Vectors are lists, matrices lists of rows. Nothing is shared with the package; every function gives what it read and the
weights by which it did.
"""

import math
from collections.abc import Sequence

Vector = list[float]
Matrix = list[Vector]
Look = tuple[Vector, Vector]
"""Context and weights."""


def times(matrix: Sequence[Vector], vector: Vector) -> Vector:
    return [inner(row, vector) for row in matrix]


def inner(left: Vector, right: Vector) -> float:
    assert len(left) == len(right)
    return sum(a * b for a, b in zip(left, right, strict=True))


def plus(*vectors: Vector) -> Vector:
    return [sum(numbers) for numbers in zip(*vectors, strict=True)]


def tanh(vector: Vector) -> Vector:
    return [math.tanh(x) for x in vector]


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def shares(scores: Vector) -> Vector:
    total = sum(math.exp(e) for e in scores)
    return [math.exp(e) / total for e in scores]


def mixture(weights: Vector, vectors: Matrix) -> Vector:
    return [sum(a * v[i] for a, v in zip(weights, vectors, strict=True)) for i in range(len(vectors[0]))]


def looked(scores: Vector, values: Matrix) -> Look:
    weights = shares(scores)
    return mixture(weights, values), weights


def bahdanau(s: Vector, h: Matrix, W: Matrix, U: Matrix, v: Vector) -> Look:
    return looked([inner(v, tanh(plus(times(W, s), times(U, h_j)))) for h_j in h], h)


def luong_dot(h_t: Vector, h: Matrix) -> Look:
    return looked([inner(h_t, h_s) for h_s in h], h)


def luong_general(h_t: Vector, h: Matrix, W: Matrix) -> Look:
    return looked([inner(h_t, times(W, h_s)) for h_s in h], h)


def luong_concat(h_t: Vector, h: Matrix, W: Matrix, v: Vector) -> Look:
    """W is of [h_t; h_s]."""
    return looked([inner(v, tanh(times(W, h_t + h_s))) for h_s in h], h)


def luong_location(h_t: Vector, h: Matrix, W: Matrix) -> Look:
    return looked(times(W[: len(h)], h_t), h)


def luong_local_m(h_t: Vector, h: Matrix, W: Matrix, step: int, reach: int) -> Look:
    near = [s for s in range(len(h)) if abs(s - step) <= reach]
    weights = [0.0] * len(h)
    for s, share in zip(near, shares([inner(h_t, times(W, h[s])) for s in near]), strict=True):
        weights[s] = share
    return mixture(weights, h), weights


def luong_local_p(h_t: Vector, h: Matrix, W: Matrix, W_p: Matrix, v_p: Vector, reach: int) -> Look:
    p = len(h) * sigmoid(inner(v_p, tanh(times(W_p, h_t))))
    near = [s for s in range(len(h)) if abs(s - p) <= reach]
    weights, sigma = [0.0] * len(h), reach / 2
    for s, share in zip(near, shares([inner(h_t, times(W, h[s])) for s in near]), strict=True):
        weights[s] = share * math.exp(-((s - p) ** 2) / (2 * sigma**2))
    return mixture(weights, h), weights


def content(q: Vector, k: Matrix, sharpness: float) -> Look:
    def length(x: Vector) -> float:
        return math.sqrt(inner(x, x))

    return looked([sharpness * inner(q, k_j) / (length(q) * length(k_j)) for k_j in k], k)


def self_attention(x: Matrix, W_q: Matrix, W_k: Matrix, W_v: Matrix) -> list[Look]:
    d = len(W_q)
    keys, values = [times(W_k, x_j) for x_j in x], [times(W_v, x_j) for x_j in x]
    return [looked([inner(times(W_q, x_i), k) / math.sqrt(d) for k in keys], values) for x_i in x]


def multi_head(
    x: Matrix, W_q: Matrix, W_k: Matrix, W_v: Matrix, W_o: Matrix, heads: int
) -> tuple[Matrix, list[Matrix]]:
    """Contexts by place, and weights by head and place; head i has the i-th part of the rows of the projections."""
    part = len(W_q) // heads
    rows = [slice(i * part, (i + 1) * part) for i in range(heads)]
    looks = [self_attention(x, W_q[row], W_k[row], W_v[row]) for row in rows]
    joined = [[number for look in looks for number in look[i][0]] for i in range(len(x))]
    return [times(W_o, one) for one in joined], [[weights for _, weights in look] for look in looks]


def around(previous: Vector, F: Matrix) -> Matrix:
    """f_jm: filter m over the weights of the step before, its middle at j."""
    reach = len(F[0]) // 2

    def at(j: int) -> float:
        return previous[j] if 0 <= j < len(previous) else 0.0

    return [[sum(f[o] * at(j + o - reach) for o in range(len(f))) for f in F] for j in range(len(previous))]


def location_sensitive(
    s: Vector, h: Matrix, previous: Vector, W: Matrix, V: Matrix, U: Matrix, b: Vector, w: Vector, F: Matrix
) -> Look:
    f = around(previous, F)
    scores = [inner(w, tanh(plus(times(W, s), times(V, h[j]), times(U, f[j]), b))) for j in range(len(h))]
    return looked(scores, h)


def location_based(h: Matrix, previous: Vector, W: Matrix, U: Matrix, v: Vector, F: Matrix) -> Look:
    f = around(previous, F)
    return looked([inner(v, tanh(plus(times(W, h[j]), times(U, f[j])))) for j in range(len(h))], h)


def hierarchical(
    words: list[Matrix], W_w: Matrix, b_w: Vector, u_w: Vector, W_s: Matrix, b_s: Vector, u_s: Vector
) -> tuple[Vector, Vector, list[Vector]]:
    """Document vector, weights of sentences, and of the words of each; nothing between the levels."""
    inside = [looked([inner(tanh(plus(times(W_w, h), b_w)), u_w) for h in one], one) for one in words]
    sentences = [context for context, _ in inside]
    v, weights = looked([inner(tanh(plus(times(W_s, h), b_s)), u_s) for h in sentences], sentences)
    return v, weights, [word_weights for _, word_weights in inside]


def gated(x: Matrix, W: Matrix, b: float) -> Vector:
    """s(i): W has a row for each word of the window around i."""
    reach = len(W) // 2
    return [
        sigmoid(b + sum(inner(W[o], x[i + o - reach]) for o in range(len(W)) if 0 <= i + o - reach < len(x)))
        for i in range(len(x))
    ]


def pooled(x: Matrix, filters: list[Matrix], biases: Vector) -> Vector:
    """z_j = max_i tanh(filter j over the words from i on + b_j); a filter has a row for each word of its window."""
    return [
        max(math.tanh(b + sum(inner(W[o], x[i + o]) for o in range(len(W)) if i + o < len(x))) for i in range(len(x)))
        for W, b in zip(filters, biases, strict=True)
    ]


def d_attn(
    x: Matrix,
    local: tuple[Matrix, float],
    wide: tuple[Matrix, float],
    local_filters: tuple[list[Matrix], Vector],
    wide_filters: list[tuple[list[Matrix], Vector]],
) -> tuple[Vector, Vector, Vector]:
    """What is pooled, and both gates."""
    near, far = gated(x, *local), gated(x, *wide)
    kept = [[s * number for number in x_i] for s, x_i in zip(near, x, strict=True)]
    seen = [[s * number for number in x_i] for s, x_i in zip(far, x, strict=True)]
    z = pooled(kept, *local_filters)
    for filters in wide_filters:
        z = z + pooled(seen, *filters)
    return z, near, far


def tanh_layer(x: Vector, W: Matrix, b: Vector) -> Vector:
    return tanh(plus(times(W, x), b))


Layer = tuple[Matrix, Vector]


def nested(
    d: Vector, h: Matrix, letter_d: Vector, letters: list[Matrix], words_by: tuple[Layer, Layer],
    letters_by: tuple[Layer, Layer]
) -> tuple[Look, Look]:  # fmt: skip
    """The look at words, and that at the letters of the word with the largest weight."""
    outer = looked([inner(tanh_layer(d, *words_by[0]), tanh_layer(h_k, *words_by[1])) for h_k in h], h)
    chosen = letters[max(range(len(h)), key=lambda k: outer[1][k])]
    asked = tanh_layer(letter_d, *letters_by[0])
    return outer, looked([inner(asked, tanh_layer(one, *letters_by[1])) for one in chosen], chosen)


def memory(q: Vector, k: Matrix, v: Matrix, H: Matrix, hops: int) -> tuple[Vector, list[Vector]]:
    """What the question has become, and the weights of each hop."""
    weights = []
    for _ in range(hops):
        c, alpha = looked([inner(q, k_i) for k_i in k], v)
        q = plus(times(H, q), c)
        weights.append(alpha)
    return q, weights


def pointer(d: Vector, e: Matrix, W1: Matrix, W2: Matrix, v: Vector) -> Look:
    return looked([inner(v, tanh(plus(times(W1, e_j), times(W2, d)))) for e_j in e], e)


def relu(vector: Vector) -> Vector:
    return [max(0.0, x) for x in vector]


def acf(
    u: Vector, v: Matrix, p: Matrix, x: list[Matrix], components: dict[str, Matrix], items: dict[str, Matrix]
) -> tuple[Vector, Vector, list[Vector]]:
    """Σ α p, the weights of items, and those of the components of each.
    Layers: W of u, x, v, p; rows b, w, c."""

    def b(x_lm: Vector) -> float:
        layer = plus(times(components["u"], u), times(components["x"], x_lm), components["b"][0])
        return inner(components["w"][0], relu(layer)) + components["c"][0][0]

    inside = [looked([b(x_lm) for x_lm in one], one) for one in x]

    def a(one: int) -> float:
        parts = [("u", u), ("v", v[one]), ("p", p[one]), ("x", inside[one][0])]
        layer = plus(*(times(items[name], vector) for name, vector in parts), items["b"][0])
        return inner(items["w"][0], relu(layer)) + items["c"][0][0]

    context, weights = looked([a(one) for one in range(len(v))], p)
    return context, weights, [beta for _, beta in inside]


def gram(nodes: Matrix, ancestors: list[int], W: Matrix, b: Vector, u: Vector) -> Look:
    """The vector of one code; its ancestors begin with itself, W is of [e_i; e_j]."""
    e_i = nodes[ancestors[0]]
    held = [nodes[j] for j in ancestors]
    return looked([inner(u, tanh(plus(times(W, e_i + e_j), b))) for e_j in held], held)
