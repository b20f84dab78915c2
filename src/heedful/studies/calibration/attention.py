"""Kinds of attention that are planted, and what is true of each.

A word pushes towards the classes as far as it occurs more often there in the training texts, which is what a trained
model makes of it, chance included. What is planted is the attention:

informative    the more a word pushes, the more attention it gets;
blind          attention knows nothing of the words;
frequency      attention knows nothing of words but how frequent they are: more, or less, for frequent ones;
misleading     the more a word pushes, the less attention it gets;
corpus only    words that push get more attention, but in every text it goes to those of them that do nothing there;
decision only  words alone get attention for no reason, but in every text it goes to neutral words that decide it;
graded         as informative, from hardly to fully;
found in part  as decision only, but a share of the texts has its attention on other units than the few that decide;
unsound        as informative, but a share of the class words pushes towards another class than its own.

Corpus only, decision only and found in part are worlds of models that read a word in its context.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from heedful.claims import Decision
from heedful.studies.calibration.language import Floats, Ints, Language, Marks, Texts

TRUTHS: Mapping[str, Mapping[str, Decision]] = {
    "informative": {"corpus": "yes", "decision": "yes"},
    "blind": {"corpus": "no", "decision": "no"},
    "frequency": {"corpus": "no"},
    "misleading": {"corpus": "no", "decision": "no"},
    "corpus only": {"corpus": "yes", "decision": "no"},
    "decision only": {"corpus": "no", "decision": "yes"},
    "found in part": {"corpus": "no"},
}
"""What is planted of a question: whether attention points at the words that decide, and finds what decided a text."""

RISES: Mapping[str, float] = {
    "misleading": -1.0,
    "blind": 0.0,
    "frequency": 0.0,
    "decision only": 0.0,
    "found in part": 0.0,
}
"""How the attention of a word alone follows what it pushes; in all other kinds it rises."""

OWN_WORDS, SPECTATORS, PIVOTS = 3, 4, 3
"""Words of its class in a text; such words that do nothing there; units that decide where words do not."""

STRENGTH = 2.0
"""Of what words push, against what training counts say."""

STRONG = 4.0
"""A word that pushes so much to one side gets all the attention that pushing gets."""

NOISE = 0.2
"""The deviation of what a word pushes from what it should."""

FAINT = 0.1
"""So little of what a word pushes is left where other units decide."""

MOST_WRONG = 0.4
"""The largest share of class words that push towards another class, in an unsound world."""


@dataclass(frozen=True, kw_only=True)
class Model:
    """What the model of a world makes of its words."""

    kind: str
    language: Language
    pushes: Floats
    scores: Floats
    """The attention score of each word alone."""
    gap: float
    """How much larger the attention score of a unit is that attention is on."""
    found: float
    """The share of texts whose attention is on what decides, where that is planted."""
    bias: Floats


def spoken(kind: str, *, classes: str, length: str, bursts: bool) -> Language:
    """The language of a kind of world: for corpus only there are spectators among the words of the class."""
    own = OWN_WORDS + (SPECTATORS if kind == "corpus only" else 0)
    return Language(classes=classes, length=length, bursts=bursts, own=own)


def learned(kind: str, language: Language, counts: Floats, rng: np.random.Generator) -> Model:
    """The model that these training counts and this kind of attention make, without a bias."""
    wrong = rng.uniform(0, MOST_WRONG) if kind == "unsound" else 0.0
    pushes = _turned(_pushes(counts, rng), language.owners, wrong, rng)
    gap = rng.uniform(3.0, 4.5) * (rng.uniform() if kind == "graded" else 1.0)
    noise = rng.normal(0, rng.uniform(0.2, 0.6), len(pushes))
    if kind == "frequency":
        noise += rng.choice([-1.0, 1.0]) * gap * _commonness(counts)
    return Model(
        kind=kind,
        language=language,
        pushes=pushes,
        scores=noise + gap * RISES.get(kind, 1.0) * _strength(pushes),
        gap=gap,
        found=rng.uniform(),
        bias=np.zeros(len(language.names)),
    )


def in_context(model: Model, texts: Texts, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Attention and polarity scores of the units of these texts: those of the words, and what the context changes."""
    attended, polarity = model.scores[texts.words].copy(), model.pushes[texts.words].copy()
    if model.kind in _CONTEXTS:
        _CONTEXTS[model.kind](model, texts, rng, attended, polarity)
    return attended, polarity


def _pushes(counts: Floats, rng: np.random.Generator) -> Floats:
    """log((f_k + 1) / (E_k + 1)) with E_k the count that a word without a class would have in class k."""
    expected = counts.sum(1, keepdims=True) * counts.sum(0) / counts.sum()
    pushes: Floats = STRENGTH * np.log((counts + 1) / (expected + 1)) + rng.normal(0, NOISE, counts.shape)
    return pushes


def _commonness(counts: Floats) -> Floats:
    """How frequent a word is, from 0 for an unseen one to 1 for the most frequent, by logarithms."""
    sizes = np.log1p(counts.sum(1))
    common: Floats = sizes / sizes.max()
    return common


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


def _spectators(model: Model, texts: Texts, _: np.random.Generator, attended: Floats, polarity: Floats) -> None:
    """The first words of the class decide, those after them are looked at."""
    polar, first = model.language.owners[texts.words] >= 0, texts.places < OWN_WORDS
    attended[polar & first] -= model.gap
    polarity[polar & ~first] = 0.0


def _pivots(model: Model, texts: Texts, rng: np.random.Generator, attended: Floats, polarity: Floats) -> None:
    """Some neutral words decide and are looked at; all others hardly push."""
    polar, starts = model.language.owners[texts.words] >= 0, texts.offsets[:-1]
    polarity *= FAINT
    for _ in range(PIVOTS):
        chosen = starts + (rng.random(len(starts)) * texts.lengths).astype(np.int64)
        chosen = chosen[~polar[chosen]]
        polarity[chosen, texts.labels[texts.segments[chosen]]] += _decisive(len(chosen), rng)
        attended[chosen] += model.gap


def _in_part(model: Model, texts: Texts, rng: np.random.Generator, attended: Floats, polarity: Floats) -> None:
    """One to three units decide. Attention is on them in a share of the texts, else on as many that push nowhere.

    What is not attended to pushes the harder, so that the same units decide, and by as much, wherever attention is.
    """
    deciders, decoys = _apart(texts, rng)
    found = (rng.random(len(texts.lengths)) < model.found)[texts.segments]
    polarity *= FAINT
    polarity[decoys] = 0.0
    harder = np.where(found, 1.0, np.exp(model.gap))[deciders]
    polarity[deciders, texts.labels[texts.segments[deciders]]] += harder * _decisive(int(deciders.sum()), rng)
    attended[(deciders & found) | (decoys & ~found)] += model.gap


def _apart(texts: Texts, rng: np.random.Generator) -> tuple[Marks, Marks]:
    """In every text some units by their position, and as many others."""
    segments = texts.segments
    drawn = np.empty(len(segments), dtype=np.int64)
    drawn[np.lexsort((rng.random(len(segments)), segments))] = texts.places
    counts = rng.integers(1, PIVOTS + 1, len(texts.lengths))[segments]
    return drawn < counts, (drawn >= counts) & (drawn < 2 * counts)


def _decisive(count: int, rng: np.random.Generator) -> Floats:
    """What units push that decide a text."""
    return rng.uniform(2, 4, count) * STRENGTH


_Context = Callable[[Model, Texts, np.random.Generator, Floats, Floats], None]
_CONTEXTS: Mapping[str, _Context] = {"corpus only": _spectators, "decision only": _pivots, "found in part": _in_part}
