"""How far attention and outputs of two runs lie apart: seeds beside each other, and the points of the TVD–JSD curve."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from heedful.analysis.adversary import adversarial_attention
from heedful.analysis.consistent import consistent_adversary
from heedful.analysis.permutation import weight_divergence
from heedful.config import RunSettings
from heedful.pipeline import Run
from heedful.studies.attack import MOST_TEXTS, judged_rows
from heedful.studies.study import Material, Trial
from heedful.studies.wiegreffe2019.runs import ADVERSARY, LSTM, LSTMS, MLP, strength_of
from heedful.text.corpus import Corpus
from heedful.traces import Trace

OWN = f"{MLP}+own"
EPSILONS = (0.0, 0.01, 0.05, 0.1, 0.2)
"""How far the output of a text may move where every text has an adversary of its own."""

WITHIN = (0.01, 0.05, 0.1, 0.2)
"""Mean TVDs of adversaries that are consistent over the corpus."""

LARGEST_EPSILON = 0.999

SEEDS = ["dataset", "model", "seed", "instance", "units", "largest_weight", "jsd", "tvd"]
POINTS = ["dataset", "model", "seed", "kind", "strength", "tvd", "jsd", "jsd_per_text"]


def apart(one: Trace, other: Trace) -> pd.DataFrame:
    """Two models on the same texts, one row per text: units, largest_weight (of the one), jsd, tvd.

    JSD of their weights in nats, at most log 2; TVD of their outputs, half of the sum of |Δp|.
    """
    heights = one.attention_weights.numpy(force=True)
    return pd.DataFrame(
        {
            "instance": np.arange(len(one)),
            "units": one.lengths.numpy(force=True),
            "largest_weight": np.maximum.reduceat(heights, one.offsets[:-1].numpy(force=True)),
            "jsd": weight_divergence(one.attention_weights, other.attention_weights, one.offsets).numpy(force=True),
            "tvd": (one.probabilities - other.probabilities).abs().sum(1).numpy(force=True) / 2,
        }
    )


def seeds_table(material: Material) -> pd.DataFrame:
    """The base from every other seed beside that from the first, one row per text: SEEDS."""
    first: dict[str, Trace] = {}
    parts = []
    for trial, run in material.runs:
        if trial.model == LSTM and trial.dataset not in first:
            first[trial.dataset] = run.trace()
        elif trial.model == LSTM:
            seed = trial.settings.training.seed
            parts.append(apart(first[trial.dataset], run.trace()).assign(dataset=trial.dataset, model=LSTM, seed=seed))
    table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=SEEDS)
    return table[SEEDS].astype(dict.fromkeys(["largest_weight", "jsd", "tvd"], "float64"))


def curve_table(material: Material) -> pd.DataFrame:
    """The points of the curve: POINTS, where tvd and jsd are means over test texts.

    kind `adversary`: a model trained with λ = strength beside its base, and jsd_per_text, what adversaries for each
    text by itself reach within an ε of that model's tvd (exact for two classes; of more the best that was found, and of
    texts that are drawn); `per text`: those within ε = strength; `corpus`: one
    attention score per word within a mean TVD of strength, of the token-wise model; `seeds`: the base from another
    seed beside that from the first; `uniform`: the LSTM with even weights beside the base.
    """
    curve = _Curve(material=material, bases={pair[0].settings: pair for pair in material.runs})
    rows = [*curve.beside_bases(), *curve.per_text(), *curve.of_corpora(), *_of_seeds(seeds_table(material))]
    return pd.DataFrame(rows, columns=POINTS).astype(dict.fromkeys(POINTS[4:], "float64"))


def farthest_within(trace: Trace, epsilon: float) -> pd.DataFrame:
    """jsd and tvd of the farthest attention within ε of each text's output; of three classes or more of a draw."""
    rows = judged_rows(trace, seed=0)
    some = trace if len(rows) == len(trace) else trace.take(rows)
    return adversarial_attention(some, epsilon)[["jsd", "tvd"]]


@dataclass(frozen=True, kw_only=True)
class _Curve:
    material: Material
    bases: Mapping[RunSettings, tuple[Trial, Run]]

    def _base_of(self, trial: Trial) -> tuple[Trial, Run] | None:
        """The run beside which it is put: an adversary's base, or the learned attention of the same seed."""
        if trial.model == ADVERSARY and trial.settings.base is not None:
            return self.bases.get(trial.settings.base)
        if LSTMS.get(trial.model) != "uniform":
            return None
        same = (trial.dataset, LSTM, trial.settings.training.seed)
        return next((pair for pair in self.bases.values() if _key(pair[0]) == same), None)

    def beside_bases(self) -> Iterator[dict[str, object]]:
        for trial, run in self.material.runs:
            base = self._base_of(trial)
            if base is None:
                continue
            means = apart(base[1].trace(), run.trace())[["tvd", "jsd"]].mean()
            point = {"tvd": float(means["tvd"]), "jsd": float(means["jsd"])}
            trained = trial.model == ADVERSARY
            free = self._found(base, point["tvd"])["jsd"].mean() if trained else np.nan
            kind = "adversary" if trained else "uniform"
            yield {**_said(trial, kind, strength_of(trial.settings)), **point, "jsd_per_text": float(free)}

    def per_text(self) -> Iterator[dict[str, object]]:
        for trial, run in self.material.runs:
            for epsilon in EPSILONS if trial.model == LSTM else ():
                means = self._found((trial, run), epsilon).mean()
                yield {**_said(trial, "per text", epsilon), "tvd": means["tvd"], "jsd": means["jsd"]}

    def _found(self, pair: tuple[Trial, Run], epsilon: float) -> pd.DataFrame:
        """jsd and tvd of the farthest attention within ε of each text's output."""
        bound = min(epsilon, LARGEST_EPSILON)

        def measure(run: Run, _corpus: Corpus) -> pd.DataFrame:
            return farthest_within(run.trace(), bound)

        alone = replace(self.material, runs=[pair], watch=None)
        identity = ["adversarial attention", bound, MOST_TEXTS]
        return alone.kept("attacking single texts", measure, identity)[["jsd", "tvd"]]

    def of_corpora(self) -> Iterator[dict[str, object]]:
        """Of the first seed, since it takes long; not in a quick look."""
        if self.material.selection.quick:
            return
        for trial, run in self.material.runs:
            if trial.model != OWN or trial.settings.training.seed:
                continue
            alone = replace(self.material, runs=[(trial, run)])
            found = alone.kept("attacking the corpus", _consistent, ["consistent adversary", *WITHIN])
            for within, tvd, jsd in zip(found["within"], found["tvd"], found["jsd"], strict=True):
                yield {**_said(trial, "corpus", within), "tvd": tvd, "jsd": jsd}


def _consistent(run: Run, corpus: Corpus) -> pd.DataFrame:
    return consistent_adversary(run.trace(), corpus.test.tokens.numbers, within=WITHIN).curve


def _of_seeds(seeds: pd.DataFrame) -> Iterator[dict[str, object]]:
    for (dataset, model, seed), texts in seeds.groupby(["dataset", "model", "seed"], sort=False):
        point = {"tvd": texts["tvd"].mean(), "jsd": texts["jsd"].mean()}
        yield {"dataset": dataset, "model": model, "seed": seed, "kind": "seeds", **point}


def _key(trial: Trial) -> tuple[str, str, int]:
    return trial.dataset, trial.model, trial.settings.training.seed


def _said(trial: Trial, kind: str, strength: float | None) -> dict[str, object]:
    return {**dict(zip(("dataset", "model", "seed"), _key(trial), strict=True)), "kind": kind, "strength": strength}
