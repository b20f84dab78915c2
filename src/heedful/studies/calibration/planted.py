"""Worlds whose truth is planted: in the attention, or in the texts that a model is trained on.

In worlds of planted attention it is known what decides, and whether attention points at it. A word pushes towards the
classes as far as it occurs more often there in the training texts, which is what a trained model makes of it, chance
included. What is planted is the attention:

informative    the more a word pushes, the more attention it gets;
blind          attention knows nothing of the words;
frequency      attention knows nothing of words but how frequent they are: more, or less, for frequent ones;
misleading     the more a word pushes, the less attention it gets;
corpus only    words that push get more attention, but in every text it goes to those of them that do nothing there;
decision only  words alone get attention for no reason, but in every text it goes to neutral words that decide it;
graded         as informative, from hardly to fully;
found in part  as decision only, but a share of the texts has its attention on other units than the few that decide;
unsound        as informative, but a share of the class words pushes towards another class than its own;
only one       one unit of a text decides it and has the attention; no other pushes towards its class;
redundant      several units that say the same decide a text and have the attention.

Corpus only, decision only, found in part, only one and redundant are worlds of models that read a word in its context.
In other worlds a model is trained, and examined as an audit examines a run:

noise     labels have nothing to do with the texts: there is nothing to explain;
copies    the same, and every text is there five times;
words     every class has words of its own; what the model makes of them, the population shows;
one word  one word of each class decides the label, all others are noise: too few words for an answer across the corpus,
          and for single decisions it is known which unit attention must find, where the model goes by it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.analysis.erasure import erase, minimum_sets
from heedful.analysis.tokens import NEUTRAL, NONE, class_counts, effective_counts, token_table
from heedful.claims import Decision
from heedful.probes.scores import token_scores
from heedful.studies.calibration.worlds import (
    FRESH,
    OWN_WORDS,
    Case,
    Floats,
    Ints,
    Marks,
    Planted,
    Texts,
    World,
    draw,
    evidence,
    with_planted_groups,
)
from heedful.text.corpus import SPLITS, Labelled, build_corpus
from heedful.text.splits import HELD_OUT_SHARE
from heedful.text.tokenize import Tokenizer
from heedful.traces import Trace
from heedful.tracing import trace as trace_of
from heedful.training.loop import fit

TRUTHS: Mapping[str, Mapping[str, Decision]] = {
    "informative": {"corpus": "yes", "decision": "yes"},
    "blind": {"corpus": "no", "decision": "no"},
    "frequency": {"corpus": "no"},
    "misleading": {"corpus": "no", "decision": "no"},
    "corpus only": {"corpus": "yes", "decision": "no"},
    "decision only": {"corpus": "no", "decision": "yes"},
    "found in part": {"corpus": "no"},
    "only one": {"corpus": "no", "decision": "yes"},
    "redundant": {"corpus": "no", "decision": "yes"},
}
"""What is planted of a question: whether attention points at the words that decide, and finds what decided a text.

Whether another attention could tell another story, the population shows."""

RISES: Mapping[str, float] = {
    "misleading": -1.0, "blind": 0.0, "frequency": 0.0, "decision only": 0.0, "found in part": 0.0, "only one": 0.0,
    "redundant": 0.0,
}  # fmt: skip
"""How the attention of a word alone follows what it pushes; in all other kinds it rises."""

TRAIN_SHARE, TEST_SHARE = 0.8, 0.1  # of the texts, as `load_corpus` divides them
PIVOTS = 3  # units that decide where words do not
STRENGTH = 2.0  # of what words push, against what training counts say
STRONG = 4.0  # a word that pushes so much to one side gets all the attention that pushing gets
NOISE = 0.2  # the deviation of what a word pushes from what it should
FAINT = 0.1  # so little of what a word pushes is left where other units decide
MOST_WRONG = 0.4  # the largest share of class words that push towards another class, in an unsound world
BIASES = (0.3, 0.9)  # of the lower quartile of all leads: so much a class, drawn by the seed, is ahead by a bias

UNRELATED, COPIES = ("noise", "copies"), 5
EMBEDDING_SIZE = 20
EPOCHS = 10
LEARNING_RATES = (0.05, 0.1, 0.5)  # one is drawn: slow learning leaves attention nearly even, fast makes it sharp

Scores = tuple[Floats, Floats]
"""The attention scores and the polarity scores of units."""


@dataclass(frozen=True, kw_only=True)
class Model:
    """What the model of a world makes of its words."""

    world: World
    pushes: Floats
    scores: Floats
    """The attention score of each word alone."""
    gap: float
    """How much larger the attention score of a unit is that attention is on."""
    found: float
    """The share of texts whose attention is on what decides, where that is planted."""
    bias: Floats


def plant(world: World) -> Case:
    """Draw the world's texts, give every word its push and its attention, and look at it as an audit does."""
    rng = world.rng()
    sizes = round(TRAIN_SHARE * world.texts), round(TEST_SHARE * world.texts), FRESH
    train, test, fresh = (draw(world, count, rng) for count in sizes)
    words, segments, size = torch.from_numpy(train.words), torch.from_numpy(train.segments), len(world.owners)
    labels = torch.from_numpy(train.labels)[segments]
    counts = class_counts(words, labels, vocabulary_size=size, class_count=len(world.shares))
    model = learned(world, counts.double().numpy(), rng)
    if world.bias:
        model = _biased(model, test, rng)
    alone = _traced(model, (model.scores, model.pushes), offsets=np.arange(size + 1), units=world.words)
    tokens = token_table(alone, counts, effective=effective_counts(words, segments, vocabulary_size=size))
    planted = with_planted_groups(tokens, np.where(counts.sum(1).numpy() > 0, world.groups, NONE))
    seen, whole = (
        evidence(table, _trace(model, texts, rng), torch.from_numpy(texts.words))
        for table, texts in ((tokens, test), (planted, fresh))
    )
    return Case(seen=seen, whole=whole, planted=_known(model, whole.trace))


def learned(world: World, counts: Floats, rng: np.random.Generator) -> Model:
    """The model that these training counts and this kind of attention make, without a bias."""
    wrong = rng.uniform(0, MOST_WRONG) if world.kind == "unsound" else 0.0
    pushes = _turned(_pushes(counts, rng), world.owners, wrong, rng)
    gap = rng.uniform(3.0, 4.5) * (rng.uniform() if world.kind == "graded" else 1.0)
    noise = rng.normal(0, rng.uniform(0.2, 0.6), len(pushes))
    if world.kind == "frequency":
        sizes = np.log1p(counts.sum(1))
        noise += rng.choice([-1.0, 1.0]) * gap * (sizes / sizes.max())
    scores = noise + gap * RISES.get(world.kind, 1.0) * _strength(pushes)
    bias = np.zeros(len(world.names))
    return Model(world=world, pushes=pushes, scores=scores, gap=gap, found=rng.uniform(), bias=bias)


def _pushes(counts: Floats, rng: np.random.Generator) -> Floats:
    """log((f_k + 1) / (E_k + 1)) with E_k the count that a word without a class would have in class k."""
    expected = counts.sum(1, keepdims=True) * counts.sum(0) / counts.sum()
    pushes: Floats = STRENGTH * np.log((counts + 1) / (expected + 1)) + rng.normal(0, NOISE, counts.shape)
    return pushes


def _turned(pushes: Floats, owners: Ints, share: float, rng: np.random.Generator) -> Floats:
    """A share of the class words changes what it pushes for its own class with what it pushes for another."""
    chosen = np.flatnonzero((owners >= 0) & (rng.random(len(owners)) < share))
    own = owners[chosen]
    other = (own + rng.integers(1, pushes.shape[1], len(chosen))) % pushes.shape[1]
    turned = pushes.copy()
    turned[chosen, own], turned[chosen, other] = pushes[chosen, other], pushes[chosen, own]
    return turned


def _strength(pushes: Floats) -> Floats:
    """How far a word pushes to one side, 0 … 1."""
    others = np.median(pushes, axis=1) if pushes.shape[1] > 2 else pushes.min(1)
    strength: Floats = np.minimum((pushes.max(1) - others) / STRONG, 1.0)
    return strength


def _biased(model: Model, texts: Texts, rng: np.random.Generator) -> Model:
    """The model with one class ahead by a share of what most decisions are ahead by without that."""
    first, second = _trace(model, texts, rng).logits.topk(2).values.T
    bias = np.zeros(len(model.bias))
    bias[rng.integers(len(bias))] = rng.uniform(*BIASES) * float((first - second).quantile(0.25))
    return replace(model, bias=bias)


def _trace(model: Model, texts: Texts, rng: np.random.Generator) -> Trace:
    """These texts as the model sees them: the scores of the words, and what the context changes."""
    alone = model.scores[texts.words], model.pushes[texts.words]
    change = _CONTEXTS.get(model.world.kind)
    scores = change(model, texts, alone, rng) if change else alone
    return _traced(model, scores, offsets=texts.offsets, labels=texts.labels)


def _traced(model: Model, scores: Scores, **parts: Any) -> Trace:
    attention, polarity = scores
    return Trace.from_arrays(
        attention_scores=attention, polarity_scores=polarity, bias=model.bias, class_names=model.world.names, **parts
    )


def _spectators(model: Model, texts: Texts, alone: Scores, _: np.random.Generator) -> Scores:
    """The first words of the class decide, those after them are looked at."""
    attention, polarity = alone
    polar, first = model.world.owners[texts.words] >= 0, texts.places < OWN_WORDS
    return attention - model.gap * (polar & first), np.where((polar & ~first)[:, None], 0.0, polarity)


def _pivots(model: Model, texts: Texts, alone: Scores, rng: np.random.Generator) -> Scores:
    """Some neutral words decide and are looked at; all others hardly push."""
    attention, polarity = alone[0].copy(), alone[1] * FAINT
    polar, starts = model.world.owners[texts.words] >= 0, texts.offsets[:-1]
    for _ in range(PIVOTS):
        chosen = starts + (rng.random(len(starts)) * np.diff(texts.offsets)).astype(np.int64)
        chosen = chosen[~polar[chosen]]
        polarity[chosen, texts.labels[texts.segments[chosen]]] += _decisive(len(chosen), rng)
        attention[chosen] += model.gap
    return attention, polarity


def _in_part(model: Model, texts: Texts, alone: Scores, rng: np.random.Generator) -> Scores:
    """One to three units decide. Attention is on them in a share of the texts, else on as many that push nowhere.

    What is not attended to pushes the harder, so that the same units decide, and by as much, wherever attention is.
    """
    deciders, decoys = _apart(texts, rng)
    found = (rng.random(len(texts.labels)) < model.found)[texts.segments]
    polarity = np.where(decoys[:, None], 0.0, alone[1] * FAINT)
    harder = np.where(found, 1.0, np.exp(model.gap))[deciders]
    polarity[deciders, texts.labels[texts.segments[deciders]]] += harder * _decisive(int(deciders.sum()), rng)
    return alone[0] + model.gap * ((deciders & found) | (decoys & ~found)), polarity


def _only_one(model: Model, texts: Texts, alone: Scores, rng: np.random.Generator) -> Scores:
    """One unit decides and is looked at; every other says less for the class of the text than for any other class."""
    deciders, owners = _drawn(texts, rng) == 0, texts.labels[texts.segments]
    polarity, rows = alone[1] * FAINT, np.arange(len(owners))
    polarity[rows, owners] = polarity.min(1)
    polarity[deciders, owners[deciders]] += np.exp(model.gap) * _decisive(int(deciders.sum()), rng)
    return alone[0] + model.gap * deciders, polarity


def _redundant(model: Model, texts: Texts, alone: Scores, rng: np.random.Generator) -> Scores:
    """Three units of a text say the same, which decides it, and are looked at."""
    deciders, owners = _drawn(texts, rng) < PIVOTS, texts.labels[texts.segments]
    polarity = np.where(deciders[:, None], 0.0, alone[1] * FAINT)
    polarity[deciders, owners[deciders]] = _decisive(len(texts.labels), rng)[texts.segments[deciders]]
    return alone[0] + model.gap * deciders, polarity


def _drawn(texts: Texts, rng: np.random.Generator) -> Ints:
    """The units of every text numbered in an order that is drawn."""
    drawn = np.empty(len(texts.segments), dtype=np.int64)
    drawn[np.lexsort((rng.random(len(texts.segments)), texts.segments))] = texts.places
    return drawn


def _apart(texts: Texts, rng: np.random.Generator) -> tuple[Marks, Marks]:
    """In every text some units by their position, and as many others."""
    drawn = _drawn(texts, rng)
    counts = rng.integers(1, PIVOTS + 1, len(texts.labels))[texts.segments]
    return drawn < counts, (drawn >= counts) & (drawn < 2 * counts)


def _decisive(count: int, rng: np.random.Generator) -> Floats:
    """What units push that decide a text."""
    return rng.uniform(2, 4, count) * STRENGTH


_CONTEXTS: Mapping[str, Callable[[Model, Texts, Scores, np.random.Generator], Scores]] = {
    "corpus only": _spectators,
    "decision only": _pivots,
    "found in part": _in_part,
    "only one": _only_one,
    "redundant": _redundant,
}


def _known(model: Model, trace: Trace) -> dict[str, Planted]:
    """What is known of the questions; that of single decisions is not asked where nothing but its own claims tells."""
    known: dict[str, Planted] = {"corpus": None, **TRUTHS.get(model.world.kind, {})}
    if model.world.kind == "found in part":
        known["decision"] = model.found
    if model.world.kind == "graded":
        known["decision"] = attended_share(trace)
    return {**known, "story": None}


def attended_share(trace: Trace) -> float:
    """How much of the smallest set that flips a decision is among as many most attended units, in the mean.

    Of the decisions that fewer units than all can flip; what these units give, and so S13, has no part in it.
    """
    segments, smallest = trace.segments.numpy(), minimum_sets(trace)[0].numpy()
    sizes = np.bincount(segments, smallest)
    attended = _ranks(trace) < sizes[segments]
    resting = (sizes > 0) & (sizes < trace.lengths.numpy())
    return float((np.bincount(segments, smallest & attended)[resting] / sizes[resting]).mean())


def _ranks(trace: Trace) -> Ints:
    """For every unit how many of its text are attended to more."""
    segments = trace.segments.numpy()
    ranks = np.empty(len(segments), dtype=np.int64)
    ranks[np.lexsort((-trace.attention_weights.numpy(), segments))] = np.arange(len(segments))
    places: Ints = ranks - trace.offsets.numpy()[segments]
    return places


def grow(world: World) -> Case:
    """Draw the world's texts, train a model on them, and look at it as an audit does."""
    rng = world.rng()
    held_out = round(HELD_OUT_SHARE * world.texts)
    sizes = zip(SPLITS, (world.texts - 2 * held_out, held_out, held_out), strict=True)
    parts = {name: _labelled(world, count, rng) for name, count in sizes}
    corpus = build_corpus(name=world.kind, splits=parts, class_names=world.names, tokenizer=Tokenizer("whitespace"))
    model = fit(
        corpus,
        embedding_size=EMBEDDING_SIZE,
        epochs=EPOCHS,
        learning_rate=float(rng.choice(LEARNING_RATES)),
        readout_bias=world.bias,
        seed=world.seed,
        threads=1,
    )
    texts, labels = _labelled(world, FRESH, rng)
    fresh = replace(model.interface.read(texts), labels=torch.tensor(labels))
    tokens, owners = token_scores(model, corpus), dict(zip(world.words, world.groups, strict=True))
    groups = np.array([owners.get(token, NONE) for token in tokens["token"]], dtype=object)
    seen, whole = (
        evidence(table, trace_of(model, split), split.tokens.numbers)
        for table, split in ((tokens, corpus.test), (with_planted_groups(tokens, groups), fresh))
    )
    return Case(seen=seen, whole=whole, planted=_known_of_texts(world, whole.trace))


def _labelled(world: World, count: int, rng: np.random.Generator) -> Labelled:
    """Texts as they are written, with their labels; those of noise are dealt out again."""
    copies = COPIES if world.kind == "copies" and count != FRESH else 1
    texts = draw(world, count // copies, rng)
    labels = rng.permutation(texts.labels) if world.kind in UNRELATED else texts.labels
    words = np.split(np.array(world.words, dtype=object)[texts.words], texts.offsets[1:-1])
    return [" ".join(text) for text in words] * copies, labels.tolist() * copies


def _known_of_texts(world: World, whole: Trace) -> dict[str, Planted]:
    if world.kind in UNRELATED:
        return {"corpus": "not shown", "decision": "not shown", "story": "not shown"}
    return {"corpus": None, "decision": found_share(whole) if world.kind == "one word" else None, "story": None}


def found_share(whole: Trace) -> float:
    """In a world of one word, the share of texts whose most attended unit is the word that decides."""
    return sum(_finds_the_word(whole, instance) for instance in range(len(whole))) / len(whole)


def _finds_the_word(whole: Trace, instance: int) -> bool:
    """Whether the word gets the most attention, and the decision loses half of its lead or more without it.

    The word decides the label. The model need not go by it: it may take one class wherever the other's word is missing.
    """
    where, chosen = whole.instance(instance), int(whole.predictions[instance])
    assert whole.units is not None
    words = [place for place, unit in enumerate(whole.units[where]) if not unit.startswith(NEUTRAL)]
    before, after = (_lead(erase(whole, instance, gone), chosen) for gone in ([], words))
    return int(whole.attention_weights[where].argmax()) in words and after <= before / 2


def _lead(logits: Float[Tensor, " classes"], chosen: int) -> float:
    others = torch.cat([logits[:chosen], logits[chosen + 1 :]])
    return float(logits[chosen] - others.max())
