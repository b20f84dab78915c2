"""A heedful model that reads changed texts again: units leave the text, or become unknown words.

Erasing an attention weight leaves a word in the hidden vectors of its neighbours; deleting the word does not. Without
a contextual encoder the two are the same. A frozen transformer reads the changed text again, piece by piece, its mask
token in place of what is masked. Units are words, or the sentences of a hierarchical model with all their
words.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.analysis.decisions import decisions
from heedful.analysis.flips import Grid, TraceReading, flips_along, in_front
from heedful.analysis.rankings import PAPERS, Ranking, ranked, ranking
from heedful.errors import InputError, UnknownName
from heedful.models.classifier import UNITS_AT_ONCE, Classifier
from heedful.subjects import ATTENTION, DELETE, MASK, Units, check_way
from heedful.text.corpus import Split
from heedful.text.ragged import Batch, Sentences, in_order, lengths_of, offsets_of, positions_of, segment_sum
from heedful.text.tokenize import Tokens
from heedful.traces import Trace
from heedful.tracing import trace

MODES = (DELETE, MASK)
UNKNOWN_TOKEN = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelReading(TraceReading):
    """A model and some texts; what is deleted or masked is read again, what erased weights do the trace knows.

    A text with everything deleted has no units to read: its logits are the bias, as when all attention is erased. One
    with everything masked is read like any other.
    """

    model: Classifier
    split: Split
    ways: tuple[str, ...] = (ATTENTION, *MODES)

    @classmethod
    def of(cls, model: Classifier, split: Split) -> "ModelReading":
        return cls(model=copy.deepcopy(model).double().eval(), split=split, trace=trace(model, split))

    @cached_property
    def words(self) -> Sentences:
        """Unit u has the words bounds[u] …, text t the units offsets[t] …."""
        if self.model.hierarchical:
            return self.split.sentences
        return Sentences(bounds=torch.arange(len(self.split.tokens.numbers) + 1), offsets=self.split.offsets)

    @cached_property
    def units(self) -> Units:
        spans, bounds = self.split.tokens.spans, self.words.bounds
        ends = torch.stack([spans[bounds[:-1], 0], spans[bounds[1:] - 1, 1]], 1)
        return Units(offsets=self.words.offsets, texts=self.split.texts, spans=ends)

    def without(
        self, rows: Int[Tensor, " rows"], gone: Bool[Tensor, " places"], how: str = DELETE
    ) -> Float[Tensor, "rows classes"]:
        if how == ATTENTION:
            return super().without(rows, gone)
        everything = self.model.bias().detach().softmax(0).expand(len(rows), -1)
        return self._read(rows, gone, how, lambda read: read.probabilities, everything)

    def decide(
        self, rows: Int[Tensor, " rows"], gone: Bool[Tensor, " places"], how: str = DELETE
    ) -> Int[Tensor, " rows"]:
        if how == ATTENTION:
            return super().decide(rows, gone)
        everything = self.model.bias().argmax().expand(len(rows))
        return self._read(rows, gone, how, decisions, everything)

    @torch.no_grad()
    def _read(
        self,
        rows: Int[Tensor, " rows"],
        gone: Bool[Tensor, " places"],
        how: str,
        answer: Callable[[Trace], Tensor],
        everything: Tensor,
    ) -> Tensor:
        """The answer of the trace of each changed text, or the one where nothing is left to read."""
        check_way(how, self)
        result = everything.to(rows.device, copy=True)
        begins = offsets_of(self.units.lengths[rows])
        kept = torch.ones_like(gone) if how == MASK else ~gone
        alive = (segment_sum(kept.double(), begins) > 0).nonzero().squeeze(1)
        sizes = lengths_of(self.words.bounds[self.words.offsets])[rows[alive]]
        for part in in_order(sizes, UNITS_AT_ONCE):
            places = positions_of(begins, alive[part])
            batch = self._batch(rows[alive[part]], kept[places], (gone & kept)[places])
            result[alive[part]] = answer(self._traced_again(batch))
        return result

    def _traced_again(self, batch: Batch) -> Trace:
        assert batch.sentences is not None
        attention, polarity = self.model.unit_scores(batch.to(self.model.embedding.device))
        offsets, bias = batch.sentences.offsets, self.model.bias()
        return Trace.from_arrays(offsets=offsets, attention_scores=attention, polarity_scores=polarity, bias=bias)

    def _batch(
        self, rows: Int[Tensor, " rows"], kept: Bool[Tensor, " places"], masked: Bool[Tensor, " places"]
    ) -> Batch:
        """The units that are kept, one text after the other; of a flat model each is a sentence of one word."""
        bounds, units = self.words.bounds, self.units.of_rows(rows)[kept]
        counts = segment_sum(kept.double(), offsets_of(self.units.lengths[rows])).long()
        lengths = lengths_of(bounds)[units]
        tokens = self.split.tokens.numbers[positions_of(bounds, units)]
        sentences = Sentences(bounds=offsets_of(lengths), offsets=offsets_of(counts))
        reader = self.model.reader
        return Batch(
            tokens=tokens.masked_fill(torch.repeat_interleave(masked[kept], lengths), UNKNOWN_TOKEN),
            offsets=sentences.bounds[sentences.offsets],
            labels=torch.zeros_like(rows),
            instances=rows,
            sentences=sentences,
            vectors=None if reader is None else reader.changed(self.split, rows, kept, masked),
        )


def input_flips(
    model: Classifier,
    split: Split,
    by: str | Ranking = "attention",
    *,
    mode: str = DELETE,
    steps: int | None = None,
    spacing: str = "even",
    rows: Sequence[int] | None = None,
    seed: int = 0,
    order: int = 0,
) -> pd.DataFrame:
    """Per document the shortest prefix of the ranking whose removal from the text flips the decision.

    The ranking is that of the unchanged text. `mode` delete takes the units out; mask puts the unknown word in place
    of every word of theirs. Columns as of `first_flips`: instance, units, erased (null: never), fraction, mass
    (attention weight of the removed units in the unchanged text), flipped_to. With `steps` (see `Grid`) `erased` is the
    first look at which the decision has flipped: an upper bound. `rows` takes some documents of the split only.
    """
    chosen = ranking(by)
    if mode not in MODES:
        raise UnknownName("mode of input erasure", mode, MODES)
    grid = Grid(steps=steps, spacing=spacing)
    return _flips(ModelReading.of(model, some_documents(split, rows)), chosen, mode, grid, rows, seed=seed, order=order)


def flips_by_level(
    model: Classifier,
    split: Split,
    *,
    rankings: Sequence[str] = PAPERS,
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
    reading, grid = ModelReading.of(model, some_documents(split, rows)), Grid(steps=steps, spacing=spacing)
    levels = [(level, by) for level in (ATTENTION, *modes) for by in rankings]
    parts = []
    for done, (level, by) in enumerate(levels, start=1):
        table = _flips(reading, ranking(by), level, grid, rows, seed=seed)
        parts.append(in_front({"level": level, "ranking": by}, table))
        if watch is not None:
            watch(done, len(levels))
    return pd.concat(parts, ignore_index=True)


def _flips(
    reading: ModelReading, by: Ranking, how: str, grid: Grid, rows: Sequence[int] | None, *, seed: int, order: int = 0
) -> pd.DataFrame:
    """The flips of a ranking of the unchanged texts, the documents by their numbers in the split."""
    units = ranked(reading.trace, by, seed=seed, order=order)
    table = flips_along(reading, units, reading.trace.attention_weights, how=how, grid=grid)
    return table if rows is None else table.assign(instance=np.array(rows))


def some_documents(split: Split, rows: Sequence[int] | None) -> Split:
    """Some documents of a split, by their numbers, as a split; None takes all."""
    if rows is None:
        return split
    wrong = [row for row in rows if not 0 <= row < len(split)]
    if wrong or not len(rows):
        raise InputError(f"rows must name documents from 0 to {len(split) - 1}; got {wrong[0] if wrong else 'none'}.")
    chosen = split.batch(torch.tensor(list(rows)))
    spans = split.tokens.spans[positions_of(split.offsets, chosen.instances)]
    tokens = Tokens(numbers=chosen.tokens, offsets=chosen.offsets, spans=spans)
    return Split(texts=[split.texts[row] for row in rows], labels=chosen.labels, tokens=tokens)
