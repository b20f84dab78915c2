"""The vocabulary: token ↔ number, made from the training split only. Number 0 is the unknown token."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from heedful.errors import DataError, UnknownName

UNKNOWN = "<unk>"


@dataclass(frozen=True)
class Vocabulary:
    """Distinct tokens in a fixed order; `tokens[0]` stands for every token that is not in it."""

    tokens: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.tokens or self.tokens[0] != UNKNOWN:
            raise DataError(f"A vocabulary begins with the token {UNKNOWN}, this one with {self.tokens[:1]}.")
        if len(self.numbers) != len(self.tokens):
            raise DataError("A vocabulary holds each token once, this one repeats some.")

    def __repr__(self) -> str:
        return f"Vocabulary({len(self.tokens):,} tokens)"

    @classmethod
    def of(cls, tokens: Iterable[str]) -> "Vocabulary":
        """The unknown token first, then these in their order."""
        return cls((UNKNOWN, *(token for token in tokens if token != UNKNOWN)))

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        return {token: number for number, token in enumerate(self.tokens)}

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: str) -> bool:
        return token in self.numbers

    def number(self, token: str) -> int:
        """The token's number; a token that is not here is an error that names its nearest neighbour."""
        if token not in self.numbers:
            raise UnknownToken(token, self.tokens)
        return self.numbers[token]


class UnknownToken(UnknownName):
    """A token that the vocabulary does not hold."""

    def __init__(self, token: str, tokens: Iterable[str]) -> None:
        super().__init__("token", token, _similar(token, tokens))


def _similar(token: str, tokens: Iterable[str]) -> list[str]:
    """A few tokens with the same beginning, or the most frequent ones: a vocabulary is too long to list."""
    for size in range(len(token), -1, -1):
        found = [other for other in tokens if other.startswith(token[:size])]
        if found:
            return found[:8]
    return []
