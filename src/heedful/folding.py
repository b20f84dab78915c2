"""Where the pieces of a tokenizer stand in a text, and their scores folded into the units of a reading.

Tools explain what a model reads: pieces of words, in lower case, without accents, with marks of their tokenizer and
tokens of no text. Units are the words of a reading. The two meet in the characters of the text: pieces and text are
compared as bare signs (compatibility decomposition, no case, no accents, no white space), piece after piece.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

import torch

from heedful.explanations import Explanation, ExplanationError
from heedful.notebook import short
from heedful.subjects import Units
from heedful.text.tokenize import Tokenizer, Vocabulary

Span = tuple[int, int]
Spans = list[Span | None]
Trail = tuple[Any, int, int] | None  # the trail before, and which signs the last piece has

SPECIAL = re.compile(r"\[(CLS|SEP|PAD|BOS|EOS|MASK)\]|</?s>|<(pad|bos|eos|cls|sep|mask)>|<\|[^|]*\|>", re.IGNORECASE)
"""Tokens that stand for nothing of the text."""

UNKNOWN = re.compile(r"\[UNK\]|<unk>|<\|unk\|>", re.IGNORECASE)
"""Tokens that stand for something of the text, and do not say for what."""

OPENING = "▁ĠĊĉ"
"""How white space is written by tokenizers; alone it belongs to what comes after it."""

BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
UNSEEN = frozenset(("Mn", "Me", "Cc", "Cf"))  # kinds of characters: combining marks, controls, what joins others
REPLACEMENT = "\ufffd"
OWN = ("method", "signed", "seconds", "passes", "remark")  # what an explanation keeps when it is folded
FEW = 8  # words that one unknown token may stand for
SKIPPED = 2  # what it costs to pass over a mark that no piece has; a strange length of an unknown token costs 1

_SHOWN = [*range(33, 127), *range(161, 173), *range(174, 256)]
BYTE_LEVEL = {chr(byte): byte for byte in _SHOWN} | {
    chr(256 + place): byte for place, byte in enumerate(sorted(set(range(256)) - set(_SHOWN)))
}
"""The bytes behind the letters of byte-level tokenizers (GPT-2, RoBERTa): those that can be seen are themselves."""


def fold(pieces: Explanation, units: Units) -> Explanation:
    """An explanation of pieces as one of these units, texts in the same order: scores of the pieces of a unit summed.

    A piece that reaches over several units is shared among them by characters; one of white space goes with what comes
    after it. What stands for nothing of the text (special tokens) and what stands in no unit is left out; a unit
    without pieces has zero. Pieces without places are aligned to the texts; a text that they do not make is refused,
    with where.
    """
    if len(pieces) != len(units):
        raise ExplanationError(f"The explanation is of {len(pieces)} texts, the reading of {len(units)}.")
    if (pieces.names is None and pieces.spans is None) or units.texts is None or units.spans is None:
        return _one_to_one(pieces, units)
    spans, scores, ends = units.spans.tolist(), pieces.scores.tolist(), pieces.offsets.tolist()
    folded: list[float] = []
    for row, text in enumerate(units.texts):
        own = spans[int(units.offsets[row]) : int(units.offsets[row + 1])]
        folded += _shared(_places(pieces, row, text), scores[ends[row] : ends[row + 1]], own, text)
    about: dict[str, Any] = {name: getattr(pieces, name) for name in OWN}
    return Explanation.on(units, torch.tensor(folded, dtype=torch.float64), pieces.targets, pieces.class_names, **about)


def _one_to_one(pieces: Explanation, units: Units) -> Explanation:
    """Where no characters are known: the same units, one by one."""
    named = pieces.names is not None and units.names is not None
    for row, (own, other) in enumerate(zip(_lists(pieces, named), _lists(units, named), strict=True)):
        if own != other:
            raise ExplanationError(
                f"Text {row} has {len(own)} scores and {len(other)} units, which are not the same: to fold pieces into "
                "units, the explanation needs its tokens and the reading its texts."
            )
    about: dict[str, Any] = {name: getattr(pieces, name) for name in OWN}
    return Explanation.on(units, pieces.scores, pieces.targets, pieces.class_names, **about)


def _lists(units: Units, named: bool) -> list[list[str]]:
    """The units of every text, by what they are called, or only how many there are."""
    ends = units.offsets.tolist()
    names = list(units.shown) if named else [""] * ends[-1]
    return [names[start:end] for start, end in pairwise(ends)]


def _places(pieces: Explanation, row: int, text: str) -> Spans:
    """Where the pieces of one text stand in it: as they say themselves, or as their letters say."""
    place = slice(int(pieces.offsets[row]), int(pieces.offsets[row + 1]))
    if pieces.spans is not None and (pieces.texts is None or pieces.texts[row] == text):
        found: Spans = [(start, end) for start, end in pieces.spans[place].tolist()]
        outside = next((span for span in found if span is not None and not 0 <= span[0] <= span[1] <= len(text)), None)
        if outside is not None:
            raise ExplanationError(f"Text {row} has {len(text)} characters; a piece is said to be at {outside}.")
        return found
    try:
        return spans_of(pieces.shown[place], text)
    except ExplanationError as error:
        raise ExplanationError(f"Text {row}: {error}") from None


def _shared(places: Spans, scores: Sequence[float], units: Sequence[Sequence[int]], text: str) -> list[float]:
    """The scores of the units: each piece gives its own to the units of its characters."""
    owner = [-1] * len(text)
    for number, (start, end) in enumerate(units):
        owner[start:end] = [number] * (end - start)
    found = [0.0] * len(units)
    for place, score in zip(places, scores, strict=True):
        own = [unit for unit in owner[slice(*_beyond_space(place, text))] if unit >= 0] if place else []
        for unit in dict.fromkeys(own):
            found[unit] += score * (own.count(unit) / len(own))
    return found


def _beyond_space(place: Span, text: str) -> Span:
    """Where a piece stands; one of white space alone goes with the character after it, as spaces begin pieces."""
    start, end = place
    if not text[start:end].isspace():
        return place
    after = end + len(text[end:]) - len(text[end:].lstrip())
    return after, after + 1


def spans_of(tokens: Sequence[str], text: str) -> Spans:
    """From which character of the text to which each token reaches; None of one that stands for nothing of it.

    Tokens may have the marks of WordPiece (##), SentencePiece (▁, <0xF0>) and byte-level tokenizers (Ġ), be in lower
    case and without accents. Marks of the text that no token has are passed over; letters and digits are not.

    >>> from heedful.folding import spans_of
    >>> spans_of(["[CLS]", "a", "cafe", "##s", "[SEP]"], "A Cafés!")
    [None, (0, 1), (2, 6), (6, 7), None]
    """
    signs = Signs(text)
    ways = [groups for groups in (_groups(tokens, scheme) for scheme in SCHEMES) if groups is not None]
    tried = [_aligned(groups, signs) for place, groups in enumerate(ways) if groups not in ways[:place]]
    good = [one for one in tried if isinstance(one, tuple)]
    if good:
        return _resolved(min(good, key=lambda one: one[0])[1], tokens, signs)
    raise max((one for one in tried if isinstance(one, _Mismatch)), key=lambda one: one.reached).told(tokens, signs)


class Signs:
    """A text as it is compared: bare signs, and the character that each stands for."""

    def __init__(self, text: str) -> None:
        pairs = [(sign, place) for place, character in enumerate(text) for sign in _bare(character)]
        self.text = text
        self.signs = "".join(sign for sign, _ in pairs)
        self.places = [place for _, place in pairs]

    @cached_property
    def words(self) -> frozenset[Span]:
        """Between which signs the words and marks of the text stand."""
        found = Tokenizer(mode="words", lowercase=False).encode([self.text], Vocabulary.of(())).spans
        return frozenset(
            (bisect_left(self.places, start), bisect_left(self.places, end)) for start, end in found.tolist()
        )

    @cached_property
    def gaps(self) -> list[int]:
        """Before which signs there is white space, and the end."""
        pairs = enumerate(pairwise(self.places), 1)
        there = [sign for sign, (one, other) in pairs if any(map(str.isspace, self.text[one + 1 : other]))]
        return [*there, len(self.signs)]

    @cached_property
    def ends(self) -> list[int]:
        """After which signs words and marks end."""
        return sorted(end for _, end in self.words)

    def room(self, start: int, follow: str) -> set[int]:
        """Where an unknown token that begins here may end: after one sign, with a word, at the next white space, or
        where the next token begins that is known."""
        if start == len(self.signs):
            return set()
        last = self.gaps[bisect_right(self.gaps, start)]
        first = bisect_right(self.ends, start)
        ends = {start + 1, last, *self.ends[first : first + FEW]}
        place = self.signs.find(follow, start + 1, last + len(follow)) if follow else -1
        while place >= 0:
            ends.add(place)
            place = self.signs.find(follow, place + 1, last + len(follow))
        return {end for end in ends if end <= last}

    def span(self, start: int, end: int) -> Span:
        return self.places[start], self.places[end - 1] + 1


def _bare(text: str) -> str:
    """Letters without case and accents, marks; no white space, no controls."""
    apart = (unicodedata.normalize("NFKD", sign.casefold()) for sign in unicodedata.normalize("NFKD", text))
    return "".join(
        sign
        for sign in "".join(apart)
        if not sign.isspace() and sign != REPLACEMENT and unicodedata.category(sign) not in UNSEEN
    )


@dataclass(frozen=True, kw_only=True)
class _Group:
    """Tokens that make whole characters together: one, or several that share the bytes of characters."""

    tokens: tuple[int, ...]
    signs: str
    parts: tuple[Span, ...] = ((0, 0),)
    """From which to which of the signs each token reaches."""
    special: bool = False
    unknown: bool = False

    def ways(self, signs: Signs, start: int, follow: str) -> Iterator[tuple[int, int, int]]:
        """Which signs it can stand for when the text is read up to `start`: from, to, and what that costs."""
        if self.special:
            yield start, start, 0
        if self.unknown:
            for end in signs.room(start, follow):
                yield start, end, int((start, end) not in signs.words)
            return
        begin = start
        while True:
            if signs.signs.startswith(self.signs, begin):
                yield begin, begin + len(self.signs), SKIPPED * (begin - start)
                return
            if begin == len(signs.signs) or signs.signs[begin].isalnum():
                return
            begin += 1


def _as_it_is(token: str) -> bytes:
    return token.encode("utf-8", "surrogatepass")


def _without_marks(token: str) -> bytes:
    """Without the marks of WordPiece, SentencePiece and subword-nmt; a byte as itself."""
    if byte := BYTE.fullmatch(token):
        return bytes.fromhex(byte[1])
    bare = token[2:] if token.startswith("##") and len(token) > 2 else token
    return bare.replace("▁", " ").removesuffix("</w>").removesuffix("@@").encode("utf-8", "surrogatepass")


def _byte_level(token: str) -> bytes | None:
    known = [BYTE_LEVEL.get(letter) for letter in token]
    return None if None in known else bytes(byte for byte in known if byte is not None)


SCHEMES = (_as_it_is, _without_marks, _byte_level)


def _groups(tokens: Sequence[str], scheme: Any) -> list[_Group] | None:
    """The tokens as what they stand for; None where they are not of this scheme."""
    groups: list[_Group] = []
    open_tokens: list[int] = []
    held: list[bytes] = []
    for number, token in enumerate(tokens):
        special, unknown = bool(SPECIAL.fullmatch(token.strip())), bool(UNKNOWN.fullmatch(token.strip()))
        read = scheme(token)
        if read is None:
            return None
        if special or unknown:
            groups += _closed(open_tokens, held, final=True)
            signs = _bare(token)
            parts = ((0, len(signs)),)
            groups.append(_Group(tokens=(number,), signs=signs, parts=parts, special=special, unknown=unknown))
            open_tokens, held = [], []
            continue
        open_tokens, held = [*open_tokens, number], [*held, read]
        if done := _closed(open_tokens, held):
            groups += done
            open_tokens, held = [], []
    return groups + _closed(open_tokens, held, final=True)


def _closed(tokens: Sequence[int], held: Sequence[bytes], *, final: bool = False) -> list[_Group]:
    """The tokens as one group if their bytes are whole characters; nothing otherwise, unless there are no more."""
    if not tokens:
        return []
    try:
        read = b"".join(held).decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        if not final:
            return []
        read = b"".join(held).decode("utf-8", "replace")
    return [_Group(tokens=tuple(tokens), signs=_bare(read), parts=_parts(read, held))]


def _parts(read: str, held: Sequence[bytes]) -> tuple[Span, ...]:
    """The signs of the characters that the bytes of each token belong to."""
    signs = list(accumulate((len(_bare(sign)) for sign in read), initial=0))
    ends = list(accumulate((len(sign.encode("utf-8", "surrogatepass")) for sign in read), initial=0))
    found = []
    for start, end in pairwise(accumulate(map(len, held), initial=0)):
        own = [place for place in range(len(read)) if ends[place] < end and ends[place + 1] > start]
        found.append((signs[own[0]], signs[own[-1] + 1]) if own else (0, 0))
    return tuple(found)


@dataclass(frozen=True, kw_only=True)
class _Mismatch:
    """How far the tokens went, and which one is not what the text has there; None: there are no more."""

    reached: int
    group: _Group | None

    def told(self, tokens: Sequence[str], signs: Signs) -> ExplanationError:
        start = signs.places[self.reached] if self.reached < len(signs.places) else len(signs.text)
        there = f"'{short(signs.text[start:])}'" if start < len(signs.text) else "its end"
        if self.group is None:
            return ExplanationError(f"The pieces end where the text has {there} (character {start}).")
        number = self.group.tokens[0]
        return ExplanationError(
            f"Piece {number} (the first is 0), '{short(tokens[number])}', does not stand in the text: at character "
            f"{start} it has {there}. Are these the pieces of this text?"
        )


def _aligned(groups: Sequence[_Group], signs: Signs) -> tuple[int, list[tuple[_Group, int, int]]] | _Mismatch:
    """The cheapest way to read the whole text by the groups in their order."""
    reached: dict[int, tuple[int, Trail]] = {0: (0, None)}
    for group, follow in zip(groups, _following(groups), strict=True):
        found: dict[int, tuple[int, Trail]] = {}
        for start, (cost, trail) in reached.items():
            for begin, end, more in group.ways(signs, start, follow):
                if end not in found or cost + more < found[end][0]:
                    found[end] = (cost + more, (trail, begin, end))
        if not found:
            return _Mismatch(reached=max(reached), group=group)
        reached = found
    ends = {end: SKIPPED * (len(signs.signs) - end) for end in reached}
    done = [
        (reached[end][0] + more, reached[end][1])
        for end, more in ends.items()
        if not any(sign.isalnum() for sign in signs.signs[end:])
    ]
    if not done:
        return _Mismatch(reached=max(reached), group=None)
    cost, trail = min(done, key=lambda one: one[0])
    return cost, [(group, begin, end) for group, (begin, end) in zip(groups, _walked(trail), strict=True)]


def _following(groups: Sequence[_Group]) -> list[str]:
    """The signs of the next group that has any, for each group; none if that is unknown."""
    found = [""]
    for group in reversed(groups[1:]):
        found.append(found[-1] if group.special or not group.signs else "" if group.unknown else group.signs)
    return found[::-1][: len(groups)]


def _walked(trail: Trail) -> list[Span]:
    steps = []
    while trail is not None:
        trail, begin, end = trail
        steps.append((begin, end))
    return steps[::-1]


def _resolved(steps: Sequence[tuple[_Group, int, int]], tokens: Sequence[str], signs: Signs) -> Spans:
    """The characters of every token. What has no sign of its own goes with what it belongs to: a mark that begins a
    word with the next sign, an accent with the one before."""
    found: Spans = [None] * len(tokens)
    for group, begin, end in steps:
        for number, (first, last) in zip(group.tokens, group.parts, strict=True):
            start, stop = (begin, end) if group.unknown else (begin + first, begin + last)
            if end > begin and stop > start:
                found[number] = signs.span(start, stop)
            elif tokens[number] and not group.special:
                opens = start == 0 or tokens[number][0].isspace() or tokens[number][0] in OPENING
                near = start if opens else start - 1
                found[number] = signs.span(near, near + 1) if near < len(signs.signs) else None
    return found
