"""Another attention, the same output: weights that are shuffled, and that are replaced, of many texts and of one.

Jain & Wallace 2019. Polarity scores stay as they are; every text is attacked by itself, with weights of its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.analysis.adversary import LARGEST, PerInstance, adversarial_attention
from heedful.analysis.flips import in_front
from heedful.analysis.in_shards import in_shards
from heedful.analysis.permutation import permutation_test, quarters
from heedful.claims import Verdict, judge
from heedful.claims.manipulation import BARELY, ELSEWHERE, FAR, WITHIN
from heedful.models.classifier import Classifier
from heedful.notebook import counted
from heedful.report.instances import usual_lengths
from heedful.report.page import Page, PageTable, Section
from heedful.report.strips import pushes_of
from heedful.studies.explain import Explanation, explain
from heedful.studies.measures import InWords, in_words, per_cent, two_digits
from heedful.trace_folders import TraceFolder
from heedful.traces import Trace

SHUFFLES = 100
SAME, FULL = "same", "floor"

MOST_TEXTS = 300
"""With three classes or more so many distinct texts are drawn at most: each takes about ten milliseconds a kind."""

TITLE = "Another attention, the same output"


@dataclass(frozen=True, kw_only=True)
class Kind:
    """What other weights must keep to."""

    words: str
    epsilon: float = 0.0
    floor: float = 0.0
    """The least weight of a unit."""
    even_share: float = 0.0
    """The same as a share of an even weight, 1/n."""
    without_top: int = 0

    @classmethod
    def asked(cls, epsilon: float, floor: float, without_top: int) -> "Kind":
        """What someone asks for, in words."""
        parts = [
            f"output within {epsilon:g}" if epsilon else "the very same output",
            f"no weight below {floor:g}" if floor else "",
            f"without the {without_top} most attended" if without_top else "",
        ]
        words = ", ".join(filter(None, parts))
        return cls(words=words, epsilon=epsilon, floor=floor, without_top=without_top)

    def found(self, trace: Trace) -> pd.DataFrame:
        """The weights of this kind that lie farthest from the trace's own: `adversarial_attention`."""
        shares: PerInstance = self.even_share / trace.lengths.double().numpy(force=True)
        floor = shares if self.even_share else self.floor
        return adversarial_attention(trace, self.epsilon, floor=floor, without_top=self.without_top)


KINDS: Mapping[str, Kind] = {
    SAME: Kind(words="the very same output"),
    WITHIN: Kind(words="output within .05", epsilon=0.05),
    FULL: Kind(words="every weight a tenth of an even share or more", even_share=0.1),
    ELSEWHERE: Kind(words="without the most attended unit", without_top=1),
}
"""What is looked for in an audit; the output is the very same where nothing else is said."""

CLAIMS: Mapping[str, tuple[str, ...]] = {WITHIN: ("J3",), ELSEWHERE: ("J3b",)}
"""What is judged by each kind."""

OTHER_WORDS: InWords = {
    "other weights": ("words", str),
    "texts": ("texts", "{:,}".format),
    "exist": ("exist", per_cent),
    "median JSD": ("median_jsd", two_digits),
    "far away": ("far", per_cent),
    "exact": ("exact", per_cent),
}
SHUFFLED_WORDS: InWords = {
    "largest weight": ("largest_weight", str),
    "texts": ("texts", "{:,}".format),
    "median TVD": ("median_tvd", two_digits),
    "barely moved": ("barely", per_cent),
    "flips": ("flips", per_cent),
}

NOTE = (
    "For each text by itself the weights are looked for that lie farthest from its own and give the same output, with "
    f"the polarity scores as they are. JSD is at most log 2 = {LARGEST:.2f}, “far away” three quarters of that or "
    "more; “exact” says for how many of them it is proven that none lie farther. In the second table the weights of "
    "each text are dealt out to its units anew, many times: how far its output moves (TVD, median of the shuffles), "
    "for how many by .1 at most (“barely moved”, J2), and how often the decision flips."
)


@dataclass(frozen=True, kw_only=True)
class AttackedAttention:
    """What other weights of the instances of a trace come to."""

    tables: Mapping[str, pd.DataFrame]
    """`adversary`, one row per kind and instance that was judged, and `permutation`, one row per instance."""
    once: Mapping[str, pd.DataFrame]
    """The rows of these that count: of several units, and each text once."""
    others: pd.DataFrame
    """One row per kind: kind, words, texts, exist, median_jsd, far and exact; each text counts once."""
    shuffled: pd.DataFrame
    """One row per quarter of the largest weight: largest_weight, texts, median_tvd, barely, flips."""
    verdicts: Sequence[Verdict]
    words: str
    drawn: str
    """What must be said where not all texts were judged; empty where all were."""

    def section(self) -> Section:
        """It as a part of a page."""
        tables = [
            PageTable(name="other-attention", cells=in_words(self.others, OTHER_WORDS), data=self.others),
            PageTable(name="shuffled-attention", cells=in_words(self.shuffled, SHUFFLED_WORDS), data=self.shuffled),
        ]
        lead = f"{self.words} {self.drawn}".rstrip()
        return Section(name="attack", title=TITLE, lead=lead, verdicts=self.verdicts, tables=tables, note=NOTE)


def attack_attention(
    trace: Trace | TraceFolder,
    *,
    seed: int = 0,
    unit: str = "words",
    shuffles: int = SHUFFLES,
    kinds: Mapping[str, Kind] = KINDS,
) -> AttackedAttention:
    """Replace and shuffle the weights of every instance; the seed draws shuffles and, of many classes, texts.

    Verdicts and what is summed up count a text that is there ten times once.
    """
    first = trace.distinct.numpy(force=True)
    rows = judged_rows(trace, seed)
    tables = {
        "adversary": adversaries(trace, seed=seed, kinds=kinds),
        "permutation": in_shards(trace, lambda some: permutation_test(some, shuffles, seed)),
    }
    once = {name: table[first[table["instance"]] & (table["units"] > 1)] for name, table in tables.items()}
    claims = ("J2", *(claim for kind in kinds for claim in CLAIMS.get(kind, ())))
    drawn = (
        f"Of {int(first.sum()):,} distinct texts {len(rows):,} were drawn: with three classes or more each takes time."
        if len(rows) < first.sum()
        else ""
    )
    return AttackedAttention(
        tables=tables,
        once=once,
        others=_summary(once["adversary"], kinds),
        shuffled=_by_quarter(once["permutation"]),
        verdicts=judge(claims, once),
        words=_attack_words(once["adversary"], kinds, len(trace.class_names), unit),
        drawn=drawn,
    )


def adversaries(trace: Trace | TraceFolder, *, seed: int = 0, kinds: Mapping[str, Kind] = KINDS) -> pd.DataFrame:
    """The farthest weights of every kind, one row per kind and instance that is judged (`adversarial_attention`)."""
    rows = judged_rows(trace, seed)

    def of_all_kinds(some: Trace) -> pd.DataFrame:
        parts = [in_front({"kind": name}, kind.found(some)) for name, kind in kinds.items()]
        return pd.concat(parts, ignore_index=True)

    adversary = in_shards(trace if len(rows) == len(trace) else trace.take(rows), of_all_kinds)
    adversary["instance"] = rows.numpy(force=True)[adversary["instance"]]
    return adversary


def judged_rows(trace: Trace | TraceFolder, seed: int) -> Int[Tensor, " rows"]:
    """All instances; of three classes or more a draw of the distinct ones."""
    if len(trace.class_names) == 2:
        return torch.arange(len(trace))
    distinct = trace.distinct.nonzero().squeeze(1).cpu()
    drawn = torch.randperm(len(distinct), generator=torch.Generator().manual_seed(seed))[:MOST_TEXTS]
    return distinct[drawn.sort().values]


def _summary(adversary: pd.DataFrame, kinds: Mapping[str, Kind]) -> pd.DataFrame:
    """One row per kind, on texts of several units."""

    def row(name: str, kind: Kind) -> dict[str, object]:
        found = adversary[adversary["kind"] == name]
        there = found.dropna(subset=["jsd"])
        return {
            "kind": name,
            "words": kind.words,
            "texts": len(found),
            "exist": found["jsd"].notna().mean(),
            "median_jsd": there["jsd"].median(),
            "far": (found["jsd"] >= FAR).mean(),
            "exact": there["exact"].astype(float).mean(),
        }

    return pd.DataFrame([row(name, kind) for name, kind in kinds.items()])


def _by_quarter(permutation: pd.DataFrame) -> pd.DataFrame:
    """One row per quarter of the largest weight that texts of several units lie in."""
    placed = permutation.groupby(quarters(permutation["largest_weight"]), observed=True)
    rows = [
        {
            "largest_weight": str(name),
            "texts": len(some),
            "median_tvd": some["tvd_median"].median(),
            "barely": (some["tvd_median"] <= BARELY).mean(),
            "flips": some["flips"].mean(),
        }
        for name, some in placed
    ]
    return pd.DataFrame(rows, columns=["largest_weight", "texts", "median_tvd", "barely", "flips"])


def _attack_words(adversary: pd.DataFrame, kinds: Mapping[str, Kind], classes: int, unit: str) -> str:
    """How far other weights may lie, in plain words: of the first kind."""
    name, kind = next(iter(kinds.items()))
    found = adversary[adversary["kind"] == name]
    if found.empty:
        return f"No test text has two {unit} or more: there is no other attention."
    there, possible = found["jsd"].dropna(), int(found["jsd_upper"].notna().sum())
    if not possible:
        return f"No text has other weights ({kind.words})."
    if there.empty:
        return f"No other weights were found ({kind.words}); for {counted(possible, 'text')} none are ruled out."
    missing, unknown = len(found) - possible, possible - len(there)
    none = f" For {counted(missing, 'text')} there are none." if missing else ""
    none += f" For {counted(unknown, 'text')} none were found, and none are ruled out." if unknown else ""
    few = f", and take {classes} {unit} of a text at most" if kind == KINDS[SAME] else ""
    return (
        f"Other weights ({kind.words}) lie as far as {there.median():.2f} nats from a text's own (JSD, the median over "
        f"{counted(len(there), 'text')}; log 2 = {LARGEST:.2f} is the most there is){few}.{none}"
    )


def example_row(attacked: AttackedAttention, trace: Trace, unit: str = "words") -> tuple[pd.Series, str] | None:
    """A text to be shown with other weights that give the very same output, and by which rule it was chosen.

    Of the rightly decided texts of usual length the one with the median JSD; where there is none, of the shortest
    quarter.
    """
    shortest, longest = usual_lengths(unit)
    table = attacked.once["adversary"]
    rows = table[(table["kind"] == SAME) & table["jsd"].notna()]
    if rows.empty:
        return None
    usual = rows[rows["units"].between(shortest, longest)]
    said = f"of {shortest} to {longest} {unit}"
    if trace.labels is not None:
        right = (trace.predictions == trace.labels).numpy(force=True)
        usual, said = usual[right[usual["instance"]]], f"that are rightly decided and {said[3:]} long"
    short = rows[rows["units"] <= rows["units"].quantile(0.25, interpolation="lower")]
    chosen, among = (short, " shortest") if usual.empty else (usual, f" {said}")
    row = chosen.sort_values(["jsd", "instance"]).iloc[(len(chosen) - 1) // 2]
    return row, f"the text of median JSD ({row['jsd']:.2f}) among the {len(chosen):,}{among}"


def replaced_weights(row: pd.Series, floor: float = 0.0) -> Float[Tensor, " units"]:
    """The other weights of a row of `adversarial_attention`, unit by unit."""
    weights = torch.full((int(row["units"]),), floor, dtype=torch.float64)
    weights[torch.tensor(row["positions"], dtype=torch.int64)] = torch.tensor(row["weights"], dtype=torch.float64)
    return weights


def attack_trace(
    trace: Trace | TraceFolder,
    *,
    seed: int = 0,
    shuffles: int = SHUFFLES,
    asked: Kind | None = None,
    unit: str = "units",
) -> Page:
    """Other weights for all instances of a trace, also of one in shards: summaries, verdicts, and the tables
    `adversary` and `permutation`.

    With `asked` weights of that kind alone are looked for.
    """
    kinds = KINDS if asked is None else {"asked": asked}
    attacked = attack_attention(trace, seed=seed, shuffles=shuffles, kinds=kinds, unit=unit)
    shown = [PageTable(name=name, cells=table) for name, table in attacked.tables.items()]
    every = Section(name="tables", title="All tables", tables=shown, on_terminal=False)
    title = "Attention weights that are replaced and shuffled"
    return Page(title=title, headline=title, sections=[attacked.section(), every])


@dataclass(frozen=True, kw_only=True)
class AttackedText:
    """One text, other weights for it, and what its output is before and after."""

    explanation: Explanation
    kind: Kind
    found: pd.Series
    """Its row of `adversarial_attention`; without a JSD where there are no such weights."""
    shuffled: pd.Series
    """Its row of `permutation_test`."""
    shuffles: int

    @property
    def weights(self) -> Float[Tensor, " units"] | None:
        """The other weights; None where there are none."""
        return None if pd.isna(self.found["jsd"]) else replaced_weights(self.found, self.kind.floor)

    @property
    def after(self) -> Float[Tensor, " classes"] | None:
        """The probabilities that the other weights give."""
        trace, weights = self.explanation.trace, self.weights
        return None if weights is None else (trace.bias + weights @ trace.polarity_scores).softmax(0)

    def summary(self) -> dict[str, Any]:
        """It as plain data."""
        trace, weights, after = self.explanation.trace, self.weights, self.after
        names = trace.class_names
        columns = {
            "unit": [self.explanation.text[start:end] for start, end in self.explanation.spans],
            "attention_weight": trace.attention_weights.tolist(),
            "other_weight": [None] * len(trace.attention_weights) if weights is None else weights.tolist(),
            "push": pushes_of(trace).tolist(),
        }
        shuffled = {name: self.shuffled[name] for name in ("tvd_median", "tvd_mean", "flips")}
        return {
            "text": self.explanation.text,
            "predicted": names[int(trace.predictions[0])],
            "asked": {name: getattr(self.kind, name) for name in ("words", "epsilon", "floor", "without_top")},
            **{name: _known(self.found[name]) for name in ("jsd", "jsd_upper", "exact", "tvd")},
            "probabilities": dict(zip(names, trace.probabilities[0].tolist(), strict=True)),
            "other_probabilities": None if after is None else dict(zip(names, after.tolist(), strict=True)),
            "units": [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
            "shuffled": {"shuffles": self.shuffles, **shuffled},
        }


def _known(value: Any) -> Any:
    return None if pd.isna(value) else value


def attack_text(
    model: Classifier, text: str, *, asked: Kind | None = None, shuffles: int = SHUFFLES, seed: int = 0
) -> AttackedText:
    """The weights farthest from those of one text that keep to what is asked, by default to the very same output."""
    explanation, kind = explain(model, text), asked or KINDS[SAME]
    return AttackedText(
        explanation=explanation,
        kind=kind,
        found=kind.found(explanation.trace).iloc[0],
        shuffled=permutation_test(explanation.trace, shuffles, seed).iloc[0],
        shuffles=shuffles,
    )
