"""What a server allows: how much, how long, how often, and for whom."""

import ipaddress
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from heedful.errors import InputError

LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
EVERYWHERE = frozenset({"0.0.0.0", "::"})

RATE_HERE, RATE_OPEN = 500.0, 50.0
"""Requests a second of one client, where only this computer can ask and where others can."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How much one request may ask for, and all of them together."""

    body_bytes: int = 256 * 1024
    words: int = 20_000
    body_seconds: float = 10.0
    """How long a body may take to arrive."""
    rate: float = RATE_HERE
    """Requests a second that each client may send for long; twice as many at once."""
    clients: int = 4096
    """So many clients are remembered, those that were seen last."""
    requests: int = 100
    """Under way at once, all clients together."""
    threads: int = 2
    waiting: int = 16
    """Computations that may wait for one of the threads."""


@dataclass(frozen=True, kw_only=True)
class Hosts:
    """By which names this server may be called.

    A page of someone else can make its own name point to this computer and then ask as if it were ours (DNS
    rebinding); the name in the header `Host` gives it away. An address cannot be made to point elsewhere.
    """

    names: frozenset[str]
    addresses: bool = False
    """Whether any address will do: of a server that is open to others."""

    @classmethod
    def of(cls, host: str, more: tuple[str, ...] = ()) -> "Hosts":
        names = LOCAL | {name.lower() for name in (host, *more) if name not in EVERYWHERE}
        return cls(names=frozenset(names), addresses=not is_local(host))

    def allow(self, header: str) -> bool:
        """Whether a `Host` header, with or without a port, names this server."""
        name = host_of(header)
        return name in self.names or (self.addresses and _is_address(name))


def host_of(header: str) -> str:
    """The name or address in a `Host` header or an origin, without scheme and port; nothing where it is neither."""
    found = re.fullmatch(r"(?:\[([^\[\]]+)\]|([^:\[\]]+?)\.?)(?::\d*)?", authority(header))
    return (found[1] or found[2]) if found else ""


def authority(header: str) -> str:
    """A `Host` header or an origin without its scheme."""
    return header.rpartition("://")[2].strip().lower()


def is_local(host: str) -> bool:
    """Whether only this computer can reach it."""
    return host.lower() in LOCAL or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


@dataclass
class Buckets:
    """A bucket of tokens for each client: full at first, refilled at a rate, and every request takes one."""

    rate: float
    clients: int
    clock: Callable[[], float] = time.monotonic
    held: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)
    """How many tokens a client had, and when."""

    def __post_init__(self) -> None:
        if not self.rate > 0:
            raise InputError(f"The rate is a number of requests a second above 0; got {self.rate:g}.")

    @property
    def size(self) -> float:
        return max(1.0, 2 * self.rate)

    def take(self, client: str) -> float:
        """Take a token: 0 where there was one, otherwise how many seconds it takes until there is."""
        now = self.clock()
        tokens, then = self.held.pop(client, (self.size, now))
        tokens = min(self.size, tokens + (now - then) * self.rate)
        enough = tokens >= 1
        self.held[client] = (tokens - enough, now)
        while len(self.held) > self.clients:
            self.held.popitem(last=False)
        return 0.0 if enough else (1 - tokens) / self.rate
