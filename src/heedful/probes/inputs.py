"""Erasure at the input: units leave the text, or become unknown words, and the encoder reads it again.

Erasing an attention weight leaves a word in the hidden vectors of its neighbours; deleting the word does not. Without
a contextual encoder the two are the same. Units are words, or the sentences of a hierarchical model with all their
words.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Int
from numpy.typing import NDArray
from scipy.stats import spearmanr
from torch import Tensor

from heedful.analysis.decisions import NEVER, decisions, decisions_after
from heedful.analysis.erasure import first_flips
from heedful.analysis.rankings import Ranking, ranked, ranking
from heedful.errors import InputError, UnknownName
from heedful.models.classifier import UNITS_AT_ONCE, Classifier
from heedful.text.corpus import Split
from heedful.text.ragged import Batch, Sentences, in_order, lengths_of, offsets_of, positions_of, segment_sum
from heedful.text.tokenize import Tokens
from heedful.traces import Trace
from heedful.tracing import trace

ATTENTION, MODES = "attention", ("delete", "mask")
SPACINGS = ("even", "geometric")
UNKNOWN_TOKEN = 0
RANKINGS = ("attention", "gradient", "product", "random")


@dataclass(frozen=True, kw_only=True)
class Grid:
    """How many units of a document are gone at each look: after every unit, or at a few places.

    Reading a text again after every unit costs the square of its length. With `steps` there are at most so many looks,
    the last with everything gone: at even shares of the text, or at sizes that grow by a factor from one unit on, which
    looks closely where flips come early.
    """

    steps: int | None = None
    spacing: str = "even"

    def __post_init__(self) -> None:
        if self.steps is not None and self.steps < 1:
            raise InputError(f"steps must be 1 or more, or None to look after every unit; got {self.steps}.")
        if self.spacing not in SPACINGS:
            raise UnknownName("spacing", self.spacing, SPACINGS)

    def sizes(self, units: int) -> list[int]:
        """The looks at a document of so many units, in order, the last at all of them."""
        if self.steps is None or self.steps >= units:
            return list(range(1, units + 1))
        parts = np.arange(1, self.steps + 1) / self.steps
        even = self.spacing == "even"
        sizes = np.ceil(units * parts - 1e-9) if even else np.rint(units ** np.linspace(0, 1, self.steps))
        return sorted({*sizes.astype(int).tolist(), units})

    def looks(self, lengths: Int[Tensor, " instances"]) -> Iterator[Int[Tensor, " instances"]]:
        """Look after look how many units of every document are gone; the shorter ones stay at all of them."""
        sizes = {units: self.sizes(units) for units in lengths.unique().tolist()}
        for look in range(max(map(len, sizes.values()))):
            at = {units: found[min(look, len(found) - 1)] for units, found in sizes.items()}
            yield torch.tensor([at[units] for units in lengths.tolist()])


def input_flips(
    model: Classifier,
    split: Split,
    by: str | Ranking = "attention",
    *,
    mode: str = "delete",
    steps: int | None = None,
    spacing: str = "even",
    rows: Sequence[int] | None = None,
    seed: int = 0,
    order: int = 0,
) -> pd.DataFrame:
    """Per document the shortest prefix of the ranking whose removal from the text flips the decision.

    The ranking is that of the unchanged text. `mode` delete takes the units out; mask puts the unknown word in place
    of every word of theirs. A text with everything deleted has no units to read: its logits are the bias, as when all
    attention is erased. One with everything masked is read like any other.
    Columns as of `first_flips`: instance, units, erased (null: never), fraction, mass (attention weight of the removed
    units in the unchanged text), flipped_to. With `steps` (see `Grid`) `erased` is the first look at which the decision
    has flipped: an upper bound. `rows` takes some documents of the split only.
    """
    chosen = ranking(by)
    if mode not in MODES:
        raise UnknownName("mode of input erasure", mode, MODES)
    grid = Grid(steps=steps, spacing=spacing)
    some = _some(split, rows)
    reader = _Reader(model=copy.deepcopy(model).double().eval(), texts=_units(model, some), mode=mode)
    found = trace(model, some)
    places = _places(found, chosen, seed, order)
    return _table(found, _first(found, reader, places, grid), places, rows)


def flips_by_level(
    model: Classifier,
    split: Split,
    *,
    rankings: Sequence[str] = RANKINGS,
    modes: Sequence[str] = MODES,
    steps: int | None = None,
    spacing: str = "even",
    rows: Sequence[int] | None = None,
    seed: int = 0,
    watch: Callable[[int, int], None] | None = None,
) -> pd.DataFrame:
    """Both notions of erasure on the same documents, at the same looks, as tables of `first_flips` below each other.

    `level` is attention, delete or mask, `ranking` the ranking; the other columns are those of `first_flips`, and what
    is made of its tables can be made of these. `watch` is told how many of how many tables are there.
    """
    found, grid = trace(model, _some(split, rows)), Grid(steps=steps, spacing=spacing)
    levels = [(level, by) for level in (ATTENTION, *modes) for by in rankings]
    parts = []
    for done, (level, by) in enumerate(levels, start=1):
        if level == ATTENTION:
            part = _attention_flips(found, by, grid, seed, rows)
        else:
            part = input_flips(model, split, by, mode=level, steps=steps, spacing=spacing, rows=rows, seed=seed)
        parts.append(part.assign(level=level, ranking=by))
        if watch is not None:
            watch(done, len(levels))
    table = pd.concat(parts, ignore_index=True)
    return table[["level", "ranking", *(column for column in table if column not in {"level", "ranking"})]]


def compare_levels(flips: pd.DataFrame) -> pd.DataFrame:
    """Each way of changing the input beside erased attention, per ranking, on documents of more than one unit.

    Medians of the fraction, the rank correlation of the counts (Spearman) and the share where the input flips with
    fewer are over the documents that both flip (`both`); `equal` is the share of all documents where the counts are the
    same, never counting as a count.
    """
    tables = {key: rows.reset_index(drop=True) for key, rows in flips.groupby(["level", "ranking"], sort=False)}
    return pd.DataFrame(
        [
            {"ranking": by, "mode": level, **_compare(rows, tables[ATTENTION, by])}
            for (level, by), rows in tables.items()
            if level != ATTENTION
        ]
    )


def _attention_flips(found: Trace, by: str, grid: Grid, seed: int, rows: Sequence[int] | None) -> pd.DataFrame:
    """`first_flips`, seen at the looks of the grid only."""
    if grid.steps is None:
        table = first_flips(found, by=by, seed=seed)
        return table if rows is None else table.assign(instance=np.array(rows))
    places = _places(found, ranking(by), seed, 0)
    return _table(found, _first(found, _Weights(found=found), places, grid), places, rows)


def _compare(given: pd.DataFrame, attended: pd.DataFrame) -> dict[str, object]:
    """One row of `compare_levels`."""
    several = given["units"] > 1
    one, other = (_counts(table[several]) for table in (given, attended))
    both = ~np.isnan(one) & ~np.isnan(other)
    medians = [table.loc[several, "fraction"].to_numpy()[both] for table in (given, attended)]
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    return {
        "instances": int(several.sum()),
        "both": int(both.sum()),
        "never_input": int(np.isnan(one).sum()),
        "never_attention": int(np.isnan(other).sum()),
        "median_fraction_input": float(np.median(medians[0])) if both.any() else np.nan,
        "median_fraction_attention": float(np.median(medians[1])) if both.any() else np.nan,
        "correlation": _rank_correlation(one[both], other[both]),
        "equal": float(same.mean()) if len(same) else np.nan,
        "input_sooner": float((one[both] < other[both]).mean()) if both.any() else np.nan,
    }


def _counts(table: pd.DataFrame) -> NDArray[np.float64]:
    """How many units are erased, NaN where nothing flips."""
    return table["erased"].to_numpy(np.float64, na_value=np.nan)


def _rank_correlation(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Spearman's; none where either does not vary."""
    if len(one) < 2 or np.ptp(one) == 0 or np.ptp(other) == 0:
        return np.nan
    return float(spearmanr(one, other).statistic)


@dataclass(frozen=True, kw_only=True)
class _Units:
    """Documents as units, units as words: unit u has the tokens bounds[u] …, document t the units offsets[t] …."""

    tokens: Int[Tensor, " words"]
    bounds: Int[Tensor, " unit_bounds"]
    offsets: Int[Tensor, " bounds"]


def _units(model: Classifier, split: Split) -> _Units:
    words = split.tokens.numbers
    if model.hierarchical:
        return _Units(tokens=words, bounds=split.sentences.bounds, offsets=split.sentences.offsets)
    return _Units(tokens=words, bounds=torch.arange(len(words) + 1), offsets=split.offsets)


def _some(split: Split, rows: Sequence[int] | None) -> Split:
    """Some documents of a split, as a split."""
    if rows is None:
        return split
    wrong = [row for row in rows if not 0 <= row < len(split)]
    if wrong or not len(rows):
        raise InputError(f"rows must name documents from 0 to {len(split) - 1}; got {wrong[0] if wrong else 'none'}.")
    chosen = torch.tensor(list(rows))
    places = positions_of(split.offsets, chosen)
    tokens = Tokens(
        numbers=split.tokens.numbers[places],
        offsets=offsets_of(split.lengths[chosen]),
        spans=split.tokens.spans[places],
    )
    return Split(texts=[split.texts[row] for row in rows], labels=split.labels[chosen], tokens=tokens)


def _places(found: Trace, by: Ranking, seed: int, order: int) -> Int[Tensor, " units"]:
    """For every unit its place in the ranking of its document, from 0 on."""
    units = ranked(found, by, seed=seed, order=order)
    places = torch.empty_like(units)
    places[units] = torch.arange(len(units)) - found.offsets[:-1][found.segments]
    return places


@dataclass(frozen=True, kw_only=True)
class _Weights:
    """Decides after attention weights were erased."""

    found: Trace

    def decide(self, rows: Int[Tensor, " rows"], gone: Bool[Tensor, " units"]) -> Int[Tensor, " rows"]:
        return decisions_after(self.found, gone)[rows]


@dataclass(frozen=True, kw_only=True)
class _Reader:
    """Decides by reading changed texts again."""

    model: Classifier
    texts: _Units
    mode: str

    def decide(self, rows: Int[Tensor, " rows"], gone: Bool[Tensor, " units"]) -> Int[Tensor, " rows"]:
        """The class of these documents without (or with unknown words for) the units that are gone."""
        result = torch.full_like(rows, int(self.model.bias().argmax()))
        kept = torch.ones_like(gone) if self.mode == "mask" else ~gone
        alive = (segment_sum(kept.double(), self.texts.offsets)[rows] > 0).nonzero().squeeze(1)
        words = lengths_of(self.texts.bounds[self.texts.offsets])[rows[alive]]
        for part in in_order(words, UNITS_AT_ONCE):
            result[alive[part]] = self._read(rows[alive[part]], kept, gone)
        return result

    @torch.no_grad()
    def _read(
        self, rows: Int[Tensor, " rows"], kept: Bool[Tensor, " units"], gone: Bool[Tensor, " units"]
    ) -> Int[Tensor, " rows"]:
        batch = self._batch(rows, kept, gone)
        assert batch.sentences is not None
        attention, polarity = self.model.unit_scores(batch.to(self.model.embedding.device))
        read = Trace.from_arrays(
            offsets=batch.sentences.offsets,
            attention_scores=attention,
            polarity_scores=polarity,
            bias=self.model.bias(),
        )
        return decisions(read)

    def _batch(self, rows: Int[Tensor, " rows"], kept: Bool[Tensor, " units"], gone: Bool[Tensor, " units"]) -> Batch:
        """The units that are kept, one document after the other; of a flat model each is a sentence of one word."""
        texts = self.texts
        units = positions_of(texts.offsets, rows)
        counts = segment_sum(kept[units].double(), offsets_of(lengths_of(texts.offsets)[rows])).long()
        units = units[kept[units]]
        tokens = texts.tokens[positions_of(texts.bounds, units)]
        lengths = lengths_of(texts.bounds)[units]
        if self.mode == "mask":
            tokens = tokens.masked_fill(torch.repeat_interleave(gone[units], lengths), UNKNOWN_TOKEN)
        sentences = Sentences(bounds=offsets_of(lengths), offsets=offsets_of(counts))
        return Batch(
            tokens=tokens,
            offsets=sentences.bounds[sentences.offsets],
            labels=torch.zeros_like(rows),
            instances=rows,
            sentences=sentences,
        )


@dataclass(frozen=True, kw_only=True)
class _Flips:
    """How many units are gone at the first look that shows a flip (or NEVER), and the class then."""

    erased: Int[Tensor, " instances"]
    flipped_to: Int[Tensor, " instances"]


def _first(found: Trace, reader: _Reader | _Weights, places: Int[Tensor, " units"], grid: Grid) -> _Flips:
    """Look after look, all documents that have not flipped in one batch."""
    before = decisions(found)
    erased, flipped_to = torch.full_like(before, NEVER), before.clone()
    last = torch.zeros_like(before)
    for sizes in grid.looks(found.lengths):
        rows = ((erased == NEVER) & (sizes > last)).nonzero().squeeze(1)
        after = reader.decide(rows, places < sizes[found.segments])
        flipped = after != before[rows]
        erased[rows[flipped]], flipped_to[rows[flipped]] = sizes[rows[flipped]], after[flipped]
        last = sizes
    return _Flips(erased=erased, flipped_to=flipped_to)


def _table(found: Trace, flips: _Flips, places: Int[Tensor, " units"], rows: Sequence[int] | None) -> pd.DataFrame:
    """The flips with the columns of `first_flips`."""
    never, units = (flips.erased == NEVER).numpy(), found.lengths.numpy()
    erased = np.where(never, 0, flips.erased.numpy())
    gone = places < flips.erased[found.segments]
    mass = segment_sum(found.attention_weights * gone, found.offsets).numpy()
    return pd.DataFrame(
        {
            "instance": np.arange(len(found)) if rows is None else np.array(rows),
            "units": units,
            "erased": pd.arrays.IntegerArray(erased, never),
            "fraction": np.where(never, np.nan, erased / units),
            "mass": np.where(never, np.nan, mass),
            "flipped_to": pd.arrays.IntegerArray(flips.flipped_to.numpy(), never.copy()),
        }
    )
