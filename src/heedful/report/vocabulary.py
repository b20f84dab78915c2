"""The map of the vocabulary: every token as a point, what it pushes against the attention it gets."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from heedful.errors import InputError
from heedful.figures.tokens import looks_of

MOST_TOKENS = 60_000  # the most frequent ones, of a larger vocabulary
MOST_NUMBERS = 600_000  # of all tokens and classes
UNGROUPED = "none"


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """Token scores as points: for each class across, attention up, groups by colour."""

    table: pd.DataFrame
    """token, group, attention, polarity or polarity_<class>, and counts per class."""
    classes: Sequence[str]
    """What the polarity columns push towards; of two classes the second alone."""
    most: int = MOST_TOKENS

    def __post_init__(self) -> None:
        missing = {"token", "group", "attention"} - set(self.table)
        if missing or not self.columns:
            raise InputError(
                f"A map of the vocabulary needs token scores; there is no {sorted(missing) or 'polarity'}."
            )

    @property
    def columns(self) -> list[str]:
        return [str(name) for name in self.table if str(name).startswith("polarity")]

    def shown(self) -> pd.DataFrame:
        """The tokens that a page holds, the most frequent first."""
        counts = self.table[[name for name in self.table if str(name).startswith("count_")]].sum(axis=1)
        most = min(self.most, MOST_NUMBERS // len(self.columns))
        return self.table.assign(count=counts).sort_values("count", ascending=False, kind="stable").head(most)

    def data(self) -> dict[str, Any]:
        """All that a page needs to draw it; scores as whole thousandths."""
        shown = self.shown()
        groups = sorted(shown["group"].astype(str).unique(), key=lambda name: (name == UNGROUPED, name))
        looks = looks_of(self.table)
        numbers = shown["group"].astype(str).map({name: number for number, name in enumerate(groups)})
        return {
            "of": len(self.table),
            "classes": list(self.classes),
            "groups": [{"name": name, "colour": looks[name].colour, "turn": looks[name].turn} for name in groups],
            "tokens": shown["token"].astype(str).tolist(),
            "group": numbers.tolist(),
            "count": shown["count"].tolist(),
            "attention": _whole(shown["attention"]),
            "polarity": [_whole(shown[column]) for column in self.columns],
        }


def towards(class_names: Sequence[str]) -> Sequence[str]:
    """What polarity scores push towards: each class, or of two the second."""
    return class_names[1:] if len(class_names) == 2 else class_names


def _whole(values: "pd.Series[float]") -> list[int]:
    return (values.astype(float) * 1000).round().astype(int).tolist()
