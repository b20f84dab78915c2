"""What runs come to: do words of a class get attention, what rare words have learned, and when decisions flip.

A rare word occurs once to four times in the training texts. Its side is what the dev and test texts say, which no model
has learned from; or what its neighbours say, the frequent words whose GloVe vectors point most nearly the same way.
"""

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.analysis.flips import flips_of_rankings
from heedful.analysis.quality import by_ranking, flip_summary
from heedful.analysis.separation import matched_separation, sign_share
from heedful.analysis.statistics import area_estimate
from heedful.analysis.tokens import associations, class_counts, training_counts
from heedful.pipeline import Run
from heedful.studies.measures import MINIMUM, bounds, run_row
from heedful.studies.study import Material, Trial
from heedful.text.corpus import Corpus
from heedful.text.ragged import segments_of
from heedful.text.vectors import find_glove, read_vectors

RANKED = ("attention", "gradient", "product", "margin", "random")
RARE = range(1, 5)
"""So often a rare word occurs in the training texts."""

HEARD = 2
"""So often, at least, it must occur in the dev and test texts, in one class more often than in the other."""

FREQUENT, NEAREST, LEANING, GLOVE_SIZE = 20, 10, 0.2, 50
"""Neighbours occur so often, and so many count; a mean association of theirs beyond this is a side."""


def model_rows(material: Material) -> pd.DataFrame:
    """One row per run: accuracy; words of a class; fractions of the units that flip decisions.

    `signs`: share of words of a class whose polarity score has the right sign. `separation`: AUC of the attention
    scores of words of a class against words that all classes use alike, of about the same frequency (C2b); in their
    texts where a word's score depends on these, and `separation_alone` of the word alone. `unseen`: the same of the
    weights on test texts (C8c). fraction_<ranking>: the median fraction of the units erased at the flip along each
    ranking, of the minimum too, where a part of the units is enough.
    """
    return material.below_each_other(_row)


def _row(trial: Trial, run: Run) -> pd.DataFrame:
    tokens, seed = run.table("tokens"), trial.settings.training.seed
    local = run.table("tokens_local") if run.has("tokens_local") else tokens
    flips = by_ranking(flips_of_rankings(run.trace(), seed=seed, rankings=RANKED))
    fractions = flip_summary(flips, ("resting",)).set_index("ranking")["median_fraction"]
    found = {
        **bounds("signs", sign_share(local)),
        **bounds("separation", matched_separation(local)),
        **bounds("separation_alone", matched_separation(tokens)),
        **bounds("unseen", matched_separation(_log_lifts(run), "lift")),
        **{f"fraction_{name}": float(fractions[name]) for name in (*RANKED, MINIMUM)},
    }
    said = {"vectors": trial.settings.model.vectors, "instances_resting": _resting(flips[MINIMUM])}
    return pd.concat([run_row(run), pd.DataFrame([{**said, **found}])], axis=1)


def _log_lifts(run: Run) -> pd.DataFrame:
    weights = run.table("weights")
    return weights.assign(lift=np.log(weights["lift"].clip(lower=1e-12)))


def _resting(minimum: pd.DataFrame) -> int:
    return int((minimum["erased"] < minimum["units"]).fillna(False).sum())


def flip_rows(material: Material) -> pd.DataFrame:
    """The table of flips of every run."""
    return material.of_traces(lambda trace, seed: flips_of_rankings(trace, seed=seed, rankings=RANKED))


def rare_rows(material: Material) -> pd.DataFrame:
    """One row per run and rare word of two classes: token, count, polarity and score (of attention, the word alone).

    `heard` is its side by the dev and test texts, 1 for the second class, 0 for the first, none where it leans to
    neither; `told` its side by its neighbours, none where it has none or they lean to neither; `leaning` how far these
    lean, between −1 and 1.
    """
    return material.kept("looking at rare words", _rare_words, ["rare words", 1, FREQUENT, NEAREST, LEANING, HEARD])


def _rare_words(run: Run, corpus: Corpus) -> pd.DataFrame:
    tokens = run.table("tokens")
    if corpus.classes != 2:
        return tokens.iloc[:0][["token", "count"]].assign(polarity=0.0, score=0.0, heard=0.0, told=0.0, leaning=0.0)
    counts = training_counts(corpus)
    leaning = neighbours_leaning(corpus, counts)
    table = tokens[["token", "count", "polarity"]].assign(
        score=tokens["attention"],  # of a study's table `attention` is the kind of the model's
        heard=heard_sides(corpus).numpy(),
        leaning=leaning.numpy(),
        told=torch.where(leaning.abs() > LEANING, (leaning > 0).double(), torch.nan).numpy(),
    )
    return table[table["count"].isin(RARE)].reset_index(drop=True)


def heard_sides(corpus: Corpus) -> Float[Tensor, " vocab"]:
    """1 where dev and test texts of the second class use a word more often than those of the first, 0 where less."""
    counts = sum(
        class_counts(
            split.tokens.numbers,
            split.labels[segments_of(split.offsets)],
            vocabulary_size=len(corpus.vocabulary),
            class_count=2,
        )
        for split in (corpus.dev, corpus.test)
    )
    assert isinstance(counts, Tensor)
    sides = (counts[:, 1] > counts[:, 0]).double()
    return sides.where((counts.sum(1) >= HEARD) & (counts[:, 0] != counts[:, 1]), torch.nan)


def neighbours_leaning(corpus: Corpus, counts: Tensor) -> Float[Tensor, " vocab"]:
    """The mean association γ of each word's nearest frequent words, by the cosine of GloVe vectors; nan without one."""
    known = read_vectors(find_glove(GLOVE_SIZE), corpus.vocabulary, size=GLOVE_SIZE)
    found = torch.full((len(corpus.vocabulary),), torch.nan, dtype=torch.float64)
    units = torch.nn.functional.normalize(known.values.double(), dim=1)
    often = counts.sum(1)[known.rows] >= FREQUENT
    if int(often.sum()) <= NEAREST:
        return found
    cosines = units @ units[often].T
    own = torch.arange(len(units))[often]
    cosines[own, torch.arange(len(own))] = -2  # no word is its own neighbour
    gamma = associations(counts)[known.rows][often]
    found[known.rows] = gamma[cosines.topk(NEAREST, dim=1).indices].mean(1)
    return found


def rare_summary(words: pd.DataFrame) -> dict[str, float | None]:
    """Areas of one run, each with its interval: how well the polarity of rare words tells their sides.

    `heard` and `told`: AUC of polarity, words of the second class against those of the first. `attention`: AUC of
    attention, words whose neighbours lean to a side against words whose neighbours lean to none.
    """
    areas = {name: area_estimate(*sides(words, name)) for name in ("heard", "told")}
    known = words.dropna(subset=["leaning"])
    leaning = [known.loc[mark, "score"].to_numpy(float) for mark in (known["told"].notna(), known["told"].isna())]
    found = {**areas, "attention": area_estimate(leaning[0], leaning[1])}
    return {f"rare_{name}": value for one, area in found.items() for name, value in bounds(one, area).items()}


def sides(words: pd.DataFrame, by: str) -> tuple[np.ndarray, np.ndarray]:
    """The polarity of the words of the second class, and of those of the first."""
    second, first = (words.loc[words[by] == side, "polarity"].to_numpy(float) for side in (1, 0))
    return second, first
