"""What attention is good for in trained members: whether it points at the known source, and what erasing does.

A place is erased by taking it away from what a look may read: the rest is normalised again, and the network, with the
decoder and its later steps, runs again. Where the last look pools into an affine readout, its trace goes through what
heedful asks of every trace.
"""

from collections.abc import Iterator, Sequence

import pandas as pd
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.analysis.adversary import adversarial_attention
from heedful.analysis.erasure import first_flips, minimum_flips, single_erasure
from heedful.studies.zoo.trying import Watch
from heedful.traces import Trace
from heedful.zoo.results import Result
from heedful.zoo.task import Examples, Looks, Network, Outcome, pointed
from heedful.zoo.tasks import find_task
from heedful.zoo.training import answer, examples_of

EXAMPLES = 200
SEED = 0
"""Of the places that are erased at random."""


def examine(given: Sequence[Result], watch: Watch | None = None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A row for each look of each network, and one for each trace."""
    looks, traces = [], []
    for done, result in enumerate(given, start=1):
        if watch:
            watch(done, len(given))
        task = find_task(result.record["task"])
        entrant = task.entrant(result.record["entrant"])
        if entrant.member is None:
            continue
        network = result.network(entrant)
        examples = examples_of(task, task.tests[0]).take(slice(0, EXAMPLES))
        named = {"task": task.name, "entrant": entrant.name, "seed": result.record["seed"]}
        looks += [{**named, **row} for row in erasures(network, examples)]
        if (trace := trace_of(network, examples)) is not None:
            traces.append({**named, **of_trace(*trace)})
    return pd.DataFrame(looks), pd.DataFrame(traces)


def erasures(network: Network, examples: Examples) -> Iterator[dict[str, object]]:
    """By look: how often it points at the source, and how often answers change without the place with the largest
    weight, without another one, and without the source."""
    before = answer(network, examples, forced=True)
    for look, weights in before.weights.items():
        asked = weights.sum(-1) > 0
        top, other = largest(weights), another(weights)
        sources = {look: marks} if (marks := examples.sources.get(look)) is not None else {}
        yield {
            "look": look,
            "pointed": pointed(before.weights, sources).get(f"pointed {look}".strip()) if sources else None,
            "top": changed(network, examples, before, {look: top & asked.unsqueeze(-1)}),
            "random": changed(network, examples, before, {look: other & asked.unsqueeze(-1)}),
            "source": changed(network, examples, before, {look: marks}) if marks is not None else None,
        }


def largest(weights: Float[Tensor, "examples steps keys"]) -> Bool[Tensor, "examples steps keys"]:
    """The place with the largest weight; the first of equal ones."""
    return torch.zeros_like(weights, dtype=torch.bool).scatter(-1, weights.argmax(-1, keepdim=True), True)


def another(weights: Float[Tensor, "examples steps keys"]) -> Bool[Tensor, "examples steps keys"]:
    """A place drawn among all others that have a weight; none where there is no other."""
    chance = torch.rand(weights.shape, generator=torch.Generator().manual_seed(SEED))
    others = (weights > 0) & ~largest(weights)
    drawn = largest(chance.masked_fill(~others, -1.0))
    return drawn & others


def changed(network: Network, examples: Examples, before: Outcome, without: Looks) -> float:
    """Of what is asked, how often the answer is another; of ratings, how far they move on average."""
    after = answer(network, examples, forced=True, without=without)
    if before.logits.shape[-1] == 1:
        return float((after.logits - before.logits).abs().mean())
    asked = examples.targets >= 0
    return float((after.answers != before.answers)[asked].float().mean())


@torch.no_grad()
def trace_of(network: Network, examples: Examples) -> tuple[Trace, str] | None:
    """The trace of a network that has one, and what its units are."""
    parts = network.pooled(examples)
    if parts is None:
        return None
    there = parts.scores.isfinite()
    offsets = torch.cat([torch.zeros(1, dtype=torch.long), there.sum(1).cumsum(0)])
    trace = Trace.from_arrays(
        offsets=offsets,
        attention_scores=parts.scores[there].double(),
        polarity_scores=parts.polarity[there].double(),
        bias=parts.bias.double(),
        labels=examples.targets[:, 0],
    )
    return trace, parts.what


def of_trace(trace: Trace, what: str) -> dict[str, object]:
    """How much is erased until the decision flips, along attention, at random and at least; whether the top unit flips
    it alone against a random one; and how far away another attention with the same output lies."""
    attention = first_flips(trace, by="attention")
    least = minimum_flips(trace)
    alone = single_erasure(trace)
    adversary = adversarial_attention(trace)
    return {
        "units": what,
        "attention": attention["fraction"].mean(),
        "at_random": first_flips(trace, by="random")["fraction"].mean(),
        "minimum": (least["erased"] / least["units"]).mean(),
        "flip_top": alone["flip_top"].mean(),
        "flip_random": alone["flip_random"].mean(),
        "adversary": adversary["jsd"].mean(),
    }
