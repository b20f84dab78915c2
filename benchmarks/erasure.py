"""Erasure on traces beside the loop that Serrano & Smith 2019 describe, on the same arrays, and a million units."""

import itertools
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from heedful.analysis.erasure import first_flips, minimum_flips
from heedful.analysis.rankings import ranked
from heedful.traces import Trace

UNITS, CLASSES, BATCH = 200, 10, 64
Pool = Callable[[Tensor, Tensor], Tensor]
Loop = Callable[[Trace, Tensor, Pool], list[int]]
FOUR = ("attention", "gradient", "product", "random")


def late_flips(instances: int) -> Trace:
    """Nearly all units speak for one class, so that most instances lose more than 90 % of them before they flip."""
    rng = np.random.default_rng(0)
    polarity = rng.normal(size=(instances * UNITS, CLASSES))
    polarity[:, 0] += 3.5
    return Trace.from_arrays(
        offsets=np.arange(instances + 1) * UNITS,
        attention_scores=rng.normal(size=instances * UNITS),
        polarity_scores=polarity,
        bias=[0.0, 0.6] + [0.0] * (CLASSES - 2),
    )


def batches(trace: Trace, order: Tensor) -> list[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """Of every 64 instances: which they are, their scores, polarity scores, and positions in the order of erasure."""
    scores = trace.attention_scores.view(-1, UNITS)
    polarity = trace.polarity_scores.view(-1, UNITS, CLASSES)
    positions = order.view(-1, UNITS) - trace.offsets[:-1, None]
    return [(rows, scores[rows], polarity[rows], positions[rows]) for rows in torch.arange(len(trace)).split(BATCH)]


def weighted_sum(weights: Tensor, polarity: Tensor) -> Tensor:
    """Σ α_i z_i as it is written."""
    return (weights.unsqueeze(-1) * polarity).sum(1)


def product(weights: Tensor, polarity: Tensor) -> Tensor:
    """The same by one batched product of matrices, which is faster."""
    return torch.bmm(weights.unsqueeze(1), polarity).squeeze(1)


POOLS: dict[str, Pool] = {"weighted sum": weighted_sum, "matrix product": product}


def classified(scores: Tensor, polarity: Tensor, bias: Tensor, pool: Pool) -> Tensor:
    """Renormalise, pool, argmax, as in the textbook classifier; where nothing remains the logits are the bias."""
    return (bias + pool(scores.softmax(1).nan_to_num(0.0), polarity)).argmax(1)


def paper_loop(trace: Trace, order: Tensor, pool: Pool) -> list[int]:
    """As the paper describes it: each surviving instance of the batch loses its next unit, is classified, repeat."""
    found = torch.zeros(len(trace), dtype=torch.int64)
    for rows, scores, polarity, positions in batches(trace, order):
        before = classified(scores, polarity, trace.bias, pool)
        surviving = torch.arange(len(rows))
        for step in range(UNITS):
            scores[surviving, positions[surviving, step]] = -torch.inf
            flips = classified(scores[surviving], polarity[surviving], trace.bias, pool) != before[surviving]
            found[rows[surviving[flips]]] = step + 1
            surviving = surviving[~flips]
            if not len(surviving):
                break
    return found.tolist()


def vectorised_loop(trace: Trace, order: Tensor, pool: Pool) -> list[int]:
    """The same on the whole batch in every step, without picking the survivors, until all of it has flipped."""
    found = torch.zeros(len(trace), dtype=torch.int64)
    for rows, scores, polarity, positions in batches(trace, order):
        before, count = classified(scores, polarity, trace.bias, pool), torch.zeros(len(rows), dtype=torch.int64)
        for step in range(UNITS):
            scores.scatter_(1, positions[:, step, None], -torch.inf)
            flips = classified(scores, polarity, trace.bias, pool) != before
            count = torch.where(flips & (count == 0), step + 1, count)
            if bool((count > 0).all()):
                break
        found[rows] = count
    return found.tolist()


def timed(action: Callable[[], object], rounds: int) -> float:
    """The least of several times: what the action costs when nothing else disturbs it."""
    times = []
    for _ in range(rounds):
        begun = time.perf_counter()
        action()
        times.append(time.perf_counter() - begun)
    return min(times)


def ours(trace: Trace) -> Mapping[str, pd.DataFrame]:
    """Four rankings and the exact minimum; given a fresh trace, as it keeps what it has once computed."""
    return {by: first_flips(trace, by) for by in FOUR} | {"minimum": minimum_flips(trace)}


def beside_the_loops() -> list[dict[str, str]]:
    """The loops with the threads that torch was given and with one, which is faster beside other work; ours has one."""
    trace = late_flips(500)
    tables, orders = ours(trace), {by: ranked(trace, by) for by in FOUR}
    late = min(float((tables[by]["fraction"] > 0.9).mean()) for by in FOUR)
    seconds = timed(lambda: ours(replace(trace)), 15)
    rows = [_row(f"500 × 200 × 10, four rankings and the minimum ({late:.0%} or more flip late)", seconds)]
    loops = {"the paper's loop": (paper_loop, 60), "vectorised loop": (vectorised_loop, 30)}
    for (name, (loop, needed)), (pooling, pool) in itertools.product(loops.items(), POOLS.items()):
        for threads in sorted({1, torch.get_num_threads()}, reverse=True):
            theirs, found = loop_seconds(loop, trace, orders, pool, threads)
            seconds = timed(lambda: ours(replace(trace)), 15)  # beside it: other work slows both or neither
            same = all(found[by] == tables[by]["erased"].fillna(0).tolist() for by in FOUR)
            what = f"{name}, {pooling}, threads: {threads} ({'same' if same else 'DIFFERENT'} counts)"
            rows.append(_row(what, theirs, f"{theirs / seconds:.0f}", f"≥ {needed}"))
    return rows


def loop_seconds(
    loop: Loop, trace: Trace, orders: dict[str, Tensor], pool: Pool, threads: int
) -> tuple[float, dict[str, list[int]]]:
    before, found = torch.get_num_threads(), dict[str, list[int]]()
    torch.set_num_threads(threads)
    seconds = timed(lambda: found.update({by: loop(trace, order, pool) for by, order in orders.items()}), 2)
    torch.set_num_threads(before)
    return seconds, found


def a_million() -> dict[str, str]:
    """In a process of its own, whose peak memory is that of this alone."""
    command = [sys.executable, "-c", "from benchmarks import erasure; erasure.measure_a_million()"]
    seconds, gigabytes = map(float, subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())
    return _row("1,000,000 × 10, four rankings and the minimum", seconds, needed="< 3 s, < 2 GB", memory=gigabytes)


def measure_a_million() -> None:
    trace = late_flips(1_000_000 // UNITS)
    seconds = timed(lambda: ours(trace), 1)
    print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)


def _row(what: str, seconds: float, ratio: str = "", needed: str = "", memory: float | None = None) -> dict[str, str]:
    peak = "" if memory is None else f"{memory:.2f}"
    return {"what": what, "seconds": f"{seconds:.3f}", "GB": peak, "× ours": ratio, "needed": needed}


def rows() -> list[dict[str, str]]:
    return [*beside_the_loops(), a_million()]
