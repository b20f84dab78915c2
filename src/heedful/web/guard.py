"""What stands before every answer: who may ask, how much and how often, and what browsers may do with it.

Refusals are JSON with a sentence, and nothing of a request is kept before it is known to be small enough.
"""

import asyncio
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, no_type_check

from heedful.web.limits import Buckets, Hosts, Limits, authority

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
"""What the page may load and run: its own files. It makes no markup of texts, which the last rule sees to."""

HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}

Message = dict[str, Any]
PATIENCE = 32
"""So many times as long as allowed may a body be that is refused only after it has come in."""

TOO_LONG = "What you sent is too long: {:,} bytes are the most."


class Refused(Exception):
    """A request that is not answered: a status, a sentence, and headers."""

    def __init__(self, status: int, sentence: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.headers = dict(headers or {})


def wait(seconds: float) -> dict[str, str]:
    return {"retry-after": str(max(1, math.ceil(seconds)))}


@dataclass
class Guard:
    """An application (ASGI) behind its limits."""

    app: Any
    hosts: Hosts
    limits: Limits
    buckets: Buckets = field(init=False)
    under_way: int = 0

    def __post_init__(self) -> None:
        self.buckets = Buckets(rate=self.limits.rate, clients=self.limits.clients)

    @no_type_check  # checked by tests it could be called with nothing, which uvicorn takes for a factory
    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return

        async def sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", ()), *own]}
            await send(message)

        self.under_way += 1
        try:
            self._check(scope)
            await self.app(scope, await self._small(scope, receive), sealed)
        except Refused as refused:
            await _answer(refused, sealed)
        finally:
            self.under_way -= 1

    def _check(self, scope: Any) -> None:
        if not scope.get("query_string", b"").isascii():
            raise Refused(400, "What follows the ? of an address is ASCII; write other letters as %-codes of UTF-8.")
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if not self.hosts.allow(headers.get(b"host", "")):
            raise Refused(421, "This server does not go by the name in the header Host; see --allow-host.")
        origin = headers.get(b"origin", "")
        if origin and authority(origin) != authority(headers[b"host"]):
            raise Refused(403, "Pages of other servers may not ask this one.")
        seconds = self.buckets.take(scope["client"][0] if scope.get("client") else "")
        if seconds:
            raise Refused(429, "You ask too often. Wait a little, then ask again.", wait(seconds))
        if self.under_way > self.limits.requests:
            raise Refused(503, "Too many requests are under way. Ask again in a moment.", wait(1.0))

    async def _small(self, scope: Any, receive: Any) -> Any:
        """The same way to receive, after the whole body has come in and was found small enough."""
        most = self.limits.body_bytes
        said = dict(scope["headers"]).get(b"content-length", b"0")
        if not said.isdigit() or int(said[:20]) > PATIENCE * most:
            raise Refused(413, TOO_LONG.format(most))
        try:
            async with asyncio.timeout(self.limits.body_seconds):
                messages = await _whole_body(receive, most)
        except TimeoutError:
            raise Refused(408, "What you send takes too long to arrive.") from None

        async def replayed() -> Message:
            return messages.pop(0) if messages else await receive()

        return replayed


async def _whole_body(receive: Any, most: int) -> list[Message]:
    """The body as one message. Of one that is too long the rest is let go by, up to a point, and not kept: a client
    that is still sending when the connection closes would never see why."""
    body, size, more = bytearray(), 0, True
    while more and size <= PATIENCE * most:
        message = await receive()
        if message["type"] != "http.request":
            return [message]
        part, more = message.get("body", b""), message.get("more_body", False)
        size += len(part)
        body += part if size <= most else b""
    if size > most:
        raise Refused(413, TOO_LONG.format(most))
    return [{"type": "http.request", "body": bytes(body), "more_body": False}]


async def _answer(refused: Refused, send: Any) -> None:
    body = json.dumps({"error": str(refused)}).encode()
    headers = {"content-type": "application/json", "content-length": str(len(body)), **refused.headers}
    if refused.status in (408, 413):
        headers["connection"] = "close"  # what else comes of it is not read
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": refused.status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})
