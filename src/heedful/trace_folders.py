"""A trace as a folder of shards, for more instances than memory holds: written one by one, read one by one.

    <folder>/plan.json                  what it is a trace of, and which instances each shard has; written first
    <folder>/shard-00000.safetensors    a trace file like any other, whole or absent
    <folder>/trace.json                 sizes and checksums; written last: what has it is finished

A writer that was killed goes on with the shards that are missing. Random numbers of an analysis belong to the whole
trace: a shard knows its place in it (`Trace.part`), so that any shards give the numbers of the whole.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Int
from pydantic import BaseModel, Field
from torch import Tensor

from heedful.errors import StoreError, TraceError, border
from heedful.files import make_folder, read_json, write_json
from heedful.notebook import counted, listed
from heedful.tensor_files import read_checksum
from heedful.text.ragged import offsets_of
from heedful.trace_files import read_fields
from heedful.traces import Part, Trace, digests_of

FORMAT = 1
PLAN, MANIFEST, SHARD = "plan.json", "trace.json", "shard-{:05d}.safetensors"
SHARD_SIZE = 10_000
"""Instances of a shard, unless another number is asked for."""

_ANEW = "Trace the texts again into another folder, or remove this one."


class ShardFacts(BaseModel, frozen=True):
    """What is known of a shard without reading it."""

    file: str
    instances: int
    units: int
    lengths: tuple[int, ...]
    """How many units each instance has."""
    largest: float
    """The largest |z|."""
    checksum: str | None


class Manifest(BaseModel, frozen=True):
    """What makes a folder of shards a trace."""

    format: int
    labelled: bool
    class_names: tuple[str, ...]
    bias: tuple[float, ...]
    shards: tuple[ShardFacts, ...] = Field(min_length=1)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a folder is to become."""

    identity: str
    """Of the model and the texts; a folder that was begun for others is refused."""
    bounds: tuple[int, ...]
    """The first instance of each shard, and the end."""

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def begin(self, folder: Path) -> None:
        """Make the folder this plan's, or go on with what was begun."""
        content = {"format": FORMAT, "identity": self.identity, "bounds": list(self.bounds)}
        if (folder / PLAN).is_file():
            if read_json(folder / PLAN) != content:
                raise TraceError(
                    f"'{folder}' holds another trace, of another model, other texts or in other shards. Give another "
                    "folder, or remove it."
                )
            return
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise TraceError(f"A trace goes into a folder of its own; '{folder}' holds something else.")
        make_folder(folder)
        write_json(folder / PLAN, content)

    def missing(self, folder: Path) -> list[int]:
        """The numbers of the shards that are not written yet."""
        return [number for number in range(len(self)) if not (folder / SHARD.format(number)).is_file()]

    def finish(self, folder: Path) -> "TraceFolder":
        """Write down what the shards hold: after this the folder is a trace."""
        if (folder / MANIFEST).is_file():
            return TraceFolder(folder)
        shards, first = [], None
        for number, (start, stop) in enumerate(pairwise(self.bounds)):
            path = folder / SHARD.format(number)
            trace = Trace.from_arrays(**read_fields(path, units=False))
            first = first or trace
            if len(trace) != stop - start:
                raise TraceError(f"'{path}' has {len(trace):,} instances; {stop - start:,} were expected. {_ANEW}")
            facts = ShardFacts(
                file=path.name,
                instances=len(trace),
                units=int(trace.offsets[-1]),
                lengths=tuple(trace.lengths.tolist()),
                largest=float(trace.polarity_scores.abs().max()),
                checksum=read_checksum(path, TraceError),
            )
            shards.append(facts)
        assert first is not None
        manifest = Manifest(
            format=FORMAT,
            labelled=first.labels is not None,
            class_names=first.class_names,
            bias=tuple(first.bias.tolist()),
            shards=tuple(shards),
        )
        write_json(folder / MANIFEST, manifest.model_dump(mode="json"))
        return TraceFolder(folder)


@dataclass(frozen=True)
class TraceFolder:
    """A trace on disk, read shard by shard. Made by `heedful.trace` with `out`, or by `save_shards`.

    path: the folder.

    >>> import heedful
    >>> scores = {"attention_weights": [0.5, 0.5, 1.0], "polarity_scores": [2, -1, 1]}
    >>> trace = heedful.Trace.from_arrays(offsets=[0, 2, 3], bias=[0], **scores)
    >>> folder = heedful.save_shards(trace, "my-trace", shard_size=1)
    >>> folder
    TraceFolder(2 instances, 3 units, classes 0, 1; 2 shards)
    >>> [len(shard) for shard in folder.shards()]
    [1, 1]
    >>> heedful.in_shards(folder, heedful.first_flips)["erased"].tolist()
    [1, 1]
    """

    path: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path))
        if not (self.path / MANIFEST).is_file():
            begun = ": it was begun and not finished. Trace the same texts into it again" if self._begun else ""
            raise TraceError(f"'{self.path}' is not a trace in shards{begun}.")
        if self.manifest.format > FORMAT:
            raise TraceError(
                f"'{self.path / MANIFEST}' has the format {self.manifest.format}; this version reads {FORMAT}. Update "
                "heedful."
            )

    @property
    def _begun(self) -> bool:
        return (self.path / PLAN).is_file()

    @cached_property
    def manifest(self) -> Manifest:
        with border(f"'{self.path / MANIFEST}'", TraceError, _ANEW):
            return Manifest.model_validate(read_json(self.path / MANIFEST))

    @property
    def class_names(self) -> tuple[str, ...]:
        return self.manifest.class_names

    @cached_property
    def lengths(self) -> Int[Tensor, " instances"]:
        """How many units each instance has."""
        return torch.cat([torch.tensor(shard.lengths, dtype=torch.int64) for shard in self.manifest.shards])

    @cached_property
    def bounds(self) -> tuple[int, ...]:
        """The first instance of each shard, and the end."""
        return (0, *np.cumsum([shard.instances for shard in self.manifest.shards]).tolist())

    @property
    def count(self) -> int:
        """Of shards."""
        return len(self.manifest.shards)

    def __len__(self) -> int:
        return self.bounds[-1]

    def __repr__(self) -> str:
        sizes = f"{counted(len(self), 'instance')}, {counted(int(self.lengths.sum()), 'unit')}"
        return f"TraceFolder({sizes}, classes {listed(self.class_names)}; {counted(self.count, 'shard')})"

    def shard(self, number: int, *, units: bool = False) -> Trace:
        """One shard as a trace, which knows its place in the whole; with the words or sentences only if asked for."""
        held = self.manifest.shards[number]
        path = self.path / Path(held.file).name
        if not path.is_file() or read_checksum(path, StoreError) != held.checksum:
            state = "another" if path.is_file() else "gone"
            raise StoreError(f"'{path}' is not what was written: the file is {state}. {_ANEW}")
        trace = Trace.from_arrays(**read_fields(path, units=units))  # what is damaged is refused
        largest = max(shard.largest for shard in self.manifest.shards)
        return replace(trace, part=Part(first=self.bounds[number], lengths=self.lengths, largest=largest))

    def shards(self, *, units: bool = False) -> Iterator[Trace]:
        """All of them in their order, each read when it is asked for."""
        return (self.shard(number, units=units) for number in range(self.count))

    def load(self) -> Trace:
        """The whole trace in memory."""
        return _joined(list(self.shards(units=True)))

    def take(self, rows: Int[Tensor, " rows"]) -> Trace:
        """The trace of these instances, in this order, in memory."""
        order = rows.argsort(stable=True)
        parts = []
        for number, (start, stop) in enumerate(pairwise(self.bounds)):
            own = rows[order][(rows[order] >= start) & (rows[order] < stop)]
            if len(own):
                parts.append(self.shard(number, units=True).take(own - start))
        return _joined(parts).take(order.argsort(stable=True))

    @cached_property
    def distinct(self) -> Bool[Tensor, " instances"]:
        """Whether no instance before this one has the same units."""
        return first_of_equals([digest for shard in self.shards() for digest in digests_of(shard)])


def first_of_equals(digests: Sequence[bytes]) -> Bool[Tensor, " instances"]:
    """Which of them no other before is like."""
    return torch.from_numpy(~pd.Series(digests).duplicated().to_numpy())


def save_shards(trace: Trace, folder: Path | str, shard_size: int = SHARD_SIZE) -> TraceFolder:
    """Cut a trace that is in memory into shards, files of a folder. See `TraceFolder`.

    trace: any trace, from `heedful.trace`, `Trace.from_arrays` or a file.
    folder: where the shards go; a folder that was begun is gone on with.
    shard_size: so many instances in each; the last may have fewer.

    >>> import heedful
    >>> scores = {"attention_weights": [0.5, 0.5, 1.0], "polarity_scores": [2, -1, 1]}
    >>> trace = heedful.Trace.from_arrays(offsets=[0, 2, 3], bias=[0], **scores)
    >>> heedful.save_shards(trace, "shards", shard_size=2).count
    1
    """
    plan = Plan(identity="", bounds=even_bounds(len(trace), checked_size(shard_size)))
    plan.begin(Path(folder))
    for number in plan.missing(Path(folder)):
        trace.take(torch.arange(*plan.bounds[number : number + 2])).save(Path(folder) / SHARD.format(number))
    return plan.finish(Path(folder))


def even_bounds(instances: int, shard_size: int) -> tuple[int, ...]:
    """Shards of one size; the last may be smaller."""
    return (*range(0, instances, shard_size), instances)


def checked_size(shard_size: int) -> int:
    if shard_size < 1:
        raise TraceError(f"A shard has one instance or more (shard_size); got {shard_size}.")
    return shard_size


def _joined(parts: Sequence[Trace]) -> Trace:
    """Traces of one model, end to end."""
    labels = [part.labels for part in parts if part.labels is not None]
    units = [part.units for part in parts if part.units is not None]

    def joined(name: str) -> Tensor:
        return torch.cat([getattr(part, name) for part in parts])

    return replace(
        parts[0],
        offsets=offsets_of(torch.cat([part.lengths for part in parts])),
        attention_scores=joined("attention_scores"),
        attention_weights=joined("attention_weights"),
        polarity_scores=joined("polarity_scores"),
        labels=torch.cat(labels) if len(labels) == len(parts) else None,
        units=[unit for some in units for unit in some] if len(units) == len(parts) else None,
        part=None,
    )
