"""What a test is the test of: `@covers(ranking=("gradient", "product"))` above it. `test_complete` counts them."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

Test = TypeVar("Test", bound=Callable[..., Any])


def covers(**names: Iterable[str]) -> Callable[[Test], Test]:
    """Say that a test holds these members of registries against an oracle or hand results."""

    def mark(test: Test) -> Test:
        test.covered = {kind: frozenset(members) for kind, members in names.items()}  # type: ignore[attr-defined]
        return test

    return mark
