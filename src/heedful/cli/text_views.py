"""One text on the terminal, in colour by attention and use, or losing its units; of a long one what matters."""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice

import torch
from jaxtyping import Float
from rich.console import Console
from rich.text import Text
from torch import Tensor

from heedful.analysis.adversary import LARGEST
from heedful.figures.style import ATTENDED, AWAY, TOWARDS, mixed
from heedful.report.strips import pushes_of, relative
from heedful.report.terminal import printable
from heedful.studies.attack import AttackedText
from heedful.studies.explain import LOOKS, ErasedText, Explanation
from heedful.studies.measures import MINIMUM
from heedful.tracing import WordWeights

MOST_WORDS, MOST_SENTENCES, MOST_ROWS = 200, 40, 12
"""So many units of a text are shown, and so many rows of the table of its tokens."""

LONGEST = 400
"""Letters of a unit; a text may be one word, or one sentence."""

GAP = " … "


def print_explanation(explanation: Explanation, console: Console | None = None, *, everything: bool = False) -> None:
    """The text in colour by attention, by what was used and by what words would push, then a table of its tokens.

    Of a long text the units that matter, unless `everything` is asked for.
    """
    screen = console or Console()
    found = explanation.trace
    predicted = int(found.predictions[0])
    screen.print(Text(f"predicted {found.class_names[predicted]} ({float(found.probabilities[0, predicted]):.1%})"))
    places = None if everything else _places(explanation)
    for name, strip in _strips(explanation, places):
        screen.print(Text(f"{name:11} ", "dim") + strip)
    if places is not None and len(places) < len(explanation.spans):
        noun = "words" if explanation.words is None else "sentences"
        screen.print(Text(left_out(len(places), len(explanation.spans), noun), "dim"))
    _print_table(screen, explanation, everything=everything)


def _places(explanation: Explanation) -> list[int]:
    """The units that are shown of a long text."""
    most = MOST_WORDS if explanation.words is None else MOST_SENTENCES
    return telling(most, explanation.trace.attention_weights, explanation.trace.contributions)


def _strips(explanation: Explanation, places: Sequence[int] | None) -> Iterator[tuple[str, Text]]:
    found, text, spans = explanation.trace, explanation.text, explanation.spans
    yield "attention", coloured(text, spans, relative(found.attention_weights).tolist(), _attended, places)
    if explanation.words is not None:
        yield "in sentences", coloured_words(text, explanation.words, places)
    yield "used here", coloured(text, spans, relative(found.contributions).tolist(), _for_or_against, places)
    yield "would push", coloured(text, spans, relative(pushes_of(found)).tolist(), _for_or_against, places)


def _print_table(screen: Console, explanation: Explanation, *, everything: bool) -> None:
    """The tokens that gave most, with their numbers."""
    weights, used = explanation.trace.attention_weights, explanation.trace.contributions
    pushes, shown = pushes_of(explanation.trace), printable if everything else cut
    screen.print(Text("\nweight α  used α·z  push z   token", "dim"))
    order = used.abs().argsort(descending=True, stable=True).tolist()
    for unit in order if everything else order[:MOST_ROWS]:
        start, end = explanation.spans[unit]
        unknown = "" if explanation.known[unit] else "  (not in the vocabulary)"
        numbers = f"{float(weights[unit]):8.3f}  {float(used[unit]):+8.2f}  {float(pushes[unit]):+6.2f}"
        screen.print(Text(f"{numbers}   {shown(explanation.text[start:end])}{unknown}"))
    if len(order) > MOST_ROWS and not everything:
        screen.print(Text(f"and {len(order) - MOST_ROWS:,} more that gave less (--all shows them)", "dim"))


def coloured_words(text: str, words: WordWeights, sentences: Sequence[int] | None = None) -> Text:
    """The words by their weights within sentences; of some sentences those attended to most."""
    shades, spans = words.relative, words.spans.tolist()
    if sentences is None:
        return coloured(text, spans, shades.tolist(), _attended)
    inside = torch.isin(words.sentences, torch.tensor(sentences))
    places = telling(MOST_WORDS, shades * inside)
    return coloured(text, spans, shades.tolist(), _attended, [place for place in places if inside[place]])


def _attended(shade: float) -> str:
    """White to amber: the more, the more attention."""
    return _mix(ATTENDED, shade)


def _for_or_against(shade: float) -> str:
    """Green speaks for the decision, purple against it."""
    return _mix(TOWARDS if shade >= 0 else AWAY, 0.8 * abs(shade))


def _mix(colour: str, share: float) -> str:
    """White turned into a colour by a share."""
    return "#" + "".join(f"{round(channel):02x}" for channel in mixed(colour, min(1.0, max(0.0, share))))


def print_erased(erased: ErasedText, console: Console | None = None, *, everything: bool = False) -> None:
    """The text once per ranking: in brackets what must go before the decision flips, numbered in that order.

    Of a long text what goes first, unless `everything` is asked for.
    """
    screen = console or Console()
    how = "what is erased" if erased.inputs is None else f"what leaves the text ({erased.inputs})"
    bound = erased.inputs is not None and len(erased.units) > LOOKS
    few = f"; with {LOOKS} looks at so many units it is an upper bound" if bound else ""
    decided = f"decision: {erased.predicted}; in ⟦brackets⟧: {how} until it flips, in that order{few}"
    screen.print(printable(decided), markup=False)
    if erased.tied and any(course.erased in (None, len(erased.units)) for course in erased.courses):
        screen.print("when all is erased there is a tie, which goes to the first class", markup=False)
    if erased.unknown:
        screen.print(f"{erased.unknown:,} of its words are not in the model's vocabulary", markup=False)
    most = len(erased.units) if everything else MOST_WORDS if erased.words is None else MOST_SENTENCES
    for course in erased.courses:
        gone = course.order[: course.erased or 0]
        _print_row(screen, course.ranking, erased.units, gone, course.flipped_to, most)
    if erased.inputs is None:
        _print_row(screen, MINIMUM, erased.units, erased.minimum or [], erased.minimum_to, most)
    if most < len(erased.units):
        screen.print(
            Text(
                f"of {len(erased.units):,} units each row shows {most} at most, what goes first; --all shows all",
                "dim",
            )
        )
    if erased.words is not None:
        screen.print(Text("attended to most within each sentence:", "dim"))
        for line in _word_lines(erased.text, erased.words, most):
            screen.print(Text(f"  {line}"))


def print_attacked(attacked: AttackedText, console: Console | None = None, *, everything: bool = False) -> None:
    """The text in colour by its own attention and by another one, what the output is with both, and their weights.

    Of a long text the units that matter, unless `everything` is asked for.
    """
    screen, explanation, other = console or Console(), attacked.explanation, attacked.weights
    trace, text, spans = explanation.trace, explanation.text, explanation.spans
    predicted = int(trace.predictions[0])
    screen.print(Text(f"predicted {trace.class_names[predicted]} ({float(trace.probabilities[0, predicted]):.1%})"))
    screen.print(Text(f"other weights: {attacked.kind.words}"))
    own, pushes = trace.attention_weights, pushes_of(trace)
    shown = own if other is None else own.maximum(other)
    most = len(spans) if everything else MOST_WORDS if explanation.words is None else MOST_SENTENCES
    places = telling(most, shown)
    strips = {"attention": (own, _attended), "another": (other, _attended), "would push": (pushes, _for_or_against)}
    for name, (values, colour) in strips.items():
        if values is not None:
            strip = coloured(
                text, spans, relative(values).tolist(), colour, None if len(places) == len(spans) else places
            )
            screen.print(Text(f"{name:11} ", "dim") + strip)
    if len(places) < len(spans):
        screen.print(Text(f"shown are {len(places):,} of {len(spans):,} units: those attended to most", "dim"))
    _print_attack(screen, attacked)
    screen.print(Text("\nweight α   other  push z   token", "dim"))
    order = shown.argsort(descending=True, stable=True).tolist()
    for unit in order if everything else order[:MOST_ROWS]:
        start, end = spans[unit]
        second = "      –" if other is None else f"{float(other[unit]):7.3f}"
        name = printable(text[start:end]) if everything else cut(text[start:end])
        screen.print(Text(f"{float(own[unit]):8.3f} {second}  {float(pushes[unit]):+6.2f}   {name}"))
    if len(order) > MOST_ROWS and not everything:
        screen.print(Text(f"and {len(order) - MOST_ROWS:,} more with less weight (--all shows them)", "dim"))


def _print_attack(screen: Console, attacked: AttackedText) -> None:
    """How far the other attention lies, what it does to the output, and what shuffling does."""
    trace, found, after = attacked.explanation.trace, attacked.found, attacked.after
    if after is None:
        kind = attacked.kind
        needed = ": the output needs the units that are left out" if kind.without_top and not kind.floor else ""
        open_ = not math.isnan(found["jsd_upper"])
        screen.print(Text("none were found, and none are ruled out" if open_ else f"there are no such weights{needed}"))
    else:
        most = "" if found["exact"] else f", at most {found['jsd_upper']:.3f}"
        screen.print(Text(f"JSD {found['jsd']:.3f} nats{most}, of log 2 = {LARGEST:.3f} at most"))
        pairs = zip(trace.class_names, trace.probabilities[0].tolist(), after.tolist(), strict=True)
        said = ", ".join(f"{printable(name)} {before:.1%} → {now:.1%}" for name, before, now in pairs)
        screen.print(Text(f"probabilities: {said}"))
    moved, flips = attacked.shuffled["tvd_median"], attacked.shuffled["flips"]
    screen.print(
        Text(
            f"shuffled {attacked.shuffles:,} times: the output moves by {moved:.3f} in the median, {flips:.0%} flip it"
        )
    )


def _print_row(
    screen: Console, name: str, units: Sequence[str], gone: Sequence[int], flipped_to: str | None, most: int
) -> None:
    end = f"{len(gone):,} of {len(units):,} → {flipped_to}" if flipped_to else "never flips"
    line = Text(f"{name:10} ", "bold") + Text(f"{printable(end):24} ", "dim")
    screen.print(line + _bracketed(units, gone, most))


def _bracketed(units: Sequence[str], gone: Sequence[int], most: int) -> Text:
    """The units with those that go in brackets: all, or of many those that go first, and the first of the others."""
    order = {unit: number for number, unit in enumerate(gone, start=1)}
    shown, whole = Text(), len(units) <= most
    places = range(len(units)) if whole else sorted(islice(dict.fromkeys([*gone, *range(len(units))]), most))
    for place, gap in in_stretches(places, len(units)):
        shown.append("… " if gap else "")
        if place in order:
            shown.append(f"{order[place]}⟦{cut(units[place])}⟧ ", "bold")
        elif place < len(units):
            shown.append(f"{cut(units[place])} ")
    return shown


def _word_lines(text: str, words: WordWeights, sentences: int, most: int = 5) -> list[str]:
    """Sentence by sentence the words with the largest weights."""
    lines = []
    spans = words.spans.tolist()
    for number in range(min(int(words.sentences.max()) + 1, sentences)):
        inside = (words.sentences == number).nonzero().squeeze(1)
        order = inside[words.weights[inside].argsort(descending=True, stable=True)][:most].tolist()
        said = [f"{cut(text[slice(*spans[word])])} {float(words.weights[word]):.2f}" for word in order]
        lines.append(f"{number + 1}: {', '.join(said)}")
    return lines


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
