"""The corners of the convex hull of points, in order, as places (the pointer network)."""

from functools import partial

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.zoo.members.pointer import make_pointer
from heedful.zoo.networks.pointing import Pointing
from heedful.zoo.networks.recurrent import marks, mask_of
from heedful.zoo.task import Entrant, Examples, Figures, Outcome, Task, Words, judge

FEWEST, MOST = 5, 10
STOP = 0
"""The place that stands for the end; point i is place i + 1."""
HIDDEN, WITHOUT = 96, 104
"""Of the network with the pointer, and of the one without, so that both have as many parameters."""


def draw(split: str, count: int, generator: torch.Generator) -> Examples:
    """Points in the unit square; in a test split as many as it is called by."""
    points = torch.rand(count, MOST, 2, generator=generator)
    drawn = torch.randint(FEWEST, MOST + 1, (count,), generator=generator)
    mask = mask_of(torch.full_like(drawn, int(split)) if split.isdigit() else drawn, MOST)
    corners = hull(points, mask)
    targets = torch.cat([corners, torch.full_like(corners[:, :1], -1)], 1) + 1
    steps = torch.arange(MOST + 1)
    targets = torch.where(steps <= (corners >= 0).sum(1, keepdim=True), targets, -1)
    return Examples(
        inputs={"items": points.masked_fill(~mask.unsqueeze(-1), 0.0), "mask": mask},
        targets=targets,
        sources={"": marks(targets, MOST + 1)},
    )


def hull(
    points: Float[Tensor, "examples places 2"], mask: Bool[Tensor, "examples places"]
) -> Int[Tensor, "examples places"]:
    """The corners counter-clockwise from the leftmost point on, then −1: from i the hull goes on to the j that has no
    point to the right of the way from i to j."""
    way = points.unsqueeze(1) - points.unsqueeze(2)  # [examples i j 2]: from i to j
    left = way[..., None, 0] * way[:, :, None, :, 1] - way[..., None, 1] * way[:, :, None, :, 0]
    there = mask.unsqueeze(1) & mask.unsqueeze(2) & ~torch.eye(points.shape[1], dtype=torch.bool)
    edge = there & ((left >= 0) | ~mask[:, None, None]).all(-1)
    rows = torch.arange(len(points))
    first = points[..., 0].masked_fill(~mask, torch.inf).argmin(1)
    corners, place = [first], first
    for _ in range(points.shape[1] - 1):
        place = torch.where(place >= 0, edge[rows, place].int().argmax(1), -1)
        place = torch.where(place == first, -1, place)
        corners.append(place)
    return torch.stack(corners, 1)


def area(
    points: Float[Tensor, "examples places 2"], order: Int[Tensor, "examples steps"]
) -> Float[Tensor, " examples"]:
    """Of the polygon with these corners; −1 stands for the first one, which adds nothing."""
    order = torch.where(order >= 0, order, order[:, :1])
    corners = points.gather(1, order.clamp(min=0).unsqueeze(-1).expand(-1, -1, 2))
    after = corners.roll(-1, 1)
    return ((corners[..., 0] * after[..., 1] - corners[..., 1] * after[..., 0]).sum(1) / 2).abs()


def judge_hull(outcome: Outcome, examples: Examples) -> Figures:
    """Beside the usual: the area of what was answered, as a share of that of the hull."""
    points = examples.inputs["items"]
    stopped = (outcome.answers == STOP).cumsum(1) > 0
    said = torch.where(stopped, 0, outcome.answers) - 1
    whole = area(points, torch.where(examples.targets > 0, examples.targets - 1, -1))
    return judge(outcome, examples) | {"area": float((area(points, said) / whole).mean())}


def show(examples: Examples, outcome: Outcome, number: int) -> Words:
    points = ["end", *(f"{x:.1f} {y:.1f}" for x, y in examples.inputs["items"][number].tolist())]
    points = points[: int(examples.inputs["mask"][number].sum()) + 1]
    asked = examples.targets[number] >= 0
    return Words(rows={"": [points[place] for place in outcome.answers[number][asked].tolist()]}, columns={"": points})


def entrant_pointer() -> Pointing:
    return Pointing(2, HIDDEN, pointer=make_pointer(HIDDEN, HIDDEN, HIDDEN), places=MOST + 1, stop=True)


HULL = Task(
    name="hull",
    title="The convex hull of points",
    words=f"{FEWEST} to {MOST} points; the answer is the corners of their convex hull, counter-clockwise from the "
    "leftmost point, and then the end. The right place of a step is the next corner. Places that were answered are not "
    "answered again, by anyone.",
    draw=draw,
    entrants=(
        Entrant(
            name="pointer",
            make=entrant_pointer,
            member="pointer",
            words="the weights are the answer",
            bars={"exact": (0.85, 1.0), "area": (0.995, 1.0), "exact@10": (0.75, 1.0)},
        ),
        Entrant(
            name="no attention",
            make=partial(Pointing, 2, WITHOUT, pointer=None, places=MOST + 1, stop=True),
            role="baseline",
            words="an output for each place",
            bars={"exact@10": (0.0, 0.4)},
        ),
    ),
    show=show,
    judge=judge_hull,
    steps=3000,
    quick_steps=600,
    tests=("5", "7", "10"),
    rate=3e-3,
    batch=128,
)
