"""Many training steps in one compiled function: flat models whose encoder is none or affine, learned by Adagrad.

An affine encoder and the pooling change places, so that with x_e the embedding of token e after dropout and P the
encoder's matrix (or none)

    x̄_t = Σ_j α_j x_j        h_t = P x̄_t        a_e = (Pᵀ V)ᵀ x_e / λ   or   tanh(N P x_e + c)ᵀ V / λ

and P is applied to the texts of a batch, not to its tokens. With r_tk = (p_tk − [y_t = k]) / m, the mask D_t of the
document vector, and γ_t = Pᵀ D_t Σ_k r_tk W_k = ∂ℓ/∂x̄_t,

    g_e = Σ_{(t,j): token e} α_j γ_t                        the gradient of x_e by way of the pooling
    ∂ℓ/∂a_e = Σ_{(t,j): token e} α_j (x_e − x̄_t)ᵀ γ_t = x_eᵀ g_e − Σ_{(t,j)} α_j x̄_tᵀ γ_t,

which are the equations of `heedful.models.kernels`. So a step reads the rows of a batch's distinct tokens once, goes
through the texts once, and through the tokens a second time, where each row has its whole gradient and is updated.

Equal tokens of a text are one entry with a count. What dropout set to zero is left out of the sums of the tanh layer.
Autograd on `heedful.models.classifier` is the oracle.
"""

import math
from typing import Any, NamedTuple, no_type_check

import numpy as np
from numpy.typing import NDArray

from heedful.compiled import compiled
from heedful.models.kernels import dot
from heedful.training.masks import Dropout, draw_words, read_mask
from heedful.training.optimizers import adagrad

Numbers = NDArray[Any]
Integers = NDArray[np.int64]


class Texts(NamedTuple):
    """What is read: the tokens of a split, where each text begins, its label, and the order of the epoch."""

    tokens: Integers
    offsets: Integers
    labels: Integers
    order: Integers


class Values(NamedTuple):
    """A number for each parameter but the embeddings: its value, its sum of squares, or its gradient.

    What a model lacks is empty. Matrices lie by their inputs, transposed here.
    """

    encoder: Numbers  # Pᵀ [features, hidden]
    layer: Numbers  # Nᵀ [hidden, context]
    layer_bias: Numbers  # c [context]
    context: Numbers  # V [context]; without a tanh layer [hidden]
    readout: Numbers  # W [outputs, hidden]
    readout_bias: Numbers  # b [outputs]


class Rules(NamedTuple):
    """What holds for every step."""

    batch_size: int
    score_scale: float
    word_dropout: Dropout
    document_dropout: Dropout
    rate: float
    rate_decay: float
    epsilon: float
    weight_decay: float  # of the encoder and the tanh layer
    penalty: float
    penalty_on_layer: bool  # its direction is NᵀV, not V


class Desk(NamedTuple):
    """Room to work in: arrays that hold nothing from one step to the next, but `place`.

    An entry is a token of a text with how often it is there.
    """

    place: Integers  # by token: its number among the distinct ones of a step, counted on from step to step
    found: Integers  # the token of each distinct one
    marks: Integers  # of each distinct one its latest entry; later where its next one by tokens goes
    bounds: Integers  # where the entries of each distinct one begin, by tokens
    starts: Integers  # where the entries of each text begin
    which: Integers  # of each entry by texts the distinct token
    weights: Numbers  # of each entry by texts its count, then α
    owners: Integers  # of each entry by tokens its text
    shares: Numbers  # of each entry by tokens α
    rows: Numbers  # x of each distinct token
    masks: Numbers
    bent: Numbers  # tanh(N P x + c)
    scores: Numbers
    means: Numbers  # x̄ of each text
    slopes: Numbers  # γ
    levels: Numbers  # x̄ᵀ γ
    layer: Numbers  # (N P)ᵀ, or the tanh layer itself
    layer_gradient: Numbers
    direction: Numbers  # Pᵀ V, or V itself
    direction_gradient: Numbers


def make_desk(values: Values, gradients: Values, texts: Texts, batch_size: int, table: Numbers) -> Desk:
    """Room for the largest batch of an epoch."""
    lengths = np.diff(texts.offsets)[texts.order]
    units = int(np.add.reduceat(lengths, np.arange(0, len(lengths), batch_size)).max())
    rows, batch, size = min(units, len(table)), min(batch_size, len(lengths)), table.shape[1]
    context, both = len(values.context), len(values.encoder) > 0 and len(values.layer) > 0

    def numbers(*shape: int) -> Numbers:
        return np.empty(shape, table.dtype)

    def integers(count: int) -> Integers:
        return np.empty(count, np.int64)

    apart = len(values.encoder) > 0 and len(values.layer) == 0
    return Desk(
        place=np.full(len(table), -1),
        found=integers(rows),
        marks=integers(rows),
        bounds=integers(rows + 1),
        starts=integers(batch + 1),
        which=integers(units),
        weights=numbers(units),
        owners=integers(units),
        shares=numbers(units),
        rows=numbers(rows, size),
        masks=numbers(rows, size),
        bent=numbers(rows if len(values.layer) else 0, context),
        scores=numbers(rows),
        means=numbers(batch, size),
        slopes=numbers(batch, size),
        levels=numbers(batch),
        layer=numbers(size, context) if both else values.layer,
        layer_gradient=numbers(size, context) if both else gradients.layer,
        direction=numbers(size) if apart else values.context,
        direction_gradient=numbers(size) if apart else gradients.context,
    )


@compiled
@no_type_check
def run_steps(texts, table, table_sums, values, sums, gradients, desk, rules, random, first, begin, losses):
    """The batches `begin` … of an epoch, as many as there are places for their losses; the first is step `first`.

    Changes the table of embeddings, the values, the sums of squares of both, and the state of the random words.
    """
    known = 0
    desk.place[:] = -1
    for s in range(len(losses)):
        chosen = texts.order[(begin + s) * rules.batch_size : (begin + s + 1) * rules.batch_size]
        rate = rules.rate / (1 + rules.rate_decay * (first + s))
        clear(gradients, desk)
        tokens = read_batch(texts, chosen, desk, known)
        known += tokens
        score_tokens(table, tokens, values, desk, rules, random)
        losses[s] = read_texts(texts, chosen, values, gradients, desk, rules, random)
        order_by_tokens(len(chosen), tokens, desk)
        learn_tokens(table, table_sums, tokens, values, gradients, desk, rules, rate)
        share_gradients(values, gradients, desk)
        if rules.penalty > 0:
            penalise(values, gradients, rules)
        learn(values, sums, gradients, rate, rules)


@compiled
@no_type_check
def clear(gradients, desk):
    for one in (gradients.encoder, gradients.layer, gradients.readout, desk.layer_gradient):
        one[:] = 0
    for one in (gradients.layer_bias, gradients.context, gradients.readout_bias, desk.direction_gradient):
        one[:] = 0


@compiled
@no_type_check
def read_batch(texts, chosen, desk, known):
    """The distinct tokens of some texts, in the order in which they come, and the entries of each text.

    Numbers in `place` that are below `known` are of earlier steps, so that nothing needs to be wiped.
    """
    tokens = entries = 0
    one = desk.weights.dtype.type(1)
    for t in range(len(chosen)):
        desk.starts[t] = entries
        for j in range(texts.offsets[chosen[t]], texts.offsets[chosen[t] + 1]):
            token = texts.tokens[j]
            e = desk.place[token] - known
            if e < 0:
                e = tokens
                desk.place[token], desk.found[e], desk.marks[e], desk.bounds[e] = known + e, token, -1, 0
                tokens += 1
            latest = desk.marks[e]
            if latest >= desk.starts[t]:
                desk.weights[latest] += one
            else:
                desk.marks[e], desk.which[entries], desk.weights[entries] = entries, e, one
                desk.bounds[e] += 1
                entries += 1
    desk.starts[len(chosen)] = entries
    return tokens


@compiled
@no_type_check
def score_tokens(table, tokens, values, desk, rules, random):
    """x_e with dropout and a_e of every distinct token."""
    size, layered = table.shape[1], len(values.layer) > 0
    if layered and len(values.encoder):
        for k in range(size):
            desk.layer[k] = 0
            add_rows(desk.layer[k], values.layer, values.encoder[k])
    elif len(values.encoder):
        for k in range(size):
            desk.direction[k] = dot(values.encoder[k], values.context)
    words = np.empty((size * rules.word_dropout.bits + 63) // 64, np.uint64)
    features, scale = np.empty(size, np.int64), table.dtype.type(rules.score_scale)
    for e in range(tokens):
        source, row, mask = table[desk.found[e]], desk.rows[e], desk.masks[e]
        drop(mask, words, rules.word_dropout, random)
        for k in range(size):
            row[k] = source[k] * mask[k]
        if layered:
            bent = desk.bent[e]
            if len(values.layer_bias):
                bent[:] = values.layer_bias
            else:
                bent[:] = 0
            add_chosen_rows(bent, desk.layer, row, kept_of(mask, features))
            bend(bent)
            desk.scores[e] = dot(bent, values.context) / scale
        else:
            desk.scores[e] = dot(row, desk.direction) / scale


@compiled
@no_type_check
def drop(mask, words, dropout, random):
    if dropout.bits:
        draw_words(random, words)
        read_mask(words, dropout, mask)
    else:
        mask[:] = 1


@compiled
@no_type_check
def kept_of(mask, features):
    """The features that a mask keeps."""
    count = 0
    for k in range(len(mask)):
        features[count] = k
        count += mask[k] != 0
    return features[:count]


@compiled
@no_type_check
def bend(values):
    """The hyperbolic tangent of every value, in place.

    In single precision tanh y at y = x / 4 by Lambert's continued fraction as a quotient p / q, doubled twice by
    tanh 2y = 2 p q / (p² + q²); the one division is at the end, so that all of it runs on vectors of numbers. Beyond
    |x| = 9 it is 1 to the last bit.
    """
    if values.itemsize == 8:
        for k in range(len(values)):
            values[k] = math.tanh(values[k])
    else:
        one, quarter, nine = np.float32(1), np.float32(0.25), np.float32(9)
        for k in range(len(values)):
            y = quarter * min(max(values[k], -nine), nine)
            w = y * y
            p = y * (
                one + w * (np.float32(17325 / 135135) + w * (np.float32(378 / 135135) + w * np.float32(1 / 135135)))
            )
            q = one + w * (np.float32(62370 / 135135) + w * (np.float32(3150 / 135135) + w * np.float32(28 / 135135)))
            p, q = np.float32(2) * p * q, p * p + q * q
            values[k] = np.float32(2) * p * q / (p * p + q * q)


@compiled
@no_type_check
def read_texts(texts, chosen, values, gradients, desk, rules, random):
    """Of every text its weights, its mean x̄, and the slope γ of the loss in it; returns the mean loss of the batch."""
    hidden = values.readout.shape[1]
    words = np.empty((hidden * rules.document_dropout.bits + 63) // 64, np.uint64)
    mask, slope = np.empty(hidden, desk.rows.dtype), np.empty(hidden, desk.rows.dtype)
    vector, logits = np.empty(hidden, desk.rows.dtype), np.empty(max(2, len(values.readout)))
    loss = 0.0
    for t in range(len(chosen)):
        attend(desk, desk.starts[t], desk.starts[t + 1])
        mean = desk.means[t]
        weigh(mean, desk.weights, desk.rows, desk.which, desk.starts[t], desk.starts[t + 1])
        drop(mask, words, rules.document_dropout, random)
        if len(values.encoder):
            vector[:] = 0
            add_rows(vector, values.encoder, mean)
        else:
            vector[:] = mean
        for k in range(hidden):
            vector[k] *= mask[k]
        loss += judge(vector, values, texts.labels[chosen[t]], logits)
        slope_of(vector, values, gradients, logits, len(chosen), slope)
        for k in range(hidden):
            slope[k] *= mask[k]
        if len(values.encoder):
            desk.slopes[t] = 0
            back_through(values.encoder, slope, mean, desk.slopes[t], gradients.encoder)
        else:
            desk.slopes[t] = slope
        desk.levels[t] = dot(mean, desk.slopes[t])
    return loss / len(chosen)


@compiled
@no_type_check
def attend(desk, begin, end):
    """α of the entries of a text: each counts as often as its token is there."""
    which, weights, scores = desk.which, desk.weights, desk.scores
    largest = scores[which[begin]]
    for i in range(begin + 1, end):
        largest = max(largest, scores[which[i]])
    total = weights.dtype.type(0)
    for i in range(begin, end):
        weights[i] *= math.exp(scores[which[i]] - largest)
        total += weights[i]
    for i in range(begin, end):
        weights[i] /= total


@compiled
@no_type_check
def judge(vector, values, label, logits):
    """The loss of one text; `logits` becomes p − [class = label]. One output s stands for the logits (0, s)."""
    outputs = len(values.readout)
    first = 1 if outputs == 1 else 0
    logits[0] = 0.0
    for o in range(outputs):
        logits[o + first] = dot(vector, values.readout[o])
        if len(values.readout_bias):
            logits[o + first] += values.readout_bias[o]
    largest, total = logits.max(), 0.0
    for k in range(len(logits)):
        logits[k] -= largest
        total += math.exp(logits[k])
    loss = math.log(total) - logits[label]
    for k in range(len(logits)):
        logits[k] = math.exp(logits[k]) / total
    logits[label] -= 1.0
    return loss


@compiled
@no_type_check
def slope_of(vector, values, gradients, errors, count, slope):
    """Σ_k r_k W_k, and what this text adds to the gradient of the readout."""
    slope[:] = 0
    first = 1 if len(values.readout) == 1 else 0
    for o in range(len(values.readout)):
        part = slope.dtype.type(errors[o + first] / count)
        weights, own = values.readout[o], gradients.readout[o]
        for k in range(len(slope)):
            own[k] += part * vector[k]
            slope[k] += part * weights[k]
        if len(values.readout_bias):
            gradients.readout_bias[o] += part


@compiled
@no_type_check
def order_by_tokens(count, tokens, desk):
    """The entries once more, token after token."""
    total = 0
    for e in range(tokens):
        uses = desk.bounds[e]
        desk.bounds[e] = desk.marks[e] = total
        total += uses
    desk.bounds[tokens] = total
    for t in range(count):
        for i in range(desk.starts[t], desk.starts[t + 1]):
            e = desk.which[i]
            desk.owners[desk.marks[e]], desk.shares[desk.marks[e]] = t, desk.weights[i]
            desk.marks[e] += 1


@compiled
@no_type_check
def learn_tokens(table, table_sums, tokens, values, gradients, desk, rules, rate):
    """The gradient of every distinct token, its part in those of the attention, and the update of its row."""
    number, size, layered = table.dtype.type, table.shape[1], len(values.layer) > 0
    gradient, features = np.empty(size, table.dtype), np.empty(size, np.int64)
    bent_gradient = np.empty(len(values.context), table.dtype)
    scale, rate, epsilon = number(rules.score_scale), number(rate), number(rules.epsilon)
    for e in range(tokens):
        row, mask = desk.rows[e], desk.masks[e]
        weigh(gradient, desk.shares, desk.slopes, desk.owners, desk.bounds[e], desk.bounds[e + 1])
        level = number(0)
        for i in range(desk.bounds[e], desk.bounds[e + 1]):
            level += desk.shares[i] * desk.levels[desk.owners[i]]
        push = (dot(row, gradient) - level) / scale
        if layered:
            unbend(push, desk.bent[e], values, gradients, bent_gradient)
            back_through_chosen(desk.layer, bent_gradient, row, gradient, desk.layer_gradient, kept_of(mask, features))
        else:
            for k in range(size):
                desk.direction_gradient[k] += push * row[k]
                gradient[k] += push * desk.direction[k]
        token = desk.found[e]
        for k in range(size):
            gradient[k] *= mask[k]
        adagrad(table[token], table_sums[token], gradient, rate, epsilon)


@compiled
@no_type_check
def unbend(push, bent, values, gradients, bent_gradient):
    """From ∂ℓ/∂a, divided by λ, to V, to the tanh layer's bias, and to what the tanh is taken of."""
    context, own = values.context, gradients.context
    for k in range(len(context)):
        own[k] += push * bent[k]
        bent_gradient[k] = push * context[k] * (bent.dtype.type(1) - bent[k] * bent[k])
    if len(values.layer_bias):
        for k in range(len(context)):
            gradients.layer_bias[k] += bent_gradient[k]


@compiled
@no_type_check
def share_gradients(values, gradients, desk):
    """Of the products N P and Pᵀ V what is theirs."""
    if len(values.encoder) and len(values.layer):
        for k in range(len(values.encoder)):
            row, own = desk.layer_gradient[k], gradients.encoder[k]
            back_through(values.layer, row, values.encoder[k], own, gradients.layer)
    elif len(values.encoder):
        for k in range(len(values.encoder)):
            row, own, part = values.encoder[k], gradients.encoder[k], desk.direction_gradient[k]
            for i in range(len(row)):
                own[i] += part * values.context[i]
                gradients.context[i] += part * row[i]


@compiled
@no_type_check
def penalise(values, gradients, rules):
    """The gradient of c Σ_k |vᵀ w_k|: v is V or NᵀV and w_k = W_k, both behind Pᵀ where there is an encoder."""
    encoder, layer, context = values.encoder, values.layer, values.context
    hidden = values.readout.shape[1]
    toward, toward_gradient = np.zeros(hidden, context.dtype), np.zeros(hidden, context.dtype)
    if rules.penalty_on_layer:
        for i in range(hidden):
            toward[i] = dot(layer[i], context)
    else:
        toward[:] = context
    for o in range(len(values.readout)):
        readout, own = values.readout[o], gradients.readout[o]
        total = context.dtype.type(0)
        for k in range(len(encoder)):
            total += dot(encoder[k], readout) * dot(encoder[k], toward)
        if len(encoder) == 0:
            total = dot(readout, toward)
        part = context.dtype.type(rules.penalty * np.sign(total))
        for k in range(len(encoder)):
            row, theirs = encoder[k], gradients.encoder[k]
            left, right = part * dot(row, readout), part * dot(row, toward)
            for i in range(hidden):
                theirs[i] += left * toward[i] + right * readout[i]
                own[i] += right * row[i]
                toward_gradient[i] += left * row[i]
        if len(encoder) == 0:
            for i in range(hidden):
                own[i] += part * toward[i]
                toward_gradient[i] += part * readout[i]
    if rules.penalty_on_layer:
        for i in range(hidden):
            back_into(layer[i], gradients.layer[i], toward_gradient[i], context, gradients.context)
    else:
        for i in range(hidden):
            gradients.context[i] += toward_gradient[i]


@compiled
@no_type_check
def back_into(row, row_gradient, part, context, context_gradient):
    for k in range(len(row)):
        row_gradient[k] += part * context[k]
        context_gradient[k] += part * row[k]


@compiled
@no_type_check
def learn(values, sums, gradients, rate, rules):
    """Adagrad on all values; weights of the encoder and the tanh layer decay."""
    number = values.context.dtype.type
    rate, epsilon, decay = number(rate), number(rules.epsilon), number(rules.weight_decay)
    matrices = (
        (values.encoder, sums.encoder, gradients.encoder, decay),
        (values.layer, sums.layer, gradients.layer, decay),
        (values.readout, sums.readout, gradients.readout, number(0)),
    )
    for value, squares, gradient, decayed in matrices:
        for k in range(len(value)):
            for i in range(value.shape[1]):
                gradient[k, i] += decayed * value[k, i]
            adagrad(value[k], squares[k], gradient[k], rate, epsilon)
    adagrad(values.layer_bias, sums.layer_bias, gradients.layer_bias, rate, epsilon)
    adagrad(values.context, sums.context, gradients.context, rate, epsilon)
    adagrad(values.readout_bias, sums.readout_bias, gradients.readout_bias, rate, epsilon)


@compiled
@no_type_check
def weigh(total, weights, rows, which, begin, end):
    """Σ_i weights[i] rows[which[i]], four rows at a time: the sum is read and written a quarter as often."""
    i = begin
    total[:] = 0
    while i + 4 <= end:
        a, b, c, d = weights[i], weights[i + 1], weights[i + 2], weights[i + 3]
        p, q, r, s = rows[which[i]], rows[which[i + 1]], rows[which[i + 2]], rows[which[i + 3]]
        for k in range(len(total)):
            total[k] += a * p[k] + b * q[k] + c * r[k] + d * s[k]
        i += 4
    while i < end:
        a, p = weights[i], rows[which[i]]
        for k in range(len(total)):
            total[k] += a * p[k]
        i += 1


@compiled
@no_type_check
def add_rows(total, rows, factors):
    """Σ_k factors[k] rows[k] added to the total."""
    whole = len(factors) // 4 * 4
    for k in range(0, whole, 4):
        a, b, c, d = factors[k], factors[k + 1], factors[k + 2], factors[k + 3]
        p, q, r, s = rows[k], rows[k + 1], rows[k + 2], rows[k + 3]
        for i in range(len(total)):
            total[i] += a * p[i] + b * q[i] + c * r[i] + d * s[i]
    for k in range(whole, len(factors)):
        a, p = factors[k], rows[k]
        for i in range(len(total)):
            total[i] += a * p[i]


@compiled
@no_type_check
def add_chosen_rows(total, rows, factors, chosen):
    """Σ factors[k] rows[k] over the chosen k, added to the total."""
    whole = len(chosen) // 4 * 4
    for n in range(0, whole, 4):
        w, x, y, z = chosen[n], chosen[n + 1], chosen[n + 2], chosen[n + 3]
        a, b, c, d = factors[w], factors[x], factors[y], factors[z]
        p, q, r, s = rows[w], rows[x], rows[y], rows[z]
        for i in range(len(total)):
            total[i] += a * p[i] + b * q[i] + c * r[i] + d * s[i]
    for n in range(whole, len(chosen)):
        a, p = factors[chosen[n]], rows[chosen[n]]
        for i in range(len(total)):
            total[i] += a * p[i]


@compiled
@no_type_check
def back_through(matrix, slope, inputs, inputs_gradient, matrix_gradient):
    """From the slope in Σ_k inputs[k] matrix[k] to those in the inputs and in the matrix, which are added."""
    for k in range(len(inputs)):
        back_through_one(matrix[k], slope, inputs[k], k, inputs_gradient, matrix_gradient[k])


@compiled
@no_type_check
def back_through_chosen(matrix, slope, inputs, inputs_gradient, matrix_gradient, chosen):
    """The same for the chosen inputs alone."""
    for n in range(len(chosen)):
        k = chosen[n]
        back_through_one(matrix[k], slope, inputs[k], k, inputs_gradient, matrix_gradient[k])


@compiled
@no_type_check
def back_through_one(row, slope, factor, k, inputs_gradient, row_gradient):
    total = slope.dtype.type(0)
    for i in range(len(slope)):
        total += row[i] * slope[i]
        row_gradient[i] += factor * slope[i]
    inputs_gradient[k] += total
