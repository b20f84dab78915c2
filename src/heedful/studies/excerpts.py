"""Long texts on the terminal: the units that matter in the order of the text, with a mark where others are left out."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice

from jaxtyping import Float
from rich.text import Text
from torch import Tensor

from heedful.studies.words import printable

MOST_WORDS, MOST_SENTENCES = 200, 40
"""So many units of a text are shown."""

LONGEST = 400
"""Letters of a unit; a text may be one word, or one sentence."""

GAP = " … "


def telling(most: int, *scores: Float[Tensor, " units"]) -> list[int]:
    """The places of at most so many units, in their order: the largest by each of the scores, in turn."""
    orders = [score.abs().argsort(descending=True, stable=True).tolist() for score in scores]
    distinct = dict.fromkeys(chain.from_iterable(zip(*orders, strict=True)))
    return sorted(islice(distinct, most))


def in_stretches(places: Sequence[int], count: int) -> Iterator[tuple[int, bool]]:
    """Each place, and whether units are left out before it; `count`, the end, only if some are left out there."""
    for before, place in zip([-1, *places], places, strict=False):
        yield place, place > before + 1
    if places and places[-1] < count - 1:
        yield count, True


def cut(unit: str) -> str:
    """A unit that is shown, on one line and not too long."""
    return printable(unit if len(unit) <= LONGEST else unit[:LONGEST] + "…")


def coloured(
    text: str,
    spans: Sequence[Sequence[int]],
    shades: Sequence[float],
    colour: Callable[[float], str],
    places: Sequence[int] | None = None,
) -> Text:
    """Units on a ground of their colour, and what stands between neighbours; all of them, or those at some places."""
    shown = Text()
    for place, gap in in_stretches(range(len(spans)) if places is None else places, len(spans)):
        if place == len(spans):
            shown.append(GAP)
            continue
        start, end = spans[place]
        shown.append(GAP if gap else printable(text[spans[place - 1][1] if place else 0 : start]))
        unit = text[start:end]
        shown.append(printable(unit) if places is None else cut(unit), f"black on {colour(shades[place])}")
    return shown


def left_out(shown: int, count: int, noun: str) -> str:
    """How many units are not shown, and how to see them."""
    return f"shown are {shown:,} of {count:,} {noun}: those attended to most and those that gave most; --all shows all"
