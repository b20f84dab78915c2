"""One trainer for all tasks of the zoo: so many steps, the best of them by dev, then the tests."""

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
import torch

from heedful.zoo.task import Entrant, Examples, Figures, Looks, Network, Outcome, Task

CHECKS = 20
"""How often dev is looked at."""
AT_ONCE = 250
"""Examples that are judged together."""


@dataclass(frozen=True, kw_only=True)
class Checked:
    """A look at dev."""

    task: str
    entrant: str
    seed: int
    step: int
    steps: int
    row: Mapping[str, int | float]


Observer = Callable[[Checked], None]


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A network as it was at its best step, and how it came there."""

    network: Network
    history: pd.DataFrame
    figures: dict[str, Figures]
    """By test split."""
    step: int
    steps: int
    parameters: int
    """Numbers that are learned: what a control or a baseline holds and leaves aside does not count."""
    milliseconds: float
    """Of the processor for a step, without drawing its examples."""


def train(
    task: Task, entrant: Entrant, *, seed: int = 0, steps: int | None = None, observers: Sequence[Observer] = ()
) -> Trained:
    """Adam on fresh examples at each step; returns the network of the step with the best dev figure."""
    steps = task.steps if steps is None else steps
    network = make(entrant, seed)
    examples_by = torch.Generator().manual_seed(seed + 1)
    dev = task.draw("dev", task.size, torch.Generator().manual_seed(1_000_003))
    optimizer = torch.optim.Adam(network.parameters(), lr=task.rate)
    every, best, kept, rows, busy, losses = max(1, steps // CHECKS), -float("inf"), None, [], 0.0, 0.0
    for step in range(1, steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = task.rate * _rate(step / steps)
        examples = task.draw("train", task.batch, examples_by)
        begun = time.process_time()
        losses += _step(network, task, examples, optimizer)
        busy += time.process_time() - begun
        if step % every == 0 or step == steps:
            found = task.judge(answer(network, dev), dev)
            rows.append({"step": step, "loss": losses / every, **found})
            losses = 0.0
            for observer in observers:
                observer(Checked(task=task.name, entrant=entrant.name, seed=seed, step=step, steps=steps, row=rows[-1]))
            if found[task.best] >= best:
                best, kept = found[task.best], (step, copy.deepcopy(network.state_dict()))
    assert kept is not None
    network.load_state_dict(kept[1])
    return Trained(
        network=network,
        history=pd.DataFrame(rows),
        figures={split: measure(network, task, split) for split in task.tests},
        step=kept[0],
        steps=steps,
        parameters=sum(one.numel() for one in network.parameters() if one.grad is not None),
        milliseconds=1000 * busy / steps,
    )


def make(entrant: Entrant, seed: int) -> Network:
    """The network with its first values; torch's own generator is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return entrant.make()


def examples_of(task: Task, split: str) -> Examples:
    """Those that every entrant and seed is tested on."""
    return task.draw(split, task.size, torch.Generator().manual_seed(2_000_003))


def measure(network: Network, task: Task, split: str) -> Figures:
    examples = examples_of(task, split)
    return task.judge(answer(network, examples), examples)


@torch.no_grad()
def answer(network: Network, examples: Examples, *, forced: bool = False, without: Looks | None = None) -> Outcome:
    """What a network says, some examples at a time."""
    network.eval()
    parts = []
    for begin in range(0, len(examples), AT_ONCE):
        rows = slice(begin, begin + AT_ONCE)
        hidden = {look: marks[rows] for look, marks in without.items()} if without else None
        parts.append(network(examples.take(rows), forced=forced, without=hidden))
    network.train()
    return Outcome(
        logits=torch.cat([part.logits for part in parts]),
        weights={look: torch.cat([part.weights[look] for part in parts]) for look in parts[0].weights},
    )


def _rate(progress: float) -> float:
    """Of the learning rate: whole for the first half, then down to a tenth."""
    return min(1.0, 1.0 - 1.8 * (progress - 0.5))


def _step(network: Network, task: Task, examples: Examples, optimizer: torch.optim.Optimizer) -> float:
    loss = task.loss(network(examples, forced=True), examples)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(network.parameters(), task.clip)
    optimizer.step()
    return loss.item()
