"""An explanation: one number for every unit of some texts, from wherever it comes. Knows no model.

A ranking of a trace is one, and so is what Captum, SHAP, another tool or a person says. An explanation orders units; a
reading of the texts (`heedful.subjects`) says what their removal does; a metric is a function of the two.
"""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.errors import InputError, UnknownName
from heedful.notebook import MOST_TEXTS, PICTURES, Strip, View, Viewed, counted, listed, short
from heedful.subjects import Units
from heedful.text.ragged import offsets_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class ExplanationError(InputError):
    """Numbers that do not make an explanation."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Explanation(Viewed, Units):
    """One score for every unit of some texts: the larger, the more it speaks for the class that is explained.

    Made by `Explanation.on` of numbers for the units of a reading, or by `Explanation.of_lists` of what another tool or
    a person says.

    offsets: where the units of each text begin.
    texts, spans, names: the texts, where in them units stand, and what to show for each; None where not known.
    scores: one per unit; in a signed explanation what is below zero speaks against the class.
    targets: the number of the class that is explained, for each text.
    class_names: the classes in the order of their numbers.
    method: what it is called in tables.
    signed: whether scores below zero speak against the class; the sizes of attention are unsigned.
    seconds, passes: what it cost, for all texts together: time, and how many texts the model read; None: not known.
    remark: what must be said beside it, a sentence or nothing.
    """

    scores: Float[Tensor, " units"]
    targets: Int[Tensor, " instances"]
    class_names: tuple[str, ...]
    method: str
    signed: bool
    seconds: float | None = None
    passes: int | None = None
    remark: str = ""

    @classmethod
    def of_lists(
        cls,
        scores: Sequence[Sequence[float]],
        *,
        targets: Sequence[int] | Int[Tensor, " instances"],
        class_names: Sequence[str],
        method: str,
        units: Sequence[Sequence[str]] | None = None,
        texts: Sequence[str] | None = None,
        spans: Sequence[Sequence[tuple[int, int]]] | None = None,
        signed: bool | None = None,
        seconds: float | None = None,
        passes: int | None = None,
        remark: str | None = "",
    ) -> "Explanation":
        """A checked explanation of a list of numbers for each text, with the units, the texts, or where units stand.

        signed: None takes scores for signed if any is below zero.

        >>> from heedful.explanations import Explanation
        >>> said = Explanation.of_lists([[0.1, 2.0]], targets=[1], class_names=["no", "yes"], method="me",
        ...                             units=[["a", "film"]])
        >>> said.order.tolist(), said.signed
        ([1, 0], False)
        """
        lengths = [len(one) for one in scores]
        _check(bool(lengths) and min(lengths) > 0, "Every text needs one score or more; there are texts without any.")
        flat = _finite([number for one in scores for number in one])
        _check_lengths("units", units, lengths)
        _check_lengths("spans", spans, lengths)
        about = torch.as_tensor(targets, dtype=torch.int64)
        _check(
            len(about) == len(lengths), f"One target per text is needed: {len(lengths)} texts, {len(about)} targets."
        )
        known = bool(((about >= 0) & (about < len(class_names))).all())
        _check(known, f"Targets are class numbers from 0 to {len(class_names) - 1}.")
        _check(texts is None or len(texts) == len(lengths), "There must be as many texts as lists of scores.")
        return cls(
            offsets=offsets_of(torch.tensor(lengths)),
            texts=texts,
            spans=None if spans is None else torch.tensor([place for one in spans for place in one]),
            names=None if units is None else [name for one in units for name in one],
            scores=flat,
            targets=about,
            class_names=tuple(class_names),
            method=method,
            signed=bool((flat < 0).any()) if signed is None else signed,
            seconds=seconds,
            passes=passes,
            remark=remark or "",
        )

    @classmethod
    def on(
        cls,
        units: Units,
        scores: Float[Tensor, " units"],
        targets: Int[Tensor, " instances"],
        class_names: Sequence[str],
        *,
        method: str,
        signed: bool,
        **cost: Any,
    ) -> "Explanation":
        """Scores for units that are there already; what is not finite is refused."""
        own = {name: getattr(units, name) for name in ("offsets", "texts", "spans", "names")}
        checked, names = _finite(scores), tuple(class_names)
        return cls(**own, scores=checked, targets=targets, class_names=names, method=method, signed=signed, **cost)

    def __repr__(self) -> str:
        remark = f". {self.remark}" if self.remark else ""
        return f"Explanation({self._sizes()}{remark})"

    def _sizes(self) -> str:
        sizes = f"{counted(len(self), 'text')}, {counted(len(self.scores), 'unit')}"
        return f"{short(self.method)}: {sizes}, classes {listed(self.class_names)}"

    @property
    def view(self) -> View:
        return self._view(range(len(self))[:MOST_TEXTS])

    def plot(self, ax: "Axes | None" = None, instance: int = 0) -> "Axes":
        """Draw the scores of one text, on these axes or new ones, and return them."""
        return self._view(range(len(self))[instance : instance + 1]).plot(ax)

    def _view(self, shown: range) -> View:
        """Of these texts; the first is drawn."""
        key = "Green speaks for the class that is explained, purple against it." if self.signed else ""
        first = self.take(torch.tensor(list(shown[:1]), dtype=torch.int64))
        return View(
            title=f"Explanation by {self._sizes()}",
            sentences=[said for said in (key, self.remark) if said],
            parts=[self._strip(row) for row in shown],
            drawing="scores_of_units",
            data=first.to_frame(),
        )

    def _strip(self, row: int) -> Strip:
        place = slice(int(self.offsets[row]), int(self.offsets[row + 1]))
        heading = f"text {row}: for {short(self.class_names[int(self.targets[row])])}"
        return Strip(heading=heading, units=self.shown[place], values=self.scores[place].tolist(), signed=self.signed)

    @cached_property
    def order(self) -> Int[Tensor, " units"]:
        """The units of each text, the largest score first; of equal ones the first."""
        by_score = self.scores.argsort(descending=True, stable=True)
        return by_score[self.segments[by_score].argsort(stable=True)]

    @cached_property
    def places(self) -> Int[Tensor, " units"]:
        """For every unit its place, from 0 on, in the order of its text."""
        found = torch.empty_like(self.order)
        found[self.order] = torch.arange(len(self.order)) - self.offsets[:-1][self.segments]
        return found

    def with_scores(self, scores: Float[Tensor, " units"], method: str | None = None) -> "Explanation":
        """The same units with other scores, of which nothing is said."""
        return replace(self, scores=_finite(scores), method=method or self.method, remark="")

    def take(self, rows: Int[Tensor, " rows"]) -> "Explanation":
        """The explanation of these texts, in this order."""
        where = self.of_rows(rows)
        return replace(
            self,
            offsets=offsets_of(self.lengths[rows]),
            texts=None if self.texts is None else [self.texts[row] for row in rows.tolist()],
            spans=None if self.spans is None else self.spans[where],
            names=None if self.names is None else [self.names[unit] for unit in where.tolist()],
            scores=self.scores[where],
            targets=self.targets[rows],
        )

    def save(self, path: Path | str) -> None:
        """Write it by the ending of the name: to be read again (.parquet, .jsonl, .eraser.jsonl), as a table (.csv,
        .tex), a picture (.svg, .pdf, .png) or a page (.html)."""
        if Path(path).suffix in {".html", *PICTURES}:
            super().save(path)
        else:
            importlib.import_module("heedful.explanation_files").write_explanations(path, [self])

    def to_frame(self) -> pd.DataFrame:
        """One row per unit: instance, position, unit, score, and the class that is explained."""
        names: np.ndarray[Any, Any] = np.array(self.class_names, dtype=object)
        return pd.DataFrame(
            {
                "instance": self.segments.numpy(force=True),
                "position": np.arange(len(self.segments)) - self.offsets[self.segments].numpy(force=True),
                "unit": list(self.shown),
                "score": self.scores.numpy(force=True),
                "target": names.take(self.targets[self.segments].numpy(force=True)),
            }
        )


def class_number(named: Any, class_names: Sequence[str]) -> int:
    """The number of a class: of its name, or the number itself."""
    if not isinstance(named, (str, bool)) and isinstance(named, (int, np.integer)) and 0 <= named < len(class_names):
        return int(named)
    if str(named) in class_names:
        return list(class_names).index(str(named))
    raise UnknownName("class", named, class_names)


def _check(holds: bool, sentence: str) -> None:
    if not holds:
        raise ExplanationError(sentence)


def _check_lengths(name: str, parts: Sequence[Sequence[Any]] | None, lengths: Sequence[int]) -> None:
    found = lengths if parts is None else [len(one) for one in parts]
    wrong = [row for row, (own, other) in enumerate(zip(lengths, found, strict=False)) if own != other]
    _check(len(found) == len(lengths), f"{name} are of {len(found)} texts, scores of {len(lengths)}.")
    if wrong:
        row = wrong[0]
        _check(False, f"Text {row} has {lengths[row]} scores and {found[row]} {name}; there must be one for each.")


def _finite(values: Sequence[float] | Float[Tensor, " units"]) -> Float[Tensor, " units"]:
    try:
        numbers = torch.as_tensor(values, dtype=torch.float64).detach().cpu()
    except (TypeError, ValueError, RuntimeError) as error:
        raise ExplanationError(f"Scores must be numbers: {error}.") from error
    _check(bool(numbers.isfinite().all()), "Scores must be finite; there is NaN or infinity among them.")
    return numbers
