"""Visits of patients with rare diagnoses, in the ontology of diagnoses (GRAM)."""

from dataclasses import dataclass
from functools import cache, partial

import torch
from jaxtyping import Int
from torch import Tensor

from heedful.zoo.data import rows_of
from heedful.zoo.networks.visiting import Visiting
from heedful.zoo.task import Entrant, Examples, Figures, Outcome, Task, Words, at, judge, share

FILE = "icd9_ccs_multilevel.jsonl.gz"
KINDS, CODES = 60, 30
"""Categories of the second level of the ontology that are used, and codes of each at most."""
FEWEST = 8
VISITS = 4000
"""Of the training split, which is the only one that is drawn once and for all."""
RARE = 5
NOISE = 0.15
SIZE = 48


@dataclass(frozen=True, kw_only=True)
class Ontology:
    """Some codes of the ontology, the ancestors of each, and what is planted in it."""

    names: list[str]
    """Of codes, then of ancestors."""
    ancestors: Int[Tensor, "codes depth"]
    kind: Int[Tensor, " codes"]
    """The category of each code."""
    planted: Int[Tensor, " codes"]
    """Where among the ancestors of a code its category stands."""
    after: Int[Tensor, " kinds"]
    """The category of the visit that follows."""


@cache
def ontology() -> Ontology:
    """Categories with enough codes, in the file's order; the ancestors of a code from itself up to the chapter."""
    by_kind: dict[str, list[tuple[str, list[tuple[str, str]]]]] = {}
    for row in rows_of(FILE):
        if len(row["path"]) >= 2:
            place = [(number, name) for number, name in row["path"]]
            by_kind.setdefault(row["path"][1][0], []).append((row["icd9"], place))
    large = [kind for kind, codes in by_kind.items() if len(codes) >= FEWEST]
    step = max(1, len(large) // KINDS)
    chosen = large[: step * KINDS : step]
    rows = [(code, path, number) for number, kind in enumerate(chosen) for code, path in by_kind[kind][:CODES]]
    above = {node: place for place, node in enumerate(dict.fromkeys(node for _, path, _ in rows for node in path))}
    depth = 1 + max(len(path) for _, path, _ in rows)
    ancestors = torch.full((len(rows), depth), -1)
    for number, (_, nodes, _) in enumerate(rows):
        line_up = [number, *(len(rows) + above[node] for node in reversed(nodes))]
        ancestors[number, : len(line_up)] = torch.tensor(line_up)
    return Ontology(
        names=[*(code for code, _, _ in rows), *(name for _, name in above)],
        ancestors=ancestors,
        kind=torch.tensor([kind for _, _, kind in rows]),
        planted=torch.tensor([len(path) - 1 for _, path, _ in rows]),
        after=torch.randperm(len(chosen), generator=torch.Generator().manual_seed(5)),
    )


def visits(count: int, generator: torch.Generator) -> tuple[Int[Tensor, "visits codes"], Int[Tensor, " visits"]]:
    """Two codes of one category and one of any; few codes are frequent, most are rare. The visit that follows is of the
    category that comes after, but for some noise."""
    tree = ontology()
    kinds = torch.randint(len(tree.after), (count,), generator=generator)
    ranks = torch.zeros(len(tree.kind))
    for kind in range(len(tree.after)):
        own = (tree.kind == kind).nonzero().squeeze(1)
        ranks[own] = torch.arange(1, len(own) + 1).float()
    common = 1 / ranks
    odds = torch.where(tree.kind == kinds.unsqueeze(1), common, 0.0)
    two = odds.multinomial(2, generator=generator)
    other = common.expand(count, -1).multinomial(1, generator=generator)
    after = tree.after[kinds]
    odd = torch.rand(count, generator=generator) < NOISE
    after = torch.where(odd, torch.randint(len(tree.after), (count,), generator=generator), after)
    return torch.cat([two, other], 1), after


@cache
def training() -> tuple[Int[Tensor, "visits codes"], Int[Tensor, " visits"], Int[Tensor, " all_codes"]]:
    """The visits that are learned from, and how often each code is among the two that count."""
    codes, after = visits(VISITS, torch.Generator().manual_seed(7))
    return codes, after, codes[:, :2].flatten().bincount(minlength=len(ontology().kind))


def draw(split: str, count: int, generator: torch.Generator) -> Examples:
    """Visits to learn from are drawn, others are made. Right is the category among the ancestors of a code."""
    codes, after, seen = training()
    if split == "train":
        rows = torch.randint(len(codes), (count,), generator=generator)
        codes, after = codes[rows], after[rows]
    else:
        codes, after = visits(count, generator)
    marks = torch.arange(ontology().ancestors.shape[1]) == ontology().planted[codes].unsqueeze(-1)
    marks[:, 2] = False
    return Examples(
        inputs={"codes": codes, "seen": seen[codes[:, :2]].amax(1)}, targets=after.unsqueeze(1), sources={"": marks}
    )


def judge_visits(outcome: Outcome, examples: Examples) -> Figures:
    """Beside the usual: of visits whose codes were seen five times at most, how many are right."""
    rare = (examples.inputs["seen"] <= RARE).unsqueeze(1)
    figures = judge(outcome, examples) | {"right rare": share(outcome.answers == examples.targets, rare)}
    if "" in outcome.weights:
        marks = examples.sources[""]
        hit = at(marks, outcome.weights[""].argmax(-1))
        figures["pointed rare"] = share(hit, marks.any(-1) & rare)
    return figures


def show(examples: Examples, outcome: Outcome, number: int) -> Words:
    tree = ontology()
    codes = examples.inputs["codes"][number].tolist()
    lines = [[tree.names[node] for node in tree.ancestors[code].tolist() if node >= 0] for code in codes]
    kind = "right" if bool(outcome.answers[number, 0] == examples.targets[number, 0]) else "wrong"
    return Words(
        rows={"": [line[0] for line in lines]},
        columns={"": ["code", *(f"{step} up" for step in range(1, tree.ancestors.shape[1]))]},
        cells={"": lines},
        title=f"the category that follows: {kind}",
    )


def with_tree(shuffled: bool) -> Visiting:
    tree = ontology()
    ancestors = tree.ancestors
    if shuffled:
        order = torch.randperm(len(ancestors), generator=torch.Generator().manual_seed(3))
        ancestors = torch.cat([ancestors[:, :1], ancestors[order, 1:]], 1)
    return Visiting(len(ancestors), len(tree.after), SIZE, ancestors=ancestors)


def without_tree() -> Visiting:
    tree = ontology()
    return Visiting(len(tree.kind), len(tree.after), SIZE + 8, ancestors=None)


VISITS_TASK = Task(
    name="visits",
    title="Rare diagnoses in the ontology of diagnoses",
    words="Visits of two codes of one category of the real CCS ontology and a third of any; the visit that follows is "
    "of the category that comes after, but for 15 % of noise. Most codes are rare. The right place of a code is its "
    "category.",
    draw=draw,
    entrants=(
        Entrant(
            name="gram",
            make=partial(with_tree, shuffled=False),
            member="gram",
            words="codes are mixtures of their ancestors",
            bars={"right": (0.8, 1.0), "right rare": (0.75, 1.0)},
        ),
        Entrant(
            name="shuffled tree",
            make=partial(with_tree, shuffled=True),
            role="control",
            member="gram",
            words="the ancestors of another code",
            bars={"right rare": (0.0, 0.7)},
        ),
        Entrant(
            name="no ontology",
            make=without_tree,
            role="baseline",
            words="a vector for each code",
            bars={"right rare": (0.0, 0.7)},
        ),
    ),
    show=show,
    judge=judge_visits,
    steps=400,
    quick_steps=200,
    batch=128,
    rate=3e-3,
    size=4000,
    files=(FILE,),
)
