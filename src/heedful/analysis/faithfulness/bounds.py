"""The smallest and the largest area over the perturbation curve of any order: the ends of NAOPC (Edin et al. 2025).

    AOPC = 1/L Σ_{k=1…L} p(x) − p(x without the first k units)

An order is a chain of sets, each with one unit more. How its ends are found:

- **All sets** of a short text are asked, and the best chain follows by dynamic programming over them: exact.
- **Additive games** of two classes (log-odds that are a sum over the units that are there): the best set of every size
  has the largest weights, so one sort is the best order: exact.
- **A trace**: p of two classes rises with Σ α_i m_i / Σ α_i over what remains, and the best set of each size solves a
  fractional program; Dinkelbach's iteration (Dinkelbach 1967) does. No order can be better than the best set of every
  size: certificates. Orders made of these sets, improved by swapping neighbours, are attained; where the two meet, the
  ends are proven. Of more classes the certificates take each class by itself and are wide.
- **Elsewhere** a beam keeps the best few chains of each size: attained, nothing proven.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.analysis.decisions import wide
from heedful.analysis.erasure_loops import Numbers, arrays, each, shares
from heedful.analysis.faithfulness import bounds_loops as loops
from heedful.analysis.faithfulness.metric import BEAM, FEW, PROVEN, Bounds
from heedful.analysis.faithfulness.planted import Planted
from heedful.analysis.faithfulness.removal import Asked, Prefixes, Sets, every_set
from heedful.text.ragged import segment_sum
from heedful.traces import Trace

FEW_OF_TRACE = 16
"""Units up to which all sets of a trace are gone through where certificates do not prove the ends."""

SOME = 64
"""Texts that are gone through at a time."""


def naopc_bounds(asked: Asked, targets: Int[Tensor, " instances"], *, few: int = FEW, beam: int = BEAM) -> Bounds:
    """The ends of every text, for the probability of the class that is explained.

    few: how many units a text may have for all its sets to be asked.
    beam: how many chains are kept where orders are searched.
    """
    sums = np.full((4, len(targets)), np.nan)
    left = np.ones(len(targets), np.bool_)
    if asked.trace is not None:
        left = wide(asked.trace).numpy(force=True)
        sums[:, ~left] = _of_trace(asked.trace, targets, few=FEW_OF_TRACE)[:, ~left]
    elif isinstance(asked.reading, Planted) and asked.reading.additive:
        left[:], sums = False, _of_weights(asked, asked.reading, targets)
    short = left & (asked.units.lengths.numpy(force=True) <= few)
    for row in short.nonzero()[0].tolist():
        asked.note(_all_sets(asked, row))
    for row in short.nonzero()[0].tolist():
        sums[:, row] = _of_sets(asked, targets, row)
    beaten = (left & ~short).nonzero()[0]
    for column, end in enumerate((1.0, -1.0)):
        sums[column, beaten] = _of_beam(asked, targets, beaten, end, beam)
    return _bounds(asked, targets, torch.from_numpy(sums))


def _bounds(asked: Asked, targets: Int[Tensor, " instances"], sums: Float[Tensor, "ends instances"]) -> Bounds:
    """Areas of sums of p: the smallest sum has the largest area."""
    before = asked.whole.gather(1, targets[:, None]).squeeze(1)
    high, low, outer_high, outer_low = before - sums / asked.units.lengths
    return Bounds(low=low, high=high, outer_low=outer_low, outer_high=outer_high)


def _of_trace(trace: Trace, targets: Int[Tensor, " instances"], *, few: int) -> Numbers:
    """Smallest and largest Σ p_k, attained, and what no order can pass."""
    certified, attained = np.empty((len(trace), 2)), np.empty((len(trace), 2))
    own = arrays(trace.offsets, trace.attention_weights, trace.polarity_scores, trace.bias, targets)
    each(lambda part: loops.ends(*part, *own, certified, attained), shares(len(trace), len(trace.segments)))
    lengths = np.diff(own[0])
    unproven = (np.abs(certified - attained) / lengths[:, None]).sum(1) > PROVEN
    rows = (unproven & (lengths <= few)).nonzero()[0]
    each(lambda some: loops.lattice(some, *own, attained), np.array_split(rows, -(-len(rows) // SOME) or 1))
    certified[rows] = attained[rows]
    return np.concatenate([attained.T, certified.T])


def _of_weights(asked: Asked, game: Planted, targets: Int[Tensor, " instances"]) -> Numbers:
    """Of an additive game of two classes: units in the order of their weights, and the other way round."""
    signs = (2.0 * targets - 1)[game.units.segments]
    totals = []
    for weights in (signs * game.weights, -signs * game.weights):
        order = weights.argsort(descending=True, stable=True)
        order = order[game.units.segments[order].argsort(stable=True)]
        along = torch.arange(len(order)) - game.units.offsets[game.units.segments]
        places = torch.empty_like(order)
        places[order] = along
        said = asked.hear(asked.note(Prefixes(places=places, rows=game.units.segments, sizes=along + 1)))
        own = said.gather(1, targets[game.units.segments][:, None]).squeeze(1)
        totals.append(segment_sum(own, game.units.offsets).numpy())
    return np.stack([*totals, *totals])


def _all_sets(asked: Asked, row: int) -> Sets:
    """All sets of a text by what remains: set s keeps unit i where bit i of s is set."""
    kept = every_set(int(asked.units.lengths[row]))
    return Sets(rows=torch.full((len(kept),), row), gone=~kept.flatten())


def _of_sets(asked: Asked, targets: Int[Tensor, " instances"], row: int) -> Numbers:
    said = asked.hear(asked.note(_all_sets(asked, row)))[:, targets[row]].contiguous()
    ends = loops.chains(said.numpy(), int(asked.units.lengths[row]))
    return np.array([*ends, *ends])


@dataclass(frozen=True, kw_only=True, eq=False)
class Beam:
    """The chains of one text that are kept: what is gone of it, and Σ p_k so far, signed so that less is better."""

    row: int
    gone: Numbers
    sums: Numbers

    def children(self) -> "Beam":
        """Every chain with one unit more, of those that reach the same set the best."""
        parents, units = (~self.gone).nonzero()
        gone = self.gone[parents].copy()
        gone[np.arange(len(units)), units] = True
        distinct, places = np.unique(gone, axis=0, return_inverse=True)
        sums = np.full(len(distinct), np.inf)
        np.minimum.at(sums, places.ravel(), self.sums[parents])
        return Beam(row=self.row, gone=distinct, sums=sums)

    def best(self, values: Numbers, most: int) -> "Beam":
        """The chains with these values added, as many as are kept."""
        sums = self.sums + values
        kept = np.argsort(sums, kind="stable")[:most]
        return Beam(row=self.row, gone=self.gone[kept], sums=sums[kept])


def _of_beam(asked: Asked, targets: Int[Tensor, " instances"], rows: Numbers, end: float, most: int) -> Numbers:
    """Σ p_k of the best chains that a beam finds, of all texts at once, one question for each length."""
    lengths = asked.units.lengths.tolist()
    beams = [Beam(row=row, gone=np.zeros((1, lengths[row]), np.bool_), sums=np.zeros(1)) for row in rows.tolist()]
    done = dict[int, float]()
    while beams:
        grown = [beam.children() for beam in beams]
        values = np.split(end * _asked(asked, targets, grown), np.cumsum([len(beam.sums) for beam in grown])[:-1])
        beams = [beam.best(own, most) for beam, own in zip(grown, values, strict=True)]
        done |= {beam.row: end * float(beam.sums[0]) for beam in beams if beam.gone.all()}
        beams = [beam for beam in beams if not beam.gone.all()]
    return np.array([done[row] for row in rows.tolist()])


def _asked(asked: Asked, targets: Int[Tensor, " instances"], beams: list[Beam]) -> Numbers:
    """p of the class that is explained for all sets of all beams."""
    rows = torch.from_numpy(np.repeat([beam.row for beam in beams], [len(beam.sums) for beam in beams]))
    gone = torch.from_numpy(np.concatenate([beam.gone.ravel() for beam in beams]))
    said = asked.hear(asked.note(Sets(rows=rows, gone=gone)))
    found: Numbers = said.gather(1, targets[rows][:, None]).squeeze(1).numpy()
    return found
