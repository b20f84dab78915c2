"""All that a training has become after some epochs, so that it can stop and go on, bit for bit."""

import hashlib
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from heedful.config import ModelSettings, TrainingSettings
from heedful.errors import CheckpointError, ConfigError, border, reason
from heedful.files import replacing
from heedful.models.classifier import Classifier, Interface, make_classifier
from heedful.models.frozen import FrozenTransformer
from heedful.tensor_files import load_tensors, save_tensors
from heedful.text.vectors import Vectors
from heedful.training.events import Recorder
from heedful.training.optimizers import Optimizer, make_optimizer


def generator(seed: int, stream: str, device: str = "cpu") -> torch.Generator:
    """A random stream of its own for each use of chance, all from one seed."""
    digest = hashlib.sha256(f"{seed}/{stream}".encode()).digest()
    return torch.Generator(device).manual_seed(int.from_bytes(digest[:7]))


def _check_device(name: str) -> None:
    """Refuse a device on which no number can be computed here."""
    try:
        torch.ones(1, device=name).item()
    except Exception as error:  # torch has a kind for each reason
        raise ConfigError(
            f"training.device is '{name}', on which torch cannot compute here: {reason(error)}. Give cpu."
        ) from error


def best_epoch(rows: Sequence[Mapping[str, Any]], ties: str) -> int:
    """The epoch with the largest dev accuracy; of equals that with the smallest dev loss (`ties` "loss"), or the first.

    Where training has a dev objective, the epoch with its smallest value, of equals the first.

    On data with one large class the first epochs, which only ever say that class, may equal later ones in accuracy;
    the loss tells them apart. Differs from the papers, which keep the first.
    """

    def merit(row: Mapping[str, Any]) -> tuple[float, float]:
        if "dev_objective" in row:
            return -row["dev_objective"], 0.0
        loss = row["dev_loss"] if ties == "loss" else 0.0
        return row["dev_accuracy"], -math.inf if math.isnan(loss) else -loss

    return int(max(rows, key=merit)["epoch"])


@dataclass(kw_only=True)
class TrainingState:
    """The model, its optimiser, the random streams, the best epoch so far, and what was recorded."""

    model: Classifier
    optimizer: Optimizer
    order: torch.Generator
    dropout: torch.Generator
    epoch: int = 0
    step: int = 0
    rows: list[dict[str, int | float]] = field(default_factory=list)
    best_epoch: int = 0
    best: dict[str, Tensor] = field(default_factory=dict)
    recorders: Sequence[Recorder] = ()

    @classmethod
    def start(
        cls,
        interface: Interface,
        model: ModelSettings,
        training: TrainingSettings,
        vectors: Vectors | None = None,
        reader: FrozenTransformer | None = None,
    ) -> "TrainingState":
        """Parameters as they are drawn from the seed, and the embeddings of some tokens as they are given."""
        _check_device(training.device)
        drawn = generator(training.seed, "parameters")
        classifier = make_classifier(interface, model, drawn, vectors, reader).to(training.device)
        return cls(
            model=classifier,
            optimizer=make_optimizer(classifier, training),
            order=generator(training.seed, "order"),
            dropout=generator(training.seed, "dropout", training.device),
        )

    def halvings(self, plateau: int | None) -> int:
        """How often the dev accuracy has stayed below its best for so many epochs in a row."""
        best, waited, count = -1.0, 0, 0
        if plateau is None:
            return count
        for row in self.rows:
            best, waited = (row["dev_accuracy"], 0) if row["dev_accuracy"] > best else (best, waited + 1)
            count += waited > 0 and waited % plateau == 0
        return count

    def keep_if_best(self, ties: str) -> bool:
        """Keep the parameters when the last epoch is better than all before."""
        better = best_epoch(self.rows, ties) == self.epoch
        if better:
            self.best_epoch = self.epoch
            self.best = {name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()}
        return better

    def save(self, path: Path) -> None:
        tensors = {f"model.{name}": tensor for name, tensor in self.model.state_dict().items()}
        tensors |= {f"best.{name}": tensor for name, tensor in self.best.items()}
        for number, state in self.optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{number}.{name}": value for name, value in state.items() if value is not None}
        tensors |= {"order": self.order.get_state(), "dropout": self.dropout.get_state()}
        for number, recorder in enumerate(self.recorders):
            tensors |= {f"recorded.{number}.{name}": _packed(table) for name, table in recorder.tables().items()}
        progress = {"epoch": self.epoch, "step": self.step, "rows": self.rows, "best_epoch": self.best_epoch}
        with replacing(path) as temporary:
            save_tensors(temporary, tensors, {"progress": json.dumps(progress)})

    def restore(self, path: Path) -> None:
        """Go on from what `save` wrote."""
        remedy = "Remove it to start anew."
        tensors, notes = load_tensors(path, CheckpointError, remedy)
        with border(f"The checkpoint '{path}' of another training", CheckpointError, remedy):
            self._restore(tensors, json.loads(notes["progress"]))

    def _restore(self, tensors: dict[str, Tensor], progress: dict[str, Any]) -> None:
        self.model.load_state_dict(_under(tensors, "model."))
        self.best = _under(tensors, "best.")
        self._restore_optimizer(_under(tensors, "optimizer."))
        self.order.set_state(tensors["order"])
        self.dropout.set_state(tensors["dropout"])
        self.epoch, self.step = progress["epoch"], progress["step"]
        self.rows, self.best_epoch = progress["rows"], progress["best_epoch"]
        for number, recorder in enumerate(self.recorders):
            packed = _under(tensors, f"recorded.{number}.")
            recorder.restore({name: _unpacked(table) for name, table in packed.items()})

    def _restore_optimizer(self, tensors: dict[str, Tensor]) -> None:
        state: dict[int, dict[str, Tensor]] = {}
        for key, tensor in tensors.items():
            number, _, name = key.partition(".")
            state.setdefault(int(number), {})[name] = tensor
        self.optimizer.load_state_dict({"state": state, "param_groups": self.optimizer.state_dict()["param_groups"]})


def _under(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _packed(table: pd.DataFrame) -> Tensor:
    """A table as the bytes of a Parquet file, which give back its very bits."""
    return torch.frombuffer(bytearray(table.to_parquet(index=False)), dtype=torch.uint8)


def _unpacked(packed: Tensor) -> pd.DataFrame:
    return pd.read_parquet(io.BytesIO(packed.numpy().tobytes()))
