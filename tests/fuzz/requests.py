"""The door of `heedful serve`: what somebody may send to it, straight to the application without a network."""

import asyncio
import atexit
import json
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

import heedful
from heedful.errors import HeedfulError
from heedful.pipeline import run
from heedful.store import Store
from heedful.web import forms
from heedful.web.app import API, FILES, create_app
from heedful.web.asking import ServedSubject
from heedful.web.guard import HEADERS
from heedful.web.limits import Hosts, Limits
from heedful.web.opening import serve_run
from heedful.web.served import Served
from tests.fuzz.damage import STRANGE, damage_bytes, damage_json

WORDS = 300
"""A text may have so many: long ones are refused, and few take long."""

TEXTS = (
    *(
        "good",
        "a good film , a bad plot .",
        "good " * WORDS,
        "x " * (WORDS + 1),
        "a" * 20_000,
        " ",
        "\n\t ",
        ". . .",
        "",
    ),
    *(
        "naïve e\u0301",
        "🙂👩\u200d👩\u200d👧",
        "\ufeffgood",
        "good\u200bbad",
        "\u202egood",
        "ﬁlm Ⅷ ½",
        "İstanbul ß ŉ",
        "\0",
    ),
    *(
        "\ud800",
        "a\ud83d b",
        "中文 電影 很好",
        "שלום טוב",
        "<script>alert(1)</script>",
        "good\u2028bad\u0085",
        "\U0010ffff",
    ),
)
BODIES: Mapping[str, Mapping[str, Any]] = {
    "explain": {},
    "minimum": {},
    "erase": {"positions": [0], "rankings": ["attention", "random"], "seed": 1},
    "adversary": {"epsilon": 0.01, "floor": 0.0, "without_top": 1, "shuffles": 10, "seed": 1},
}
ANSWERS: Mapping[str, Any] = {
    "explain": forms.Explained, "minimum": forms.Minimum, "erase": forms.Erased, "adversary": forms.Adversary,
    "runs": forms.Runs, "tokens": forms.TokenTable,
}  # fmt: skip
CHANGES: Mapping[str, tuple[Any, ...]] = {
    "positions": ([], [0, 0], [1], [2**40], [-1], list(range(WORDS)), [0] * 5000, [True], [0.0], None),
    "rankings": (None, [], ["alone"], ["margin"] * 3, ["polarity", "product", "gradient"], ["x"], "attention"),
    "epsilon": (0, 0.5, 0.999, 1e-300, 5e-324, 1, -0.0, "0.1", True),
    "floor": (0.0, 0.4, 0.99, 1e-17, 5e-324, 0.001),
    "without_top": (0, 1, 2, 300, 10**6, 0.5),
    "shuffles": (1, 2, 1000, 1001, 0),
    "seed": (0, 2**31 - 1, 2**31, -1, True, 1.0),
    "model": ("", "nothing", "function", "\0", "../", "a" * 301, None),
}
HEADER_NAMES = (b"host", b"origin", b"content-type", b"content-length", b"accept", b"cookie", b"x-\xff", b"range", b"")
HEADER_VALUES = (
    *(b"", b"localhost", b"LOCALHOST:80", b"127.0.0.1:0", b"[::1]", b"[::1", b"localhost:99999999999", b"evil.example"),
    *(
        b"http://localhost",
        b"null",
        b"http://[",
        b"application/json",
        b"application/json; charset=utf-7",
        b"text/plain",
    ),
    *(
        b"multipart/form-data",
        b"application/x-www-form-urlencoded",
        b"\xff\xfe",
        b"-1",
        b"1e3",
        b"9" * 5000,
        b"a" * 9000,
    ),
    *("١٢".encode(), "²".encode("latin-1"), b"\r\nx: y", b"application/json" * 3, b";=;", b'application/json; a="'),
)


def requests(random: Random, _: Path) -> object:
    """One request; whatever comes of it is an answer of the declared form or a refusal in a sentence."""
    method, path, query, headers, body = _drawn(random)
    leaves = random.random() < 0.05
    status, told, content = _loop().run_until_complete(
        send(method, path, query, headers, _pieces(random, body, leaves))
    )
    if leaves and status in (None, 499):
        raise HeedfulError("The client left.")
    assert status is not None
    assert status < 500, f"{status} {content[:200]!r}"
    assert {name: told.get(name) for name in HEADERS} == HEADERS
    assert "set-cookie" not in told
    if status >= 400:
        said = json.loads(content)
        assert list(said) == ["error"], f"no sentence: {content[:200]!r}"
        raise HeedfulError(said["error"])
    name = path.removeprefix(f"{API}/")
    if name in ANSWERS and method in {"GET", "POST"}:
        found = json.loads(content, parse_constant=lambda constant: _fail(f"{constant} is not JSON"))
        ANSWERS[name].model_validate(found)
    return content


def _fail(sentence: str) -> None:
    raise AssertionError(sentence)


def _drawn(random: Random) -> tuple[str, str, bytes, list[tuple[bytes, bytes]], bytes]:
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    for _ in range(random.choice((0, 0, 0, 0, 0, 0, 1, 3))):
        place, new = random.randrange(len(headers) + 1), (random.choice(HEADER_NAMES), random.choice(HEADER_VALUES))
        headers[place : place + random.randrange(2)] = [new]
    kind = random.random()
    if kind < 0.72:
        name = random.choice(list(BODIES))
        return "POST", f"{API}/{name}", b"", headers, _body(random, name)
    if kind < 0.9:
        return "GET", f"{API}/tokens", _query(random), headers, b""
    paths = (
        *FILES,
        f"{API}/runs",
        f"{API}/openapi.json",
        f"{API}/",
        "",
        "//",
        "/../x",
        "/\0",
        "/\ud800",
        "/é",
        "*",
        "a" * 9000,
    )
    methods = ("GET", "GET", "HEAD", "POST", "OPTIONS", "PUT", "TRACE", "get", "", "\0")
    return random.choice(methods), random.choice(paths), _query(random), headers, _body(random, "explain")


def _body(random: Random, name: str) -> bytes:
    text = (
        random.choice(TEXTS) if random.random() < 0.5 else " ".join(random.choices(TEXTS[:12], k=random.randint(1, 5)))
    )
    if random.random() < 0.05:
        text = "".join(chr(random.randrange(0x110000)) for _ in range(random.randint(1, 300)))
    form: dict[str, Any] = {"text": text, **BODIES[name]}
    for key, values in CHANGES.items():
        if random.random() < 0.06 and (key in form or key == "model" or random.random() < 0.1):
            form[key] = random.choice(values)
    if random.random() < 0.3:
        form["model"] = random.choice(_names())
    if random.random() < 0.3:
        return damage_json(random, form)
    content = json.dumps(form, ensure_ascii=random.random() < 0.5).encode("utf-8", "surrogatepass")
    return damage_bytes(random, content) if random.random() < 0.1 else content


def _query(random: Random) -> bytes:
    names = ("model", "find", "by", "descending", "offset", "limit", "", "x")
    values = (
        *(
            "",
            "0",
            "1",
            "500",
            "501",
            "-1",
            "9" * 5000,
            "true",
            "yes",
            "token",
            "polarity",
            "attention",
            "count",
            "nan",
            "a",
        ),
        *(
            _names()[0],
            _names()[1],
            "\0",
            "%",
            "&",
            "é",
            "🙂",
            "(",
            "[",
            "\\",
            *(str(value)[:300] for value in STRANGE[:9]),
        ),
    )
    pairs = [(random.choice(names), random.choice(values)) for _ in range(random.randint(0, 4))]
    query = "&".join(f"{name}={quote(value, errors='surrogatepass')}" for name, value in pairs).encode()
    return damage_bytes(random, query) if random.random() < 0.3 else query


def _pieces(random: Random, body: bytes, leaves: bool) -> list[dict[str, Any]]:
    """A body as it comes in, sometimes cut, and of those who leave not to its end."""
    cut = random.randrange(len(body) + 1) if random.random() < 0.3 else len(body)
    incoming: list[dict[str, Any]] = [
        {"type": "http.request", "body": body[:cut], "more_body": True},
        {"type": "http.request", "body": body[cut:], "more_body": False},
    ]
    if leaves:
        incoming[random.randint(0, 2) :] = [{"type": "http.disconnect"}]
    return incoming


async def send(
    method: str,
    path: str,
    query: bytes,
    headers: list[tuple[bytes, bytes]],
    incoming: list[dict[str, Any]] | None = None,
) -> tuple[int | None, dict[str, str], bytes]:
    """What the application answers, as a server would ask it (ASGI)."""
    incoming = [{"type": "http.request", "body": b"", "more_body": False}] if incoming is None else incoming
    outgoing: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        if not incoming:
            await asyncio.Event().wait()
        return incoming.pop(0)

    async def take(message: dict[str, Any]) -> None:
        outgoing.append(message)

    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
        "path": path, "raw_path": path.encode("utf-8", "surrogatepass"), "root_path": "", "query_string": query,
        "headers": headers, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8000), "state": {},
    }  # fmt: skip
    await _app()(scope, receive, take)
    begun = next((message for message in outgoing if message["type"] == "http.response.start"), None)
    content = b"".join(message.get("body", b"") for message in outgoing if message["type"] == "http.response.body")
    if begun is None:
        return None, {}, content
    return begun["status"], {name.decode().lower(): value.decode() for name, value in begun["headers"]}, content


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """One for all: work of clients that left goes on in threads and reports to it."""
    loop = asyncio.new_event_loop()
    atexit.register(loop.close)
    return loop


@cache
def _app() -> Callable[..., Any]:
    return create_app(_served(), hosts=Hosts.of("127.0.0.1"), limits=Limits(words=WORDS, rate=1e9))


def _names() -> list[str]:
    return [one.name for one in _served()]


@cache
def _served() -> tuple[Served, ...]:
    """A run whose words have scores of their own, a hierarchical one that reads in context, and a function."""
    place, usual = tempfile.TemporaryDirectory(), ["data.source=synthetic:size=120", "training.epochs=2"]
    atexit.register(place.cleanup)
    kinds: tuple[list[str], ...] = ([], ["model.structure=hierarchical", "model.encoder=lstm", "model.hidden_size=3"])
    made = [
        run(heedful.RunSettings().override([*usual, "model.embedding_size=4", *kind]), Store(place.name))
        for kind in kinds
    ]
    finds = heedful.subject(lambda texts: [0.75 if "good" in text else 0.25 for text in texts], name="function")
    served = [serve_run(one, words=WORDS) for one in made]
    return (*served, ServedSubject(name="function", title="function", words=WORDS, subject=finds))
