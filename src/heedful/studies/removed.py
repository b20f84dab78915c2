"""Units of many texts taken away from a model that can only be asked: what flips its decisions, and what finds it.

As `heedful.studies.examine.erase_attention` for traces. The smallest set is not known here: in its place is the
smallest that was found, an upper bound.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from heedful.analysis.smallest import SmallSets, flips_of_orders, single_removals, smallest_found
from heedful.analysis.words import shares
from heedful.claims import Verdict, judge
from heedful.claims.answer import DECISION
from heedful.claims.removal import FOREIGN, GUIDE
from heedful.explanations import Explanation
from heedful.notebook import counted
from heedful.report.page import PageTable, Section
from heedful.studies.examine import DECISION_WORDS, RESTING_WORDS, by_decision, summarise
from heedful.studies.measures import MINIMUM, InWords, in_words
from heedful.subjects import Reading

ATTENTION = "attention"
RENAMED = {"is minimal": "no more than found", "× minimum": "× smallest found"}
FOUND_WORDS: InWords = {RENAMED.get(name, name): cell for name, cell in RESTING_WORDS.items()}
OF_DECISIONS: InWords = {
    ("smallest found" if name == "minimum" else name): cell for name, cell in DECISION_WORDS.items()
}

NOTE = (
    "Units are taken away along each order until the decision flips. The readout of this model is not known to be "
    "affine in its attention, so the provably smallest set is not at hand: “minimum” is the smallest set that a search "
    "found, an upper bound. No unit of it can be put back without undoing the flip, and it is proven smallest where "
    "every smaller set was asked about. Both tables are on the texts of which a part was found to be enough. “lead "
    "gone”: how much of the lead over the next class (of the log probabilities) goes with as many units as that set "
    "has (D3); “beats chance”: how often more of it goes than with random ones (S6b)."
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Removed:
    """What taking units away from the texts of a reading came to."""

    tables: Mapping[str, pd.DataFrame]
    """`flips`, one row per order and text; `smallest`, one row per text; with attention also `single`."""
    resting: pd.DataFrame
    decisions: pd.DataFrame
    """As in `heedful.studies.examine.ErasedAttention`; without attention empty."""
    sets: SmallSets
    verdicts: Sequence[Verdict]
    words: str

    def section(self) -> Section:
        """It as a part of a page."""
        tables = [PageTable(name="removal", cells=in_words(self.resting, FOUND_WORDS), data=self.resting)]
        if len(self.decisions):
            cells = in_words(self.decisions, OF_DECISIONS)
            tables.append(PageTable(name="decisions", cells=cells, data=self.decisions))
        title = "For one decision: take words away"
        return Section(
            name="removal",
            title=title,
            question=DECISION,
            lead=self.words,
            verdicts=self.verdicts,
            tables=tables,
            note=NOTE,
        )


def remove_units(
    reading: Reading,
    explanations: Sequence[Explanation],
    *,
    how: str,
    search: Sequence[Explanation] = (),
    seed: int = 0,
    learned: bool = True,
) -> Removed:
    """Take the units of every text away along each explanation, search for the smallest sets, and judge attention.

    search: explanations along which the search begins too.
    """
    by_name = {one.method: one for one in explanations}
    attention = by_name.get(ATTENTION)
    sets = smallest_found(reading, [one.order for one in (*explanations, *search)], how=how)
    weights = shares(by_name[ATTENTION if attention else explanations[0].method].scores, reading.units)
    flips = flips_of_orders(reading, by_name, sets, weights, how=how, seed=seed)
    tables = {"flips": flips, "smallest": _sets_table(sets)}
    resting, decisions = summarise(flips), pd.DataFrame()
    if attention is not None:
        tables["single"] = single_removals(reading, attention, how=how, seed=seed)
        decisions = by_decision(flips, reading.class_names, learned=learned)
    judged = tuple(name for name in FOREIGN if attention is not None and (name != "D4" or GUIDE in by_name))
    return Removed(
        tables=tables,
        resting=resting,
        decisions=decisions,
        sets=sets,
        verdicts=judge(judged, tables),
        words=_words(resting, sets, ATTENTION if attention is not None else explanations[0].method),
    )


def _sets_table(sets: SmallSets) -> pd.DataFrame:
    """One row per text: how many units, how many of them flip its decision, which, and whether that is proven."""
    marks = sets.gone.split(sets.lengths.tolist())
    found = sets.found.numpy()
    return pd.DataFrame(
        {
            "instance": range(len(found)),
            "units": sets.lengths.numpy(),
            "erased": pd.arrays.IntegerArray(np.where(found, sets.erased.numpy(), 0), ~found),
            "positions": [own.nonzero().squeeze(1).tolist() for own in marks],
            "proven": sets.proven.numpy(),
        }
    )


def _words(resting: pd.DataFrame, sets: SmallSets, by: str) -> str:
    """How much goes along an order and how little was found to be enough, in plain words."""
    count = int(sets.resting.sum())
    if not count:
        return "No decision was found to rest on a part of its text: they flip only when everything is gone, or never."
    rows = resting.set_index("ranking")
    most, least = (float(rows["median_fraction"][name]) for name in (by, MINIMUM))
    proven = float(sets.proven[sets.resting].double().mean())
    firm = len(sets.erased) - count
    others = f" {counted(firm, 'other decision')} flip only when everything is gone, or never." if firm else ""
    ordered = "the most attended word" if by == ATTENTION else f"the first by {by.replace('_', ' ')}"
    return (
        f"Taken away from {ordered} on, {most:.1%} of a text must go before the decision flips; {least:.1%} were found "
        f"to be enough (medians over {counted(count, 'text')}), which is proven to be the least for {proven:.0%} of "
        f"them.{others}"
    )
