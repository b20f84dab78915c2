"""A sequence classifier of the transformers library as a subject.

Units are words; the pieces that a tokenizer cuts them into go together, and special tokens never go. A unit is
**deleted** (its pieces leave, those behind move up), **masked** (the mask token stands in the place of each piece), or
**cut off from attention**: no position may attend to its pieces in any layer, by the library's own attention mask,
which gives them a weight of exactly zero; positions stay as they are. Texts are read in batches of equal length and
never padded, since some families say other things of padded texts.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.adapters.asking import AskedReading, SubjectError, checked_probabilities, checked_texts, word_units
from heedful.errors import ConfigError, load_extra
from heedful.subjects import ATTENTION, DELETE, MASK, Subject, Units
from heedful.text.ragged import lengths_of, offsets_of, positions_of, segment_sum
from heedful.traces import Ragged

PIECES_AT_ONCE = 4_096
NOT_OURS = -1
"""The unit of a special token: it belongs to none."""

TOLERANCE = 1e-4
"""By how much probabilities may differ between a text alone and in a batch, in single precision."""

NO_LIMIT = 1_000_000
"""Tokenizers that know no longest text name a number beyond this."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Pieces(Ragged):
    """What a tokenizer makes of texts: the number of each piece, and the unit within its text that it is part of."""

    numbers: Int[Tensor, " pieces"]
    owners: Int[Tensor, " pieces"]


@dataclass(frozen=True, kw_only=True, eq=False)
class PretrainedReading(AskedReading):
    """Texts as a transformer reads them."""

    subject: "PretrainedSubject"
    pieces: Pieces


@dataclass(frozen=True, kw_only=True, eq=False)
class PretrainedSubject(Subject):
    """A transformers sequence classifier with its tokenizer; the model is left as it was.

    truncate: whether of a text that is too long for the model only the beginning is read; else it is refused.
    watch: is told how many changed texts were read, of how many.
    """

    name: str
    model: Any
    tokenizer: Any
    class_names: tuple[str, ...]
    ways: tuple[str, ...] = (DELETE,)
    batches: bool = True
    """Whether it reads several texts at once; a decoder that knows no token to pad with does not."""
    truncate: bool = False
    watch: Callable[[int, int], None] | None = None

    @cached_property
    def longest(self) -> int:
        """How many pieces of a text the model can read."""
        config, limit = self.model.config, self.tokenizer.model_max_length
        positions = getattr(config, "max_position_embeddings", None) or NO_LIMIT
        shifted = getattr(config, "model_type", "") in {"roberta", "xlm-roberta", "camembert", "mpnet"}
        return int(min(limit if limit < NO_LIMIT else NO_LIMIT, positions - 2 * shifted))

    def read(self, texts: Sequence[str]) -> PretrainedReading:
        """The words of these texts, and the pieces of each."""
        strings = checked_texts(texts)
        units, pieces = self._cut(strings)

        def answer(
            rows: Int[Tensor, " rows"], gone: Bool[Tensor, " places"], how: str
        ) -> Float[Tensor, "rows classes"]:
            return self.ask(*changed(pieces, units, rows, gone, how, self._stand_ins))

        return PretrainedReading(
            units=units, class_names=self.class_names, ways=self.ways, answer=answer, subject=self, pieces=pieces
        )

    @property
    def _stand_ins(self) -> tuple[int, int]:
        """What a masked piece becomes, and what is read where nothing is left."""
        return mask_token(self.tokenizer) or 0, nothing_token(self.tokenizer)

    def _cut(self, texts: list[str]) -> tuple[Units, Pieces]:
        told = self.tokenizer(
            texts,
            return_offsets_mapping=True,
            return_special_tokens_mask=True,
            return_attention_mask=False,
            truncation=self.truncate,
            **({"max_length": self.longest} if self.truncate else {}),
        )
        self._refuse_long(texts, [len(one) for one in told["input_ids"]])
        words = word_units(texts)
        parts = [
            owned(text, words.spans[words.of_rows(torch.tensor([row]))].tolist(), places, special)
            for row, (text, places, special) in enumerate(
                zip(texts, told["offset_mapping"], told["special_tokens_mask"], strict=True)
            )
            if words.spans is not None
        ]
        empty = next((row for row, (spans, _) in enumerate(parts) if not spans), None)
        if empty is not None:
            raise SubjectError(f"The tokenizer of {self.name} makes nothing of text {empty}: it has no words for it.")
        units = Units(
            offsets=offsets_of(torch.tensor([len(spans) for spans, _ in parts])),
            texts=texts,
            spans=torch.tensor([span for spans, _ in parts for span in spans]),
        )
        numbers = [torch.tensor(one) for one in told["input_ids"]]
        return units, Pieces(
            offsets=offsets_of(torch.tensor([len(one) for one in numbers])),
            numbers=torch.cat(numbers),
            owners=torch.tensor([owner for _, owners in parts for owner in owners]),
        )

    def _refuse_long(self, texts: list[str], lengths: list[int]) -> None:
        row = next((row for row, length in enumerate(lengths) if length > self.longest), None)
        if row is not None:
            raise SubjectError(
                f"Text {row} ('{texts[row][:30]}…') has {lengths[row]:,} pieces, and {self.name} reads "
                f"{self.longest:,} at most. Cut such texts, or read only their beginnings (truncate=True, on the command "
                "line --truncate)."
            )

    def ask(
        self, numbers: Int[Tensor, " pieces"], seen: Bool[Tensor, " pieces"], offsets: Int[Tensor, " bounds"]
    ) -> Float[Tensor, "rows classes"]:
        """What the model says of these pieces, of which only some are seen."""
        found = torch.empty(len(offsets) - 1, len(self.class_names), dtype=torch.float64)
        done = 0
        for rows in equal_lengths(lengths_of(offsets), PIECES_AT_ONCE if self.batches else 1):
            where = positions_of(offsets, rows).view(len(rows), -1)
            found[rows] = self._probabilities(numbers[where], seen[where])
            done += len(rows)
            if self.watch is not None:
                self.watch(done, len(found))
        return found

    def alone(self, numbers: Int[Tensor, "*rows pieces"], seen: Bool[Tensor, " pieces"] | None = None) -> Tensor:
        """What it says of one text, or of a few of the same length."""
        rows = numbers.view(-1, numbers.shape[-1])
        shown = torch.ones_like(rows, dtype=torch.bool) if seen is None else seen.expand_as(rows)
        return self._probabilities(rows, shown)

    def _probabilities(
        self, numbers: Int[Tensor, "rows pieces"], seen: Bool[Tensor, "rows pieces"]
    ) -> Float[Tensor, "rows classes"]:
        with resting(self.model), torch.no_grad():
            device = next(self.model.parameters()).device
            logits = self.model(input_ids=numbers.to(device), attention_mask=seen.long().to(device)).logits
        return checked_probabilities(probable(logits.double()), len(numbers), len(self.class_names), self.name)


def probable(logits: Float[Tensor, "rows outputs"]) -> Float[Tensor, "rows classes"]:
    """The softmax of several outputs; of one the sigmoid, for the second of two classes."""
    if logits.shape[1] > 1:
        return logits.softmax(1)
    return torch.cat([(-logits).sigmoid(), logits.sigmoid()], 1)


@contextmanager
def resting(model: Any) -> Iterator[None]:
    """The model in evaluation mode, and afterwards as it was."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True


def owned(
    text: str, words: list[list[int]], places: list[tuple[int, int]], special: list[int]
) -> tuple[list[list[int]], list[int]]:
    """The words that have pieces, and for each piece the place of its word among them.

    A piece belongs to the word in which its first letter stands, a piece of white space to the next word. A word whose
    letters are all in the piece of another is one with it.
    """
    starts = [start for start, _ in words]
    owners = [
        NOT_OURS if out else _word_at(text, words, starts, place) for place, out in zip(places, special, strict=True)
    ]
    own = sorted({owner for owner in owners if owner != NOT_OURS})
    renumbered = {word: number for number, word in enumerate(own)}
    ends = {
        word: max([words[word][1], *(end for (_, end), owner in zip(places, owners, strict=True) if owner == word)])
        for word in own
    }
    spans = [[words[word][0], ends[word]] for word in own]
    return spans, [renumbered.get(owner, NOT_OURS) for owner in owners]


def _word_at(text: str, words: list[list[int]], starts: list[int], place: tuple[int, int]) -> int:
    start, end = place
    while start < end and text[start].isspace():
        start += 1
    word = bisect_right(starts, start) - 1
    if word >= 0 and start < max(words[word][1], words[word][0] + 1):
        return word
    return min(word + 1, len(words) - 1) if words else NOT_OURS


def changed(
    pieces: Pieces,
    units: Units,
    rows: Int[Tensor, " rows"],
    gone: Bool[Tensor, " places"],
    how: str,
    stand_ins: tuple[int, int],
) -> tuple[Int[Tensor, " pieces"], Bool[Tensor, " pieces"], Int[Tensor, " bounds"]]:
    """The pieces of each row when units are gone, which of them are seen, and where each row begins."""
    mask, nothing = stand_ins
    where, begins = positions_of(pieces.offsets, rows), offsets_of(units.lengths[rows])
    lengths = pieces.lengths[rows]
    owners = pieces.owners[where]
    marks = torch.repeat_interleave(begins[:-1], lengths) + owners.clamp(min=0)
    out = gone[marks] & (owners != NOT_OURS)
    numbers = pieces.numbers[where]
    if how == MASK:
        return numbers.masked_fill(out, mask), torch.ones_like(out), offsets_of(lengths)
    if how == ATTENTION:
        return numbers, ~out, offsets_of(lengths)
    left = segment_sum((~out).double(), offsets_of(lengths)).long()
    if int(left.min()) > 0:
        return numbers[~out], torch.ones(int(left.sum()), dtype=torch.bool), offsets_of(left)
    return _with_something(numbers[~out], left, nothing)


def _with_something(
    numbers: Int[Tensor, " pieces"], left: Int[Tensor, " rows"], nothing: int
) -> tuple[Int[Tensor, " pieces"], Bool[Tensor, " pieces"], Int[Tensor, " bounds"]]:
    """Rows without any piece have one that stands for nothing: a model cannot read an empty text."""
    parts = [part if len(part) else part.new_tensor([nothing]) for part in numbers.split(left.tolist())]
    whole = torch.cat(parts)
    return whole, torch.ones(len(whole), dtype=torch.bool), offsets_of(left.clamp(min=1))


def equal_lengths(lengths: Int[Tensor, " rows"], most: int) -> Iterator[Int[Tensor, " rows"]]:
    """Rows of equal length together, so many pieces at once at most, or one row."""
    for length in lengths.unique().tolist():
        yield from (lengths == length).nonzero().squeeze(1).split(max(1, most // max(1, length)))


def mask_token(tokenizer: Any) -> int | None:
    """What a masked piece becomes: the mask token, or else the unknown one."""
    known = (tokenizer.mask_token_id, tokenizer.unk_token_id)
    return next((number for number in known if number is not None), None)


def nothing_token(tokenizer: Any) -> int:
    """What is read where a text has no pieces left, not even special ones."""
    known = (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id, tokenizer.unk_token_id, 0)
    return next(int(number) for number in known if number is not None)


def load_pretrained(folder: Path, *, hub: bool = False) -> tuple[Any, Any]:
    """Model and tokenizer of a local folder: weights from safetensors only, no code of others, single precision."""
    transformers: Any = load_extra("transformers", "transformers", "Transformer models")
    if not folder.is_dir() and not hub:
        raise ConfigError(
            f"There is no folder '{folder}' with a model. Give the folder that save_pretrained wrote (config.json, "
            "model.safetensors, tokenizer.json), or say hub=True if this is a name on the hub."
        )
    how = {"local_files_only": not hub, "trust_remote_code": False}
    try:
        model, told = transformers.AutoModelForSequenceClassification.from_pretrained(
            str(folder),
            use_safetensors=True,
            attn_implementation="eager",
            dtype=torch.float32,
            output_loading_info=True,
            **how,
        )
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), **how)
    except (OSError, ValueError, KeyError) as error:
        raise SubjectError(f"'{folder}' holds no sequence classifier that can be loaded: {error}") from error
    if told["missing_keys"]:
        missing = ", ".join(sorted(told["missing_keys"])[:3])
        raise SubjectError(
            f"'{folder}' has no weights for {missing}: it was not trained to classify. Fine-tune it first and save it "
            "with save_pretrained."
        )
    return model, tokenizer


def pretrained_subject(
    model: Any,
    tokenizer: Any = None,
    *,
    name: str | None = None,
    class_names: Sequence[str] | None = None,
    truncate: bool = False,
    watch: Callable[[int, int], None] | None = None,
) -> PretrainedSubject:
    """A checked subject: it says the same twice, alone and in a batch, and what it cannot do is not among its ways."""
    who = name or type(model).__name__
    _check_tokenizer(tokenizer, who)
    names = _class_names(model.config, class_names, who)
    first = PretrainedSubject(
        name=who, model=model, tokenizer=tokenizer, class_names=names, truncate=truncate, watch=watch
    )
    several = replace(first, batches=_reads_several(first))
    hides = [ATTENTION] if _hides_unseen(several) else []
    masks = [MASK] if mask_token(tokenizer) is not None else []
    return replace(several, ways=(DELETE, *masks, *hides))


def _check_tokenizer(tokenizer: Any, who: str) -> None:
    if tokenizer is None:
        raise SubjectError(f"{who} needs its tokenizer: heedful.subject(model, tokenizer).")
    if not getattr(tokenizer, "is_fast", False):
        raise SubjectError(
            f"The tokenizer of {who} does not say where its pieces stand in the text. Take the fast one."
        )


def _class_names(config: Any, given: Sequence[str] | None, who: str) -> tuple[str, ...]:
    problem, outputs = getattr(config, "problem_type", None), int(config.num_labels)
    if problem in {"multi_label_classification", "regression"}:
        raise SubjectError(
            f"{who} is made for {problem.replace('_', ' ')}; one class of several for each text is needed."
        )
    known = tuple(str(config.id2label[number]) for number in range(outputs)) if outputs > 1 else ("0", "1")
    if given is None:
        return known
    if len(given) != len(known):
        raise SubjectError(f"{who} has {len(known)} classes ({', '.join(known)}), and {len(given)} names were given.")
    return tuple(map(str, given))


PROBES = ("a good film", "a dull film")
"""Texts that a model is tried with."""


def _reads_several(subject: PretrainedSubject) -> bool:
    """Whether it reads a batch as it reads each text; that it says the same twice is checked on the way."""
    pieces = subject.read(PROBES).pieces
    rows = [pieces.numbers[positions_of(pieces.offsets, torch.tensor([row]))] for row in range(len(PROBES))]
    told, again = ([subject.alone(row) for row in rows] for _ in range(2))
    if any(not torch.equal(one, other) for one, other in zip(told, again, strict=True)):
        raise SubjectError(f"{subject.name} says something else of the same text when it is asked again: it is random.")
    try:
        twice = subject.alone(rows[0].repeat(2, 1))
    except ValueError:  # a decoder without a token to pad with
        return False
    return bool(torch.allclose(twice, told[0].expand(2, -1), atol=TOLERANCE))


def _hides_unseen(subject: PretrainedSubject) -> bool:
    """Whether what a piece is does not matter once it is not to be attended to: another in its place changes nothing."""
    pieces = subject.read(PROBES[:1]).pieces
    ours = (pieces.owners != NOT_OURS).nonzero().squeeze(1)
    seen = torch.ones_like(pieces.numbers, dtype=torch.bool)
    seen[ours[0]] = False
    other = pieces.numbers.clone()
    other[ours[0]] = pieces.numbers[ours[-1]]
    told, swapped = (subject.alone(numbers, seen) for numbers in (pieces.numbers, other))
    return bool(torch.allclose(told, swapped, atol=TOLERANCE / 10))
