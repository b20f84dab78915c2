"""Worlds in which a model is trained on texts whose truth is planted, and examined as an audit examines a run.

noise     labels have nothing to do with the texts: there is nothing to explain;
copies    the same, and every text is there five times;
words     every class has words of its own; what the model makes of them, the population shows;
one word  one word of each class decides the label, all others are noise: too few words for an answer across the corpus,
          and for single decisions it is known which unit attention must find, where the model goes by it.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.analysis.erasure import erase
from heedful.analysis.tokens import NEUTRAL, NONE, mean_weights
from heedful.models.classifier import Classifier
from heedful.probes.scores import token_scores
from heedful.studies.calibration.case import Case, Planted
from heedful.studies.calibration.evidence import FRESH, Evidence, with_planted_groups
from heedful.studies.calibration.language import Language, Texts, draw
from heedful.studies.calibration.world import World
from heedful.text.corpus import SPLITS, Corpus, Labelled, Split, build_corpus
from heedful.text.splits import HELD_OUT_SHARE
from heedful.text.tokenize import Tokenizer
from heedful.traces import Trace
from heedful.tracing import trace
from heedful.training.loop import fit

NOISE, COPIES = ("noise", "copies"), 5
EMBEDDING_SIZE = 20
EPOCHS = 10
LEARNING_RATES = (0.05, 0.1, 0.5)
"""One is drawn by the seed: slow learning leaves attention nearly even, fast learning makes it sharp."""


def grow(world: World) -> Case:
    """Draw the world's texts, train a model on them, and look at it as an audit does."""
    rng = world.rng()
    language = spoken(world)
    parts = {name: _labelled(world, language, count, rng) for name, count in _sizes(world).items()}
    corpus = build_corpus(name=world.kind, splits=parts, class_names=language.names, tokenizer=Tokenizer("whitespace"))
    model = _trained(corpus, world, float(rng.choice(LEARNING_RATES)))
    fresh = _read(model, _labelled(world, language, FRESH, rng))
    tokens = token_scores(model, corpus)
    seen = _evidence(tokens, corpus.test, model)
    whole = _evidence(_with_owners(tokens, language), fresh, model)
    return Case(seen=seen, whole=whole, planted=_planted(world, whole.trace))


def spoken(world: World) -> Language:
    """The language of the world: in one of one word each class has a single word, once in each of its texts."""
    usual = Language(classes=world.classes, length=world.length, bursts=world.bursts)
    return replace(usual, class_words=1, own=1, further=0.0) if world.kind == "one word" else usual


def _sizes(world: World) -> dict[str, int]:
    held_out = round(HELD_OUT_SHARE * world.texts)
    return dict(zip(SPLITS, (world.texts - 2 * held_out, held_out, held_out), strict=True))


def _labelled(world: World, language: Language, count: int, rng: np.random.Generator) -> Labelled:
    """Texts as they are written, with their labels; those of noise are dealt out again."""
    copies = COPIES if world.kind == "copies" and count != FRESH else 1
    texts = draw(language, count // copies, rng)
    labels = rng.permutation(texts.labels) if world.kind in NOISE else texts.labels
    return _written(texts, language) * copies, labels.tolist() * copies


def _written(texts: Texts, language: Language) -> list[str]:
    words = np.array(language.words, dtype=object)[texts.words]
    return [" ".join(part) for part in np.split(words, texts.offsets[1:-1])]


def _trained(corpus: Corpus, world: World, learning_rate: float) -> Classifier:
    return fit(
        corpus,
        embedding_size=EMBEDDING_SIZE,
        epochs=EPOCHS,
        learning_rate=learning_rate,
        readout_bias=world.bias,
        seed=world.seed,
        threads=1,
    )


def _read(model: Classifier, labelled: Labelled) -> Split:
    texts, labels = labelled
    return replace(model.interface.read(texts), labels=torch.tensor(labels))


def _with_owners(tokens: pd.DataFrame, language: Language) -> pd.DataFrame:
    groups = dict(zip(language.words, language.groups, strict=True))
    planted = np.array([groups.get(token, NONE) for token in tokens["token"]], dtype=object)
    return with_planted_groups(tokens, planted, np.ones(len(tokens), dtype=bool))


def _evidence(tokens: pd.DataFrame, split: Split, model: Classifier) -> Evidence:
    """What an audit reads of a finished run."""
    found = trace(model, split)
    weights = mean_weights(found, split.tokens.numbers, tokens)
    return Evidence(tables={"tokens": tokens, "weights": weights}, trace=found)


def _planted(world: World, found: Trace) -> dict[str, Planted]:
    if world.kind in NOISE:
        return {"corpus": "not shown", "decision": "not shown"}
    return {"corpus": None, "decision": found_share(found) if world.kind == "one word" else None}


def found_share(found: Trace) -> float:
    """In a world of one word, the share of texts whose most attended unit is the word that decides."""
    return sum(_finds_the_word(found, instance) for instance in range(len(found))) / len(found)


def _finds_the_word(found: Trace, instance: int) -> bool:
    """Whether the word gets the most attention, and the decision loses half of its lead or more without it.

    The word decides the label. The model need not go by it: it may take one class wherever the other's word is missing.
    """
    where, chosen = found.instance(instance), int(found.predictions[instance])
    assert found.units is not None
    words = [place for place, unit in enumerate(found.units[where]) if not unit.startswith(NEUTRAL)]
    before, after = (_lead(erase(found, instance, gone), chosen) for gone in ([], words))
    return int(found.attention_weights[where].argmax()) in words and after <= before / 2


def _lead(logits: Float[Tensor, " classes"], chosen: int) -> float:
    others = torch.cat([logits[:chosen], logits[chosen + 1 :]])
    return float(logits[chosen] - others.max())
