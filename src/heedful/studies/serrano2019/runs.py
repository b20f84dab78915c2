"""The runs of the study: a data set, a model and a seed become settings.

HAN attends to the words of each sentence and then to the sentences, FLAN to all words at once; `rnn` is a bidirectional
GRU of 50 + 50, `conv` convolutions over three and five words of 50 each, `noenc` no encoder (Serrano & Smith 2019,
section 3 and appendix A.1). Rates, dropouts and patience are the paper's; what it does not print (batches of 64, a rate
that is halved after every epoch that is not the best, vectors of length one from 30 epochs of word2vec, the widths
of the first draws of context vector and readout) is taken from the settings that the authors published with their code.

Differs from the paper: the samples are 80 to 1,700 times smaller than the paper's corpora, so that an epoch has as many
fewer steps; on them the rate is larger (`SAMPLE_RATE`) and epochs are capped (`EPOCHS`). Encoders are drawn as torch
draws them, where the authors' recurrent ones were orthogonal; the biases of attention begin at zero.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from heedful.config import DataSettings, RunSettings
from heedful.papers.serrano2019 import NAMES, STANDS_FOR
from heedful.studies.study import Selection, Trial

SHARED: Mapping[str, Any] = {
    "model.attention": "additive",
    "model.attention_bias": True,
    "model.readout_bias": True,
    "model.score_scale": 1.0,
    "model.embedding_size": 200,
    "model.hidden_size": 100,
    "model.vectors": "word2vec",
    "model.document_dropout": 0.0,
    "model.dropout_mask": "occurrence",
    "training.optimizer": "adam",
    "training.learning_rate_decay": 0.0,
    "training.clip": 10.0,
    "training.patience": 5,
    "training.plateau": 1,
}
"""What all six models have in common. The dropout of the classification layer acts on the logits, as it did in the
authors' runs; the document vector is left whole."""

STRUCTURES: Mapping[str, str] = {"HAN": "hierarchical", "FLAN": "flat"}

ENCODERS: Mapping[str, Mapping[str, Any]] = {
    "rnn": {"model.encoder": "gru", "model.context_deviation": 0.058, "model.readout_range": 0.24},
    "conv": {"model.encoder": "conv", "model.context_deviation": 0.058, "model.readout_range": 0.24},
    "noenc": {
        "model.encoder": "none",
        "model.context_deviation": 0.041,
        "model.readout_range": 0.17,
        "training.patience": 10,
    },
}
"""The first draws are as wide as the authors': the context vector has the deviation of ±1/√size, the readout Xavier's
range √(6 / (size + classes)) for five to ten classes, and without an encoder the size is that of the embeddings."""

MODELS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        structure + encoder: {**SHARED, "model.structure": STRUCTURES[structure], **ENCODERS[encoder]}
        for structure in STRUCTURES
        for encoder in ENCODERS
    }
)
"""The paper's six models as changes of settings, in its order."""

VALUES: Mapping[str, Mapping[str, tuple[float, float, float, float]]] = {
    "hierarchical": {
        "yahoo": (0.4445, 0.2202, 0.3749, 0.0004),
        "imdb-10": (0.4445, 0.2202, 0.2457, 0.0004),
        "amazon": (0.6, 0.2, 0.4, 0.0002),
        "yelp": (0.7, 0.1, 0.7, 0.0001),
    },
    "flat": {
        "yahoo": (0.4445, 0.0, 0.4457, 0.0004),
        "imdb-10": (0.4445, 0.0, 0.3457, 0.0004),
        "amazon": (0.6, 0.0, 0.4, 0.0002),
        "yelp": (0.7, 0.0, 0.7, 0.0001),
    },
}
"""Dropout of words, of sentences (before the document encoder) and in the classification layer, and learning rate
(appendix A.1). The paper gives the same for all three encoders."""

_VALUED = ("model.dropout", "model.sentence_dropout", "model.logit_dropout", "training.learning_rate")
_ALIKE: Mapping[str, Any] = {"training.batch_size": 64, "training.ties": "first", "training.epochs": 60}

CONFIGURATIONS: Mapping[tuple[str, str], Mapping[str, Any]] = MappingProxyType(
    {
        (corpus, model): {**dict(zip(_VALUED, VALUES[MODELS[model]["model.structure"]][corpus], strict=True)), **_ALIKE}
        for corpus in NAMES
        for model in MODELS
    }
)
"""What the paper sets for each of its corpora (by the names they have here) and models, beside `MODELS`."""

NEAREST: Mapping[str, str] = {**STANDS_FOR, "pl-scale": "imdb-10", "agnews": "yahoo"}
"""Whose values a data set takes that the paper does not have: a sample those of the corpus it stands for, film reviews
with ratings those of IMDB, news by topic those of Yahoo Answers."""

OTHERWISE = "yahoo"
"""Whose values any other data set takes: the largest rate and the smallest dropouts suit a small corpus."""

MIN_COUNT = 5
"""How often a token must occur in the training texts to be known."""

SAMPLE_RATE = 0.003
"""Learning rate on a sample. At the paper's rates, 0.0001 to 0.0004, so few steps hardly move the parameters: yelp10k
stays near its largest class. Chosen among 0.001, 0.003 and 0.01 by dev accuracy: 53, 53 and 50 % for FLANnoenc on
yelp10k, 55, 54 and 53 % for FLANrnn on amazon-multi, 18, 53 and 42 % for HANnoenc on yahoo-1k."""

EPOCHS: Mapping[str, int] = {"yelp10k": 10, "amazon-multi": 15, "yahoo-1k": 30, "imdb-ratings": 4, "pl-scale": 10}
"""The most epochs on a sample; patience ends most trainings before."""

EPOCHS_OTHERWISE = 8
QUICK_EPOCHS = 15

WHOLE = Selection(datasets=("yelp10k", "amazon-multi", "yahoo-1k"), models=tuple(MODELS), synthetic=False)
QUICK = Selection(datasets=("yahoo-1k",), models=tuple(MODELS), quick=True, synthetic=False)
"""Two to three minutes on two cores: all six models on a thousand questions."""


def configured_as(dataset: str) -> str:
    """The paper's corpus whose values a data set is trained with."""
    return dataset if dataset in NAMES else NEAREST.get(dataset, OTHERWISE)


def data_settings(dataset: str) -> DataSettings:
    return DataSettings(source=dataset, min_count=MIN_COUNT)


def trial(dataset: str, model: str, seed: int = 0, *, quick: bool = False) -> Trial:
    """A model on a data set: the paper's values, and on a sample fewer epochs at a larger rate."""
    most = 60 if dataset in NAMES else EPOCHS.get(dataset, EPOCHS_OTHERWISE)
    own = {"training.epochs": min(most, QUICK_EPOCHS) if quick else most, "training.seed": seed}
    rate = {} if dataset in NAMES else {"training.learning_rate": SAMPLE_RATE}
    changes = {**MODELS[model], **CONFIGURATIONS[configured_as(dataset), model], **own, **rate}
    return Trial(dataset=dataset, model=model, settings=RunSettings(data=data_settings(dataset)).change(changes))


def trials(selection: Selection) -> list[Trial]:
    """All runs, in the order of the tables."""
    return [
        trial(dataset, model, seed, quick=selection.quick)
        for dataset in selection.datasets
        for model in selection.models
        for seed in range(selection.seeds)
    ]


def cost(settings: RunSettings) -> float:
    """Seconds, roughly: the epochs, each as long as the data set is and twice as long with convolutions, thrice and
    more with a GRU."""
    size = {"yelp10k": 10.0, "amazon-multi": 1.7, "yahoo-1k": 0.6}.get(settings.data.source, 10.0)
    return settings.training.epochs * size * {"gru": 3.6, "conv": 2.7}.get(settings.model.encoder, 1.0)
