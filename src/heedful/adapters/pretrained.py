"""A sequence classifier of the transformers library as a subject.

Units are words; the pieces that a tokenizer cuts them into go together, and special tokens never go. **Cut off from
attention** means that no position may attend to the pieces of a unit in any layer, by the library's own attention mask,
which gives them a weight of exactly zero; positions stay as they are. It is offered where what is hidden so matters no
more at all: not by a model without such a mask, nor by a decoder that reads its class off the last word.
"""

import inspect
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from heedful.adapters.asking import (
    SAME,
    THREADS,
    SubjectError,
    Watch,
    checked_names,
    in_a_sentence,
    probable,
    word_units,
)
from heedful.adapters.modules import device_of
from heedful.adapters.pieces import (
    NO_UNIT,
    PIECES_AT_ONCE,
    PieceReading,
    Pieces,
    PieceSubject,
    changed,
    reads_several,
)
from heedful.errors import ConfigError, load_extra
from heedful.files import is_folder
from heedful.models.frozen import quietly
from heedful.subjects import ATTENTION, DELETE, MASK, Units
from heedful.text.ragged import offsets_of

NO_LIMIT = 1_000_000
"""Tokenizers that know no longest text name a number beyond this."""

PROBE = "a good film"
"""The text that a model is tried with."""

HIDDEN = 1e-7
"""By how much an answer may differ when what is hidden differs: weights of zero leave nothing but rounding."""

Place = tuple[int, int]


@dataclass(frozen=True, kw_only=True, eq=False)
class PretrainedSubject(PieceSubject):
    """A transformers sequence classifier with its tokenizer.

    truncate: whether of a text that is too long for the model only the beginning is read; else it is refused.
    """

    model: Any
    tokenizer: Any
    truncate: bool = False

    @cached_property
    def longest(self) -> int:
        """How many pieces of a text the model can read; positions of some families begin after that of padding."""
        said = getattr(self.model.config, "max_position_embeddings", None) or 0
        positions = said if said > 0 else NO_LIMIT
        tables = (part for name, part in self.model.named_modules() if name.endswith("position_embeddings"))
        padded = [part.padding_idx for part in tables if getattr(part, "padding_idx", None) is not None]
        return int(min(self.tokenizer.model_max_length, NO_LIMIT, positions - (max(padded) + 1 if padded else 0)))

    @cached_property
    def _can_hide(self) -> bool:
        taken = inspect.signature(self.model.forward).parameters.values()
        return any(one.name == "attention_mask" or one.kind is one.VAR_KEYWORD for one in taken)

    def read(self, texts: object) -> PieceReading:
        """The words of these texts, and the pieces of each."""
        return self.reading(*self.cut(texts))

    def logits(self, numbers: Int[Tensor, "rows pieces"], seen: Bool[Tensor, "rows pieces"]) -> object:
        device = device_of(self.model)
        hidden = {"attention_mask": seen.long().to(device)} if self._can_hide else {}
        return getattr(self.model(input_ids=numbers.to(device), **hidden), "logits", None)

    def cut(self, texts: object) -> tuple[Units, Pieces]:
        words = word_units(texts)
        assert words.texts is not None
        assert words.spans is not None
        told = self._encode(list(words.texts))
        spans = [part.tolist() for part in words.spans.split(words.lengths.tolist())]
        given = zip(words.texts, spans, told["offset_mapping"], told["special_tokens_mask"], strict=True)
        own, owners = zip(*(owned(*one) for one in given), strict=True)
        offsets = offsets_of(torch.tensor([len(one) for one in own]))
        self._refuse(words.texts, [not one for one in own], "has no piece that the tokenizer knows; leave it out.")
        units = Units(offsets=offsets, texts=words.texts, spans=torch.tensor([span for one in own for span in one]))
        return units, Pieces(
            offsets=offsets_of(torch.tensor([len(one) for one in owners])),
            numbers=torch.tensor([number for one in told["input_ids"] for number in one]),
            owners=torch.tensor([owner for one in owners for owner in one]),
        )

    def _encode(self, texts: list[str]) -> Any:
        """What the tokenizer makes of texts; too long ones are refused, or cut where that is asked for."""
        how = {"truncation": True, "max_length": self.longest} if self.truncate else {}
        asked = {"return_offsets_mapping": True, "return_special_tokens_mask": True, "return_attention_mask": False}
        with in_a_sentence(f"The tokenizer of {self.name}", f"on {len(texts)} texts"):
            told = self.tokenizer(texts, verbose=False, **asked, **how)
        self._refuse(
            texts,
            [len(one) > self.longest for one in told["input_ids"]],
            f"has more pieces than the {self.longest:,} that can be read. Cut such texts, or read only their "
            "beginnings (truncate=True, on the command line --truncate).",
        )
        most = self.model.get_input_embeddings().num_embeddings
        wrong = [max(one, default=0) >= most for one in told["input_ids"]]
        self._refuse(texts, wrong, f"has pieces beyond the {most:,} of the model: its tokenizer is another one.")
        return told

    def _refuse(self, texts: Sequence[str], which: Sequence[bool], why: str) -> None:
        if any(which):
            row = which.index(True)
            raise SubjectError(f"{self.name} cannot read text {row} (the first is 0), '{texts[row][:30]}': it {why}")


def owned(
    text: str, words: Sequence[Sequence[int]], places: Sequence[Place], special: Sequence[int]
) -> tuple[list[Place], list[int]]:
    """The units, which are words that have pieces, and for each piece the place of its unit among them.

    A piece is part of the word in which it stands, one of white space alone of the next. Words that share a piece are
    one unit.
    """
    ends_at = [end for _, end in words]
    reach = [None if out else _reach(text, ends_at, place) for place, out in zip(places, special, strict=True)]
    tied = {word for ends in reach if ends for word in range(*ends)}
    groups = list(accumulate(int(word - 1 not in tied) for word in range(len(words))))
    used = sorted({groups[ends[0]] for ends in reach if ends})
    own = {group: number for number, group in enumerate(used)}
    first, last = dict(zip(reversed(groups), reversed(words), strict=True)), dict(zip(groups, words, strict=True))
    spans = [(first[group][0], last[group][1]) for group in used]
    return spans, [own[groups[ends[0]]] if ends else NO_UNIT for ends in reach]


def _reach(text: str, ends: Sequence[int], place: Place) -> Place:
    """The first and the last word in which a piece has letters."""
    letters = [spot for spot in range(*place) if not text[spot].isspace()] or [place[0]]
    first, last = (min(bisect_right(ends, spot), len(ends) - 1) for spot in (letters[0], letters[-1]))
    return first, last


def load_pretrained(folder: Path, tokenizer: Any = None, *, hub: bool = False) -> tuple[Any, Any]:
    """Model and tokenizer of a local folder: weights from safetensors only, no code of others, single precision."""
    transformers: Any = load_extra("transformers", "transformers", "Transformer models")
    if not is_folder(folder) and not hub:
        raise ConfigError(
            f"There is no folder '{folder}' with a model. Give the folder that save_pretrained wrote (config.json, "
            "model.safetensors, tokenizer.json), or say hub=True if this is a name on the hub."
        )
    _refuse_pickles(folder)
    how = {"local_files_only": not hub, "trust_remote_code": False}
    weights = {"use_safetensors": True, "attn_implementation": "eager", "dtype": torch.float32}
    kind = transformers.AutoModelForSequenceClassification
    with quietly(transformers.utils.logging), in_a_sentence(f"'{folder}'", "to load as a sequence classifier"):
        model, told = kind.from_pretrained(str(folder), output_loading_info=True, **weights, **how)
        tokenizer = tokenizer or transformers.AutoTokenizer.from_pretrained(str(folder), **how)
    if told["missing_keys"]:
        raise SubjectError(
            f"'{folder}' has no weights for {', '.join(sorted(told['missing_keys'])[:3])}: it was not trained to "
            "classify. Fine-tune it first and save it with save_pretrained."
        )
    return model, tokenizer


def _refuse_pickles(folder: Path) -> None:
    """Weights that run whatever code their file holds when they are loaded."""
    others = sorted(path.name for path in folder.glob("*") if path.suffix in {".bin", ".pt", ".pth", ".ckpt", ".pkl"})
    if others and not [*folder.glob("*.safetensors")]:
        raise ConfigError(
            f"'{folder}' has no safetensors, and '{others[0]}' is not read: such a file can run code when it is loaded."
            " If you trust whoever made it, load the model yourself and give it, heedful.subject(model, tokenizer), or "
            "save it again with save_pretrained."
        )


def pretrained_subject(
    model: Any,
    tokenizer: Any = None,
    *,
    name: str | None = None,
    class_names: Sequence[Any] | None = None,
    truncate: bool = False,
    threads: int = THREADS,
    watch: Watch | None = None,
) -> PretrainedSubject:
    """A checked subject: it says what the model says when called plainly, and offers no way that it cannot go."""
    who = name or type(model).__name__
    _check_tokenizer(tokenizer, who)
    mask = _first_number(tokenizer.mask_token_id, tokenizer.unk_token_id)
    first = PretrainedSubject(
        name=who,
        model=model,
        tokenizer=tokenizer,
        class_names=_class_names(model.config, class_names, who),
        ways=(DELETE,) if mask is None else (DELETE, MASK),
        mask=mask,
        nothing=_first_number(tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id) or 0,
        truncate=truncate,
        threads=threads,
    )
    _check_plain(first)
    several = replace(first, at_once=PIECES_AT_ONCE if reads_several(first, first.read([PROBE]).pieces.numbers) else 1)
    return replace(several, ways=(*several.ways, *([ATTENTION] if _hides(several) else [])), watch=watch)


def _first_number(*numbers: int | None) -> int | None:
    return next((number for number in numbers if number is not None), None)


def _check_tokenizer(tokenizer: Any, who: str) -> None:
    if tokenizer is None:
        raise SubjectError(f"{who} needs its tokenizer: heedful.subject(model, tokenizer).")
    if not getattr(tokenizer, "is_fast", False):
        raise SubjectError(
            f"The tokenizer of {who} does not say where its pieces stand in the text. Take the fast one."
        )
    if len(tokenizer) <= len(tokenizer.all_special_ids):
        raise SubjectError(f"The tokenizer of {who} knows no words: the model was saved without one. Save it beside.")


def _class_names(config: Any, given: Sequence[Any] | None, who: str) -> tuple[str, ...]:
    problem, outputs = str(getattr(config, "problem_type", None)), int(config.num_labels)
    if problem in {"multi_label_classification", "regression"} or (outputs == 1 and given is None):
        what = "one output, as for regression" if outputs == 1 else problem.replace("_", " ")
        raise SubjectError(
            f"{who} is made for {what}; one class of several for each text is needed. If its one output is the logit "
            "of the second of two classes, give their class_names."
        )
    known = tuple(str(config.id2label[number]) for number in range(outputs))
    names = checked_names(known if given is None else given, who)
    if len(names) != max(2, outputs):
        raise SubjectError(f"{who} has {outputs} classes ({', '.join(known)}), and {len(names)} names were given.")
    return names


def _check_plain(subject: PretrainedSubject) -> None:
    """Refuse a model that reads more of a text than the numbers of its pieces."""
    told = subject.probabilities(subject.read([PROBE]).pieces.numbers[None])
    with subject.at_rest(), torch.no_grad(), in_a_sentence(subject.name, f"on '{PROBE}'"):
        given = subject.tokenizer(PROBE, return_tensors="pt").to(device_of(subject.model))
        plain = probable(subject.model(**given).logits.cpu().double())
    if not torch.allclose(told, plain, atol=SAME):
        raise SubjectError(
            f"{subject.name} says something else of '{PROBE}' when it is given the pieces alone than what the "
            f"tokenizer makes of it ({', '.join(given)}); such models cannot be examined."
        )


def _hides(subject: PretrainedSubject) -> bool:
    """Whether what is not attended to matters no more, of each word and of all: others in its place change nothing."""
    reading, special = subject.read([PROBE]), set(subject.tokenizer.all_special_ids)
    count = int(reading.units.offsets[-1])
    marks = torch.cat([torch.eye(count, dtype=torch.bool), torch.ones(1, count, dtype=torch.bool)])
    rows = torch.zeros(len(marks), dtype=torch.int64)
    texts = changed(reading.pieces, reading.units, rows, marks.flatten(), ATTENTION, mask=None, nothing=0)
    first, second, *_ = [number for number in range(len(special) + 2) if number not in special]
    others = torch.full_like(texts.numbers, first).masked_fill(texts.numbers == first, second)
    try:
        told = subject.ask(replace(texts, numbers=texts.numbers.where(texts.seen, others)))
        return torch.allclose(subject.ask(texts), told, atol=HIDDEN)
    except SubjectError:  # nothing can be said of a text of which nothing is seen
        return False
