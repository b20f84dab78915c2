"""`heedful serve` on loopback: explanations of texts of 50 words, memory meanwhile, and clients that hang up."""

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from heedful.config import ModelSettings, RunSettings, TrainingSettings
from heedful.pipeline import run
from heedful.store import Store
from heedful.text.datasets import load_corpus

REQUESTS, WARM = 20_000, 1_000
CONNECTIONS = 8
WORDS = 50
LEAVING = 50
LONG = 8_000
"""Words of the texts of clients that hang up: every ranking of one takes a good while."""


@contextmanager
def served(folder: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A server of its own process with a DP model, and its port."""
    corpus = load_corpus("synthetic-1")
    settings = RunSettings(model=ModelSettings(), training=TrainingSettings(epochs=5))
    found = run(settings, Store(folder), corpus=corpus)
    command = [sys.executable, "-m", "heedful", "serve", str(found.path), "--port", "0", "--rate", "1000000"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        port = next(int(hit[1]) for line in process.stdout if (hit := re.search(r"serves http://[^:]+:(\d+)", line)))
        yield process, port
    finally:
        process.terminate()
        process.wait()


def texts(count: int, words: int) -> list[str]:
    rng = np.random.default_rng(0)
    known = load_corpus("synthetic-1").vocabulary.tokens[1:]
    return [" ".join(known[place] for place in row) for row in rng.integers(len(known), size=(count, words))]


def request(path: str, **body: object) -> bytes:
    content = json.dumps(body).encode()
    head = f"POST /api/v1/{path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content


async def answer(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), head
    length = re.search(rb"content-length: (\d+)", head)
    assert length is not None
    return await reader.readexactly(int(length[1]))


async def load(port: int, count: int) -> tuple[float, list[float]]:
    """Seconds for so many explanations, of a text each, and those that each took, over connections that stay open."""
    asked, took = iter([request("explain", text=text) for text in texts(count, WORDS)]), []

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for one in asked:
            begun = time.perf_counter()
            writer.write(one)
            await answer(reader)
            took.append(time.perf_counter() - begun)
        writer.close()

    begun = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(CONNECTIONS)))
    return time.perf_counter() - begun, took


async def leave(port: int, count: int) -> None:
    """Clients that ask for every ranking of a long text, and hang up before there is an answer."""
    asked = request("erase", text=texts(1, LONG)[0])
    writers = [(await asyncio.open_connection("127.0.0.1", port))[1] for _ in range(count)]
    for writer in writers:
        writer.write(asked)
    await asyncio.gather(*(writer.drain() for writer in writers))
    await asyncio.sleep(0.2)
    for writer in writers:
        writer.transport.abort()


async def one_long(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request("erase", text=texts(1, LONG)[0]))
    await answer(reader)
    writer.close()


def megabytes(process: "subprocess.Popen[str]") -> float:
    pages = Path(f"/proc/{process.pid}/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE") / 2**20


def seconds_of(process: "subprocess.Popen[str]") -> float:
    """Of processor time, so far."""
    fields = Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def row(what: str, value: str) -> dict[str, str]:
    return {"what": what, "value": value}


def rows(requests: int = REQUESTS) -> list[dict[str, str]]:
    with tempfile.TemporaryDirectory() as folder, served(Path(folder)) as (process, port):
        asyncio.run(load(port, min(WARM, requests)))
        before, begun = megabytes(process), seconds_of(process)
        seconds, took = asyncio.run(load(port, requests))
        after, busy = megabytes(process), seconds_of(process) - begun
        begun = seconds_of(process)
        asyncio.run(one_long(port))
        one = seconds_of(process) - begun
        asyncio.run(leave(port, LEAVING))
        begun = seconds_of(process)
        time.sleep(2 * one + 1)
        ending = seconds_of(process) - begun
        time.sleep(2)
        resting = seconds_of(process) - begun - ending
    return [
        row(
            f"explanations a second, {requests:,} different texts of {WORDS} words, {CONNECTIONS} connections",
            f"{requests / seconds:.0f}",
        ),
        row("processor milliseconds of the server for each", f"{1000 * busy / requests:.1f}"),
        row("median milliseconds", f"{1000 * float(np.median(took)):.1f}"),
        row("p99 milliseconds", f"{1000 * float(np.quantile(took, 0.99)):.1f}"),
        row("MB before and after", f"{before:.0f} → {after:.0f}"),
        row(f"processor seconds of one erasure of {LONG:,} words along all rankings", f"{one:.2f}"),
        row(f"processor seconds after {LEAVING} such clients hung up, until it rests", f"{ending:.2f}"),
        row("in the two seconds after that", f"{resting:.2f}"),
    ]
