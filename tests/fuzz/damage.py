"""What chance makes of good bytes and good values. All of it is drawn from a `random.Random`."""

import json
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

PIECES = (
    *(b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\n", b'"', b"'", b",", b";", b"\t", b"=", b"{", b"}", b"[", b"]"),
    *(b"null", b"NaN", b"-Infinity", b"1e999", b"-1", b"9" * 30, b"\xed\xa0\x80", "\ufeff".encode(), "🙂".encode()),
    *(b"../", b"/", b"\\", b"%s", b"{}", b"<script>", b"=1+1", b"[" * 3000, b'{"a":' * 3000),
)
"""What is put in between."""

STRANGE: Sequence[Any] = (
    *(None, True, False, 0, 1, -1, 2, 3, 2**31, 2**63, -(2**63) - 1, 10**400, 0.5, 1e308, -0.0),
    *(float("nan"), float("inf"), float("-inf"), "", " ", "0", "nan", "a" * 5000, "\0", "\ud800", "\ufeff", "🙂", "é"),
    *([], [[]], [1, "a", None], {}, {"a": {"b": []}}, {"": 0}, [[1, 2], [3]]),
)
"""Values that somebody may write, none of them meant."""


def nested(depth: int, leaf: Any = 0) -> Any:
    for _ in range(depth):
        leaf = [leaf]
    return leaf


def damage_bytes(random: Random, good: bytes) -> bytes:
    """One to six changes: bytes that flip, go, come, are repeated or change places."""
    found = bytearray(good)
    for _ in range(random.randint(1, 6)):
        start = random.randrange(len(found) + 1)
        end = min(len(found), start + random.choice((1, 1, 1, 4, 16, 200)))
        change = random.randrange(7)
        if change == 0 and start < len(found):
            found[start] ^= 1 << random.randrange(8)
        elif change == 1:
            del found[start:end]
        elif change == 2:
            found[start:start] = random.choice(PIECES)
        elif change == 3:
            found[start:end] = random.randbytes(end - start)
        elif change == 4:
            found[start:start] = found[start:end]
        elif change == 5:
            del found[start:]
        else:
            found[start:end] = random.choice(PIECES)
    return bytes(found)


def damage_value(random: Random, good: Any) -> Any:
    """One value somewhere inside is another, is gone, is there twice, or lies deeper."""
    if random.random() < 0.25 or not isinstance(good, (dict, list)) or not good:
        return random.choice((random.choice(STRANGE), [good], {"a": good}, nested(random.choice((3, 50, 3000)), good)))
    if isinstance(good, list):
        place = random.randrange(len(good))
        inner = damage_value(random, good[place])
        return random.choice((
            [*good[:place], inner, *good[place + 1 :]], [*good[:place], *good[place + 1 :]], [*good, inner],
        ))  # fmt: skip
    key = random.choice(list(good))
    inner = damage_value(random, good[key])
    changed = {**good, key: inner}
    return random.choice((changed, changed, {k: v for k, v in good.items() if k != key}, {**good, f"{key}x": inner}))


def damage_json(random: Random, good: Any) -> bytes:
    """A damaged value as JSON; the text itself is sometimes damaged too."""
    try:
        text = json.dumps(damage_value(random, good)).encode()
    except (RecursionError, ValueError, OverflowError):
        text = b"[" * 100_000
    return damage_bytes(random, text) if random.random() < 0.3 else text


def pick(random: Random, options: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Some of these arguments, each with one of its values."""
    return {name: random.choice(values) for name, values in options.items() if random.random() < 0.12}


Draw = Callable[[Random], Any]
