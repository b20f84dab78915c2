"""How much of what comes from elsewhere is taken. Each limit can be raised by a variable of the environment."""

import os
from dataclasses import dataclass

from heedful.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Limit:
    """A number that is the most, unless the variable says another."""

    variable: str
    usual: int

    @property
    def most(self) -> int:
        given = os.environ.get(self.variable) or str(self.usual)
        if not (given.isascii() and given.isdecimal() and 0 < len(given.lstrip("0")) < 19):
            raise ConfigError(f"{self.variable} is a whole number from 1 on, not '{given[:50]}'.")
        return int(given)

    @property
    def remedy(self) -> str:
        return f"If it is meant so, raise the limit: {self.variable}={10 * self.most}."


DEPTH = Limit(variable="HEEDFUL_MOST_DEPTH", usual=40)
"""So deep may the tables of a file of settings lie in each other: a base has a base …"""

GROWTH = Limit(variable="HEEDFUL_MOST_GROWTH", usual=100)
"""A packed file may unpack to so many times its own size, or to a few megabytes."""

RUNS = Limit(variable="HEEDFUL_MOST_RUNS", usual=100_000)
"""Of one plan."""
