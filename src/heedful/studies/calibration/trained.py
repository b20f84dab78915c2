"""Worlds in which a model is trained on texts whose truth is planted, and examined as an audit examines a run.

noise     labels have nothing to do with the texts: there is nothing to explain;
copies    the same, and every text is there five times;
words     every class has words of its own; what the model makes of them, the population shows;
one word  one word of each class decides the label, all others are noise: too few words for an answer across the corpus,
          and for single decisions it is known which unit attention must find, where the model goes by it.
"""

from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.analysis.erasure import erase
from heedful.analysis.tokens import NEUTRAL, NONE
from heedful.probes.scores import token_scores
from heedful.studies.calibration.worlds import FRESH, Case, Planted, World, draw, evidence, with_planted_groups
from heedful.text.corpus import SPLITS, Labelled, build_corpus
from heedful.text.splits import HELD_OUT_SHARE
from heedful.text.tokenize import Tokenizer
from heedful.traces import Trace
from heedful.tracing import trace
from heedful.training.loop import fit

NOISE, COPIES = ("noise", "copies"), 5
EMBEDDING_SIZE = 20
EPOCHS = 10
LEARNING_RATES = (0.05, 0.1, 0.5)  # one is drawn: slow learning leaves attention nearly even, fast makes it sharp


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
        evidence(table, trace(model, split), split.tokens.numbers)
        for table, split in ((tokens, corpus.test), (with_planted_groups(tokens, groups), fresh))
    )
    return Case(seen=seen, whole=whole, planted=_known(world, whole.trace))


def _labelled(world: World, count: int, rng: np.random.Generator) -> Labelled:
    """Texts as they are written, with their labels; those of noise are dealt out again."""
    copies = COPIES if world.kind == "copies" and count != FRESH else 1
    texts = draw(world, count // copies, rng)
    labels = rng.permutation(texts.labels) if world.kind in NOISE else texts.labels
    words = np.split(np.array(world.words, dtype=object)[texts.words], texts.offsets[1:-1])
    return [" ".join(text) for text in words] * copies, labels.tolist() * copies


def _known(world: World, whole: Trace) -> dict[str, Planted]:
    if world.kind in NOISE:
        return {"corpus": "not shown", "decision": "not shown"}
    return {"corpus": None, "decision": found_share(whole) if world.kind == "one word" else None}


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
