"""A member of the zoo as a value: its card, and how it is made of the parts in `heedful.attention`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields

from torch import nn


@dataclass(frozen=True, kw_only=True)
class Member:
    """A mechanism of attention: what its card says, and its layer."""

    name: str
    title: str
    formula: str
    """In plain letters, a line for each equation."""
    symbols: Mapping[str, str]
    source: str
    original: str
    """What it was first used for."""
    known: str
    """What is known of it."""
    helps: str
    """When to use it, and when not."""
    make: Callable[..., nn.Module]
    """The layer, by its sizes."""
    differs: str = ""
    """Where the formula is not what the survey or the paper prints."""

    def card(self) -> dict[str, object]:
        """All but the layer, as plain values."""
        said = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "make"}
        return {**said, "symbols": dict(self.symbols)}
