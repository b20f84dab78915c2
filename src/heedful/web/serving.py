"""From names to a server that runs."""

import logging
import socket
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from heedful.errors import HeedfulError, InputError, load_extra
from heedful.web.limits import RATE_HERE, RATE_OPEN, Hosts, Limits, is_local
from heedful.web.served import Served

BACKLOG, CONNECTIONS = 128, 1_000
BYTES_A_WORD = 12
"""With its escapes in JSON, on the large side."""
HEADER_BYTES = 32 * 1024
PATIENCE = 5
"""Seconds that a connection may rest, and that answers have when the server ends."""


class ServeError(HeedfulError):
    """A server that cannot begin."""


def limits_for(host: str, rate: float | None = None, words: int = Limits.words) -> Limits:
    """What is allowed: less where others can ask; as many bytes as so many words may have."""
    usual = RATE_HERE if is_local(host) else RATE_OPEN
    body_bytes = max(Limits.body_bytes, BYTES_A_WORD * words)
    return Limits(rate=usual if rate is None else rate, words=words, body_bytes=body_bytes)


def named_apart(served: Sequence[Served]) -> list[Served]:
    """The models, those of one name told apart by a number."""
    seen: dict[str, int] = {}
    apart = []
    for one in served:
        seen[one.name] = seen.get(one.name, 0) + 1
        apart.append(one if seen[one.name] == 1 else replace(one, name=f"{one.name}-{seen[one.name]}"))
    return apart


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0 is any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    taken = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # or answers wait for acknowledgements
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind((host, port))
        taken.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        taken.close()
        raise ServeError(
            f"Cannot listen at {host}, port {port}: {error}. Give another with --port or --host."
        ) from error
    return taken


def address(taken: socket.socket) -> str:
    host, port = taken.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def make_server(served: Sequence[Served], *, hosts: Hosts, limits: Limits) -> Any:
    """The server (uvicorn's), not yet running."""
    uvicorn: Any = load_extra("uvicorn", "web", "Pages")
    load_extra("fastapi", "web", "Pages")
    if not served:
        raise InputError("A server needs a model: give a run, or the folder of a transformers classifier.")
    from heedful.web.app import create_app

    torch.set_num_threads(1)  # texts are short, and requests are what runs side by side
    logging.getLogger("heedful.web").setLevel(logging.WARNING)
    config = uvicorn.Config(
        create_app(named_apart(served), hosts=hosts, limits=limits),
        access_log=False,
        log_level="warning",
        server_header=False,
        proxy_headers=False,
        ws="none",
        lifespan="off",
        backlog=BACKLOG,
        limit_concurrency=CONNECTIONS,
        h11_max_incomplete_event_size=HEADER_BYTES,
        timeout_keep_alive=PATIENCE,
        timeout_graceful_shutdown=PATIENCE,
    )
    return uvicorn.Server(config)
