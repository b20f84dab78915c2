"""For every member of the zoo a layer of small sizes, and inputs for it: what the tests of all members share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from heedful.attention.reading import Read
from heedful.zoo.members import MEMBERS

Inputs = dict[str, Any]
Draw = Callable[[int, torch.Generator], Inputs]
"""So many places to read, two examples; the last place of the second may not be read, unless it is the only one."""


@dataclass(frozen=True, kw_only=True)
class Case:
    sizes: dict[str, Any]
    draw: Draw
    behind: Mapping[str, str]
    """Inputs that are garbage where this mask is False."""

    def layer(self, name: str) -> nn.Module:
        with torch.random.fork_rng():
            torch.manual_seed(7)
            layer = MEMBERS[name].make(**self.sizes).double()
            for parameter in layer.parameters():  # biases too
                nn.init.uniform_(parameter, -0.9, 0.9)
        return layer

    def inputs(self, places: int, seed: int = 0) -> Inputs:
        return self.draw(places, torch.Generator().manual_seed(seed))


def normal(*shape: int, by: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=by, dtype=torch.float64)


def readable(places: int) -> Tensor:
    mask = torch.ones(2, places, dtype=torch.bool)
    mask[1, -1] = places == 1
    return mask


def asked(places: int, by: torch.Generator, *, query: int = 3, key: int = 3) -> Inputs:
    """A query and its keys."""
    return {"query": normal(2, query, by=by), "keys": normal(2, places, key, by=by), "mask": readable(places)}


def asked_again(places: int, by: torch.Generator) -> Inputs:
    previous = normal(2, places, by=by).masked_fill(~readable(places), -torch.inf).softmax(-1)
    return {**asked(places, by, query=4), "previous": previous}


def to_itself(places: int, by: torch.Generator) -> Inputs:
    x = normal(2, places, 4, by=by)
    return {"query": x, "keys": x.clone(), "mask": readable(places).unsqueeze(-2)}


def of_sentences(places: int, by: torch.Generator) -> Inputs:
    mask = readable(places).unsqueeze(1).repeat(1, 2, 1)
    return {"words": normal(2, 2, places, 3, by=by), "mask": mask}


def of_words(places: int, by: torch.Generator) -> Inputs:
    return {"words": normal(2, places, 3, by=by), "mask": readable(places)}


def of_letters(places: int, by: torch.Generator) -> Inputs:
    letter_mask = torch.ones(2, places, 3, dtype=torch.bool)
    letter_mask[0, :, 2] = False
    return {
        "query": normal(2, 4, by=by),
        "words": normal(2, places, 3, by=by),
        "letter_query": normal(2, 3, by=by),
        "letters": normal(2, places, 3, 2, by=by),
        "mask": readable(places),
        "letter_mask": letter_mask,
    }


def of_items(places: int, by: torch.Generator) -> Inputs:
    component_mask = torch.ones(2, places, 3, dtype=torch.bool)
    component_mask[0, :, 2] = False
    return {
        "user": normal(2, 4, by=by),
        "items": normal(2, places, 3, by=by),
        "auxiliary": normal(2, places, 3, by=by),
        "components": normal(2, places, 3, 2, by=by),
        "mask": readable(places),
        "component_mask": component_mask,
    }


def nothing(_places: int, _by: torch.Generator) -> Inputs:
    return {}


KEYS = {"keys": "mask"}
PAIR = {"query_size": 4, "key_size": 3, "size": 5}


def four(places: int, by: torch.Generator) -> Inputs:
    return asked(places, by, query=4)


CASES: Mapping[str, Case] = {
    "bahdanau": Case(sizes=PAIR, draw=four, behind=KEYS),
    "luong-dot": Case(sizes={"query_size": 3, "key_size": 3}, draw=asked, behind=KEYS),
    "luong-general": Case(sizes={"query_size": 4, "key_size": 3}, draw=four, behind=KEYS),
    "luong-concat": Case(sizes=PAIR, draw=four, behind=KEYS),
    "luong-location": Case(sizes={"query_size": 4, "_key_size": 3, "places": 300}, draw=four, behind=KEYS),
    "luong-local-m": Case(sizes={"query_size": 4, "key_size": 3, "reach": 2}, draw=four, behind=KEYS),
    "luong-local-p": Case(sizes={**PAIR, "reach": 2}, draw=four, behind=KEYS),
    "content": Case(sizes={"query_size": 3, "key_size": 3, "sharpness": 2.0}, draw=asked, behind=KEYS),
    "self-attention": Case(sizes={"size": 4}, draw=to_itself, behind=KEYS),
    "multi-head": Case(sizes={"size": 4, "heads": 2}, draw=to_itself, behind=KEYS),
    "location-sensitive": Case(
        sizes={"query_size": 4, "key_size": 3, "size": 5, "filters": 2, "width": 3},
        draw=asked_again,
        behind={**KEYS, "previous": "mask"},
    ),
    "location-based": Case(
        sizes={"_query_size": 4, "key_size": 3, "size": 5, "filters": 2, "width": 3},
        draw=asked_again,
        behind={**KEYS, "previous": "mask"},
    ),
    "hierarchical": Case(sizes={"word_size": 3, "size": 4}, draw=of_sentences, behind={"words": "mask"}),
    "d-attn": Case(
        sizes={"size": 3, "width": 3, "reach": 4, "local_filters": 2, "filters": 2, "widths": (2, 3)},
        draw=of_words,
        behind={"words": "mask"},
    ),
    "nested": Case(
        sizes={"query_size": 4, "word_size": 3, "letter_query_size": 3, "letter_size": 2, "size": 5},
        draw=of_letters,
        behind={"words": "mask", "letters": "letter_mask"},
    ),
    "memory": Case(sizes={"size": 3, "hops": 2}, draw=asked, behind=KEYS),
    "pointer": Case(sizes=PAIR, draw=four, behind=KEYS),
    "acf": Case(
        sizes={"user_size": 4, "item_size": 3, "component_size": 2, "size": 5},
        draw=of_items,
        behind={"items": "mask", "auxiliary": "mask", "components": "component_mask"},
    ),
    "gram": Case(
        sizes={"ancestors": torch.tensor([[0, 3, 4], [1, 3, 4], [2, 4, -1]]), "node_size": 3, "size": 5},
        draw=nothing,
        behind={},
    ),
}


def values(read: Read) -> list[Tensor]:
    """All finite numbers of a look and those within it."""
    return [read.context, read.weights, *(part for one in read.within for part in values(one))]
