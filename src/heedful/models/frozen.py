"""A frozen transformer as an encoder: what it makes of a text's words is computed once, kept, and never trained.

The vector of word j is the mean of the vectors that one layer gives the pieces of the word, in half precision:

    h_j = 1/|P_j| Σ_{p ∈ P_j} t_p        P_j: the pieces of the tokenizer that overlap word j

The transformer reads the original text, marks and special tokens included; these are units only where the corpus says
so. A text with more pieces than it has positions is read in stretches of about equal length, one after the other, each
cut where a word begins. A word of which the tokenizer leaves nothing has the vector zero. Texts are read in batches of
equal length by one thread and never padded, so that a text has the same vectors whatever it is read with.

Vectors of a split are kept in a store (`CONTEXTUAL`) and memory-mapped; without a store they stay in memory.
"""

import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from heedful.config import ModelSettings, encoder_digest
from heedful.errors import ConfigError, HeedfulError, InputError, load_extra
from heedful.files import digest_of, explained, read_json, write_json
from heedful.models.kernels import limited_threads
from heedful.notebook import short
from heedful.store import CONTEXTUAL, Store
from heedful.text.corpus import Split
from heedful.text.ragged import equal_lengths, in_order, offsets_of, positions_of

FORMAT = 1
"""Raised when the same key would stand for other vectors; part of the key."""

PIECES_AT_ONCE = 4_096
CHUNK = 16 * PIECES_AT_ONCE
"""About so many words are read from one mark of what is done to the next that may be written."""

MARK_SECONDS = 5.0
NO_LIMIT = 1_000_000
"""Tokenizers that know no longest text name a number beyond this."""

LONGEST_SAYING = 300

SMALL, RECENT = 20_000, 8
"""Splits of so few units are remembered when they were read, the last few of them."""

SIZES, LAYERS = ("hidden_size", "dim", "d_model", "n_embd"), ("num_hidden_layers", "n_layers", "n_layer", "num_layers")
"""What configurations call the numbers of a hidden vector, and the layers."""

Halves = NDArray[np.float16]
Watch = Callable[[int, int], None]
"""Told how many of how many texts are read."""


@dataclass(frozen=True, kw_only=True)
class Pieces:
    """What a tokenizer makes of texts: numbers, and which words each piece overlaps, first[p] … last[p] − 1.

    Words are counted through all of the texts. `offsets` say where each text begins.
    """

    numbers: Int[Tensor, " pieces"]
    first: Int[Tensor, " pieces"]
    last: Int[Tensor, " pieces"]
    offsets: Int[Tensor, " bounds"]

    def changed(self, kept: Bool[Tensor, " units"], masked: Bool[Tensor, " units"], mask: int) -> "Pieces":
        """Without the pieces whose words all left; those behind them move up. `mask` stands for a masked piece."""
        gone, hidden = self._all(~kept), self._all(masked)
        counts = offsets_of((~gone).long())[self.offsets]
        numbers = self.numbers.masked_fill(hidden, mask)
        return Pieces(numbers=numbers[~gone], first=self.first[~gone], last=self.last[~gone], offsets=counts)

    def _all(self, marked: Bool[Tensor, " units"]) -> Bool[Tensor, " pieces"]:
        """Pieces that overlap words, all of them marked."""
        sums = offsets_of(marked.long())
        return (self.last > self.first) & (sums[self.last] - sums[self.first] == self.last - self.first)

    def stretches(self, longest: int) -> Iterator[tuple[int, int]]:
        """Where each stretch begins and ends."""
        for begin, end in zip(self.offsets[:-1].tolist(), self.offsets[1:].tolist(), strict=True):
            yield from [(begin, end)] if end - begin <= longest else self._cut(begin, end, longest)

    def _cut(self, begin: int, end: int, longest: int) -> Iterator[tuple[int, int]]:
        """As few stretches as there can be, about as long as each other, cut where a word begins if one does."""
        while begin < end:
            parts = -(-(end - begin) // longest)
            stop = begin + -(-(end - begin) // parts)
            within = [place for place in range(stop, begin, -1) if place == end or self._begins(place)]
            stop = within[0] if within else stop
            yield begin, stop
            begin = stop

    def _begins(self, place: int) -> bool:
        return int(self.first[place]) >= int(self.last[place - 1])


@dataclass(frozen=True, kw_only=True, eq=False)
class FrozenTransformer:
    """A transformer of a local folder, and the layer whose vectors are read. Made by `FrozenTransformer.of`.

    digest: of the files of the folder. size: numbers of a vector. store: where vectors are kept; None: in memory.
    """

    path: Path
    layer: int
    digest: str
    size: int
    store: Store | None = None
    _held: dict[str, Halves] = field(default_factory=dict, repr=False)
    _recent: dict[str, Halves] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, settings: ModelSettings, store: Store | None = None) -> "FrozenTransformer":
        """The transformer that the settings name; the library is not asked before a text is read."""
        assert settings.encoder_path is not None
        path = Path(settings.encoder_path).absolute()
        digest, config = encoder_digest(str(path)), read_json(path / "config.json")
        layers, size = (_number(config, names, path) for names in (LAYERS, SIZES))
        layer = round(2 * layers / 3) if settings.encoder_layer is None else settings.encoder_layer
        if layer > layers:
            raise ConfigError(
                f"'{path}' has {layers} layers: encoder_layer is from 0 (the embeddings) to {layers}, not {layer}."
            )
        return cls(path=path, layer=layer, digest=digest, size=size, store=store)

    def __deepcopy__(self, _memo: object) -> "FrozenTransformer":
        """It never changes: copies of a classifier share it."""
        return self

    @property
    def description(self) -> dict[str, Any]:
        """What a saved classifier says of it."""
        return {"path": str(self.path), "layer": self.layer, "digest": self.digest}

    def keep(self, split: Split, watch: Watch | None = None) -> None:
        """Compute the vectors of a whole split, unless they are there, and keep them."""
        if self._find(split) is not None:
            return
        if self.store is None:
            found = np.empty((int(split.offsets[-1]), self.size), np.float16)
            for _ in self._fill(split, found, 0, watch):
                pass
            self._held[split.fingerprint] = found
            return
        keep = partial(self.store.keep, CONTEXTUAL, self._key(split), partial(self._make, split, watch))
        kept = self._open(keep()[0], split)
        kept = self._open(keep(fresh=True)[0], split) if kept is None else kept
        assert kept is not None
        self._held[split.fingerprint] = kept

    def vectors(self, split: Split, rows: Int[Tensor, " rows"]) -> Float[Tensor, "units features"]:
        """The vectors of these texts: kept ones, or read now."""
        kept = self._find(split)
        if kept is None and int(split.offsets[-1]) <= SMALL:
            kept = self._remember(split)
        if kept is None:
            return torch.from_numpy(self._read(self._cut(split, rows), int(split.lengths[rows].sum()))).float()
        return torch.from_numpy(kept[positions_of(split.offsets, rows).numpy()]).float()

    def changed(
        self, split: Split, rows: Int[Tensor, " rows"], kept: Bool[Tensor, " units"], masked: Bool[Tensor, " units"]
    ) -> Float[Tensor, "kept features"]:
        """The vectors of the words that are kept when these texts are read without the others, some of them masked.

        Pieces of what is left out leave the text, those behind move up; the mask token stands for each masked piece.
        """
        pieces = self._cut(split, rows).changed(kept, masked, self._mask if bool(masked.any()) else 0)
        return torch.from_numpy(self._read(pieces, len(kept))).float()[kept]

    def _find(self, split: Split) -> Halves | None:
        if split.fingerprint not in self._held and self.store is not None:
            path = self.store.find(self._key(split), CONTEXTUAL)
            found = None if path is None else self._open(path, split)
            if found is not None:
                self._held[split.fingerprint] = found
        return self._held.get(split.fingerprint)

    def _remember(self, split: Split) -> Halves:
        found = self._recent.pop(split.fingerprint, None)
        if found is None:
            found = self._read(self._cut(split, torch.arange(len(split))), int(split.offsets[-1]))
        self._recent[split.fingerprint] = found
        while len(self._recent) > RECENT:
            self._recent.pop(next(iter(self._recent)))
        return found

    def _key(self, split: Split) -> str:
        how = {"format": FORMAT, "encoder": self.digest, "layer": self.layer}
        return digest_of({**how, "split": split.fingerprint})[:24]

    def _open(self, path: Path, split: Split) -> Halves | None:
        """The vectors in a file, mapped into memory; nothing where it is damaged."""
        try:
            found = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError):
            return None
        return found if found.shape == (int(split.offsets[-1]), self.size) and found.dtype == np.float16 else None

    def _make(self, split: Split, watch: Watch | None, place: Path) -> None:
        """Write the file, from the last mark on that a killed process left beside it."""
        part, mark = place.with_name("vectors.npy"), place.with_name("done.json")
        done = int(read_json(mark)["texts"]) if mark.is_file() and self._open(part, split) is not None else 0
        shape = (int(split.offsets[-1]), self.size)
        with explained(part):
            target = np.lib.format.open_memmap(part, "r+" if done else "w+", np.float16, None if done else shape)
            marked = time.monotonic()
            for count in self._fill(split, target, done, watch):
                if time.monotonic() - marked > MARK_SECONDS:
                    target.flush()
                    write_json(mark, {"texts": count})
                    marked = time.monotonic()
            target.flush()
            part.replace(place)

    def _fill(self, split: Split, target: Halves, done: int, watch: Watch | None) -> Iterator[int]:
        """Read the texts, short ones first, from the given count on; tells how many are there."""
        order, count = split.lengths.argsort(stable=True), 0
        for places in in_order(split.lengths[order], CHUNK):
            count += len(places)
            if count > done:
                rows = order[places]
                where = positions_of(split.offsets, rows).numpy()
                target[where] = self._read(self._cut(split, rows), len(where))
                if watch is not None:
                    watch(count, len(split))
                yield count

    def _cut(self, split: Split, rows: Int[Tensor, " rows"]) -> Pieces:
        """The pieces of these texts, words counted through them."""
        texts = [split.texts[row] for row in rows.tolist()]
        with in_words(f"The tokenizer of '{self.path}'", f"on {len(texts)} texts"):
            told = self._tokenizer(
                texts, add_special_tokens=False, return_offsets_mapping=True, return_attention_mask=False, verbose=False
            )
        begins = offsets_of(split.lengths[rows]).tolist()
        parts = [
            _overlaps(split.spans(row).numpy(), np.array(places, dtype=np.int64).reshape(-1, 2), begin)
            for row, places, begin in zip(rows.tolist(), told["offset_mapping"], begins, strict=False)
        ]
        first, last = (np.concatenate([np.zeros(0, np.int64), *ends]) for ends in zip(*parts, strict=True))
        return Pieces(
            numbers=torch.tensor([number for one in told["input_ids"] for number in one], dtype=torch.int64),
            first=torch.from_numpy(first),
            last=torch.from_numpy(last),
            offsets=offsets_of(torch.tensor([len(one) for one in told["input_ids"]])),
        )

    def _read(self, pieces: Pieces, units: int) -> Halves:
        """The mean vector of the pieces of each of so many words."""
        sums, counts = torch.zeros(units, self.size), torch.zeros(units)
        before, behind = self._specials
        places = list(pieces.stretches(self._longest - len(before) - len(behind)))
        lengths = torch.tensor([end - begin for begin, end in places])
        for some in equal_lengths(lengths, PIECES_AT_ONCE):
            begins = torch.tensor([places[one][0] for one in some.tolist()])
            where = begins[:, None] + torch.arange(int(lengths[some[0]]))
            numbers = torch.cat([before.expand(len(some), -1), pieces.numbers[where], behind.expand(len(some), -1)], 1)
            vectors = self._hidden(numbers)[:, len(before) : len(before) + where.shape[1]].reshape(-1, self.size)
            first, last = pieces.first[where].flatten(), pieces.last[where].flatten()
            owned = torch.repeat_interleave(torch.arange(len(first)), last - first)
            words = positions_of_ranges(first, last)
            sums.index_add_(0, words, vectors[owned])
            counts.index_add_(0, words, torch.ones(len(words)))
        halves: Halves = (sums / counts.clamp(min=1)[:, None]).half().numpy()
        if not np.isfinite(halves).all():
            raise InputError(f"'{self.path}' gives numbers that are not finite, or too large for half precision.")
        return halves

    def _hidden(self, numbers: Int[Tensor, "rows pieces"]) -> Float[Tensor, "rows pieces features"]:
        """What the layer makes of texts of equal length."""
        if not numbers.shape[1]:
            return torch.zeros(len(numbers), 0, self.size)
        doing = f"on {len(numbers)} texts of {numbers.shape[1]} pieces"
        with torch.no_grad(), limited_threads(1), in_words(f"'{self.path}'", doing):
            told: Tensor = self._model(input_ids=numbers, output_hidden_states=True).hidden_states[self.layer]
            return told.float()

    @cached_property
    def _model(self) -> Any:
        """The transformer, without the head of a classifier: weights from safetensors, no code of others."""
        library: Any = load_extra("transformers", "transformers", "Transformer encoders")
        how = {"local_files_only": True, "trust_remote_code": False, "use_safetensors": True, "dtype": torch.float32}
        with quietly(library.utils.logging), in_words(f"'{self.path}'", "to load as a transformer"):
            model, told = library.AutoModel.from_pretrained(str(self.path), output_loading_info=True, **how)
        missing = sorted(name for name in told["missing_keys"] if "pooler" not in name)
        if missing:
            raise ConfigError(f"'{self.path}' has no weights for {', '.join(missing[:3])}: it is no whole transformer.")
        return model.eval().requires_grad_(False)

    @cached_property
    def _tokenizer(self) -> Any:
        library: Any = load_extra("transformers", "transformers", "Transformer encoders")
        with quietly(library.utils.logging), in_words(f"'{self.path}'", "to load its tokenizer"):
            found = library.AutoTokenizer.from_pretrained(
                str(self.path), local_files_only=True, trust_remote_code=False
            )
        if not getattr(found, "is_fast", False) or len(found) <= len(found.all_special_ids):
            raise ConfigError(
                f"'{self.path}' has no fast tokenizer that says where its pieces stand in a text. Save tokenizer.json "
                "beside the model."
            )
        return found

    @cached_property
    def _specials(self) -> tuple[Int[Tensor, " before"], Int[Tensor, " behind"]]:
        """The special tokens before and behind a text."""
        told = self._tokenizer("a", return_special_tokens_mask=True)
        numbers, marks = torch.tensor(told["input_ids"], dtype=torch.int64), told["special_tokens_mask"]
        before = marks.index(0)
        return numbers[:before], numbers[len(marks) - marks[::-1].index(0) :]

    @cached_property
    def _mask(self) -> int:
        """What stands for a masked piece: the mask token, or the unknown one."""
        for number in (self._tokenizer.mask_token_id, self._tokenizer.unk_token_id):
            if number is not None:
                return int(number)
        raise InputError(f"The tokenizer of '{self.path}' has no token for what is masked. Delete words instead.")

    @cached_property
    def _longest(self) -> int:
        """How many pieces it can read at once, special tokens included; positions may begin after that of padding."""
        said = getattr(self._model.config, "max_position_embeddings", None) or 0
        tables = (part for name, part in self._model.named_modules() if name.endswith("position_embeddings"))
        padded = [part.padding_idx for part in tables if getattr(part, "padding_idx", None) is not None]
        positions = (said if said > 0 else NO_LIMIT) - (max(padded) + 1 if padded else 0)
        return int(min(self._tokenizer.model_max_length, NO_LIMIT, positions))


def find_reader(settings: ModelSettings, store: Store | None = None) -> FrozenTransformer | None:
    """The frozen transformer of a model that has one."""
    return FrozenTransformer.of(settings, store) if settings.encoder == "transformer" else None


@contextmanager
def quietly(log: Any) -> Iterator[None]:
    """Without the bars, tables and warnings of the transformers library: what matters is said in our errors."""
    level, shown = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity_error()
    log.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="`torch.jit.script` is deprecated", category=DeprecationWarning)
            yield
    finally:
        log.set_verbosity(level)
        if shown:
            log.enable_progress_bar()


@contextmanager
def in_words(who: str, doing: str, kind: type[InputError] = InputError) -> Iterator[None]:
    """Whatever goes wrong inside a library or someone else's model, said in a sentence."""
    try:
        yield
    except HeedfulError:
        raise
    except Exception as error:
        said = short("".join(traceback.format_exception_only(error)), LONGEST_SAYING)
        raise kind(f"{who} failed {doing}: {said.rstrip('.')}.") from error


def positions_of_ranges(first: Int[Tensor, " ranges"], last: Int[Tensor, " ranges"]) -> Int[Tensor, " numbers"]:
    """first[r] … last[r] − 1 of each range, one after the other."""
    offsets = offsets_of(last - first)
    shifts = torch.repeat_interleave(first - offsets[:-1], last - first)
    return shifts + torch.arange(int(offsets[-1]))


def _overlaps(
    words: NDArray[Any], places: NDArray[np.int64], begin: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each piece the first word that it overlaps, and the end of the last."""
    first = np.searchsorted(words[:, 1], places[:, 0], side="right")
    last = np.searchsorted(words[:, 0], places[:, 1], side="left")
    return first + begin, np.maximum(first, last) + begin


def _number(config: Any, names: Sequence[str], path: Path) -> int:
    """A number of a configuration, whatever it calls it."""
    found = next((config[name] for name in names if isinstance(config.get(name), int)), None)
    if found is None:
        raise ConfigError(f"'{path / 'config.json'}' is not that of a transformer: it has none of {', '.join(names)}.")
    return int(found)
