"""What is refused before anything is computed, and what every answer tells browsers."""

import json
import socket
import time
from collections.abc import Sequence
from typing import Any, ClassVar

import pytest

from heedful.web.app import FILES
from heedful.web.guard import HEADERS
from heedful.web.limits import Limits
from heedful.web.served import ServedRun
from heedful.web.work import Check
from tests.web.conftest import WORDS, Site, running

MARKUP = "<script>alert(1)</script> <img src=x onerror=alert(1)> good"


def test_every_answer_carries_the_policy_and_no_cookie(site: Site, text: str) -> None:
    answers = [site.get(path) for path in (*FILES, "/api/v1/runs", "/nothing")]
    answers += [site.post("explain", text=text), site.post("explain"), site.get("/", host="evil.example")]
    for answer in answers:
        assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
        assert not {"set-cookie", "server", "access-control-allow-origin"} & set(answer.headers)


def test_the_policy_lets_the_page_load_its_own_files_and_nothing_else() -> None:
    rules = dict(rule.split(" ", 1) for rule in HEADERS["content-security-policy"].split("; "))
    assert rules.pop("require-trusted-types-for") == "'script'"
    assert rules["default-src"] == rules["frame-ancestors"] == "'none'"
    assert set(rules.values()) == {"'none'", "'self'"}


def test_the_page_names_no_other_address_and_has_no_scripts_or_styles_of_its_own(site: Site) -> None:
    for path in FILES:
        content = site.get(path).body.decode()
        assert "https://" not in content
        assert content.count("http://") == content.count("http://www.w3.org/2000/svg")
    page = site.get("/").body.decode()
    assert page.count("<script") == page.count('<script type="module" src="/main.js">') == 1
    assert " style=" not in page
    assert " on" + "click" not in page


def test_another_name_in_host_is_refused(site: Site) -> None:
    told = site.get("/api/v1/runs", host="evil.example")
    assert (told.status, told.error) == (
        421,
        "This server does not go by the name in the header Host; see --allow-host.",
    )
    assert site.get("/api/v1/runs", host="localhost:1").status == 200


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", "http://127.0.0.1.evil.example", "http://127.0.0.1:1", "http://localhost"],
)
def test_pages_of_other_servers_may_not_ask(site: Site, origin: str) -> None:
    told = site.get("/api/v1/runs", origin=origin)
    assert (told.status, told.error) == (403, "Pages of other servers may not ask this one.")
    assert site.get("/api/v1/runs", origin=site.url).status == 200
    assert site.get("/api/v1/runs", origin="http://localhost:7", host="LOCALHOST:7").status == 200


def test_other_kinds_of_body_than_json_are_not_read(site: Site) -> None:
    told = site.send("POST", "/api/v1/explain", b'{"text": "good"}', content_type="text/plain")
    assert told.status == 422


def test_what_is_too_long_is_refused(site: Site) -> None:
    words = site.post("explain", text="good " * (WORDS + 1))
    assert (words.status, words.error) == (422, "A text may have 2,000 words here; this one has 2,001.")
    for path in ("erase", "minimum", "adversary"):
        assert site.post(path, text="good " * (WORDS + 1)).error == words.error
    assert site.post("explain", text="good " * WORDS).status == 200
    whole = site.post("explain", text="x" * 262_144)
    assert (whole.status, whole.error) == (413, "What you sent is too long: 262,144 bytes are the most.")


def test_a_body_without_a_length_is_counted_as_it_comes(site: Site) -> None:
    with socket.create_connection(("127.0.0.1", site.port), timeout=20) as talk:
        head = "POST /api/v1/explain HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        talk.sendall(head.encode() + (b"10000\r\n" + b"x" * 65_536 + b"\r\n") * 5 + b"0\r\n\r\n")
        assert talk.recv(100).startswith(b"HTTP/1.1 413 ")


def test_who_sends_far_too_much_still_reads_why(site: Site) -> None:
    for size in (300_000, 3_000_000):
        assert site.post("explain", text="x" * size).status == 413


def test_what_is_far_too_long_is_not_read_to_its_end(site: Site) -> None:
    with socket.create_connection(("127.0.0.1", site.port), timeout=20) as talk:
        talk.sendall(b"POST /api/v1/explain HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999999\r\n\r\n")
        assert talk.recv(100).startswith(b"HTTP/1.1 413 ")


def test_a_body_that_does_not_come_is_not_waited_for(models: list[ServedRun]) -> None:
    with (
        running(list(models), Limits(body_seconds=0.1)) as site,
        socket.create_connection(("127.0.0.1", site.port), timeout=20) as talk,
    ):
        talk.sendall(b"POST /api/v1/explain HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{")
        assert talk.recv(100).startswith(b"HTTP/1.1 408 ")


def test_who_asks_too_often_is_told_when_to_come_again(models: list[ServedRun]) -> None:
    with running(list(models), Limits(rate=0.5)) as site:
        assert site.get("/").status == 200
        told = site.get("/")
    assert (told.status, told.error, told.headers["retry-after"]) == (
        429,
        "You ask too often. Wait a little, then ask again.",
        "2",
    )


def test_too_many_at_once_are_told_to_come_again(models: list[ServedRun]) -> None:
    with running(list(models), Limits(requests=0)) as site:
        told = site.get("/")
    assert (told.status, told.headers["retry-after"]) == (503, "1")
    assert told.error == "Too many requests are under way. Ask again in a moment."


@pytest.mark.parametrize(
    "path", ["/../pyproject.toml", "/static/../app.py", "/%2e%2e/app.py", "/..%2fapp.py", "//etc/passwd", "/main.js/.."]
)
def test_no_path_leads_to_a_file(site: Site, path: str) -> None:
    assert site.get(path).status == 404


def test_hostile_text_comes_back_as_data(site: Site) -> None:
    told = site.post("explain", text=MARKUP)
    assert told.headers["content-type"] == "application/json"
    assert told.json["text"] == MARKUP


DEEP = b"[" * 100_000
ODD_BODIES = [
    b"",
    b"null",
    b"[]",
    b"7",
    b'"text"',
    b"\xff\xfe",
    DEEP,
    b'{"text": ' + DEEP,
    b'{"text": 1e999}',
    b'{"text": NaN}',
]
ODD_FIELDS: list[dict[str, object]] = [
    {"text": None},
    {"text": ""},
    {"text": "\u0000"},
    {"text": "a", "model": 7},
    {"text": "a", "positions": [-1]},
    {"text": "a", "positions": [10**400]},
    {"text": "a", "positions": [0.5]},
    {"text": "a", "positions": "0"},
    {"text": "a", "seed": -1},
    {"text": "a", "seed": 2**64},
    {"text": "a", "epsilon": "0"},
    {"text": "a", "floor": 0.999999999999},
    {"text": "a", "without_top": 200_000},
    {"text": "a", "shuffles": 10**9},
]


@pytest.mark.parametrize("path", ["explain", "erase", "minimum", "adversary"])
def test_nothing_that_is_sent_is_a_fault_of_the_server(site: Site, path: str) -> None:
    bodies = [*ODD_BODIES, *(json.dumps(one).encode() for one in ODD_FIELDS)]
    for body in bodies:
        told = site.send("POST", f"/api/v1/{path}", body, content_type="application/json")
        assert told.status < 500, (body[:80], told)
        assert b"Traceback" not in told.body
        assert told.status == 200 or told.error


class Counting(ServedRun):
    """Counts the parts of its erasures that are begun."""

    parts: ClassVar[list[int]] = []

    def erase(
        self, text: str, positions: Sequence[int], rankings: Sequence[str], seed: int, check: Check
    ) -> dict[str, Any]:
        def counted() -> None:
            check()
            self.parts.append(len(text))
            time.sleep(0.02)

        return super().erase(text, positions, rankings, seed, counted)


def test_clients_that_hang_up_leave_no_work_behind(models: list[ServedRun]) -> None:
    model = Counting(**{name: getattr(models[0], name) for name in ServedRun.__dataclass_fields__})
    with running([model], Limits(rate=1e5)) as site:
        text = "good bad " * 900
        assert site.post("erase", text=text).status == 200
        whole = len(model.parts)
        body = json.dumps({"text": text}).encode()
        head = "POST /api/v1/erase HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        head += f"Content-Length: {len(body)}\r\n\r\n"
        talks = [socket.create_connection(("127.0.0.1", site.port)) for _ in range(50)]
        for talk in talks:
            talk.sendall(head.encode() + body)
        until = time.monotonic() + 30
        while len(model.parts) == whole and time.monotonic() < until:
            time.sleep(0.005)
        for talk in talks:
            talk.close()
        while site.guard.under_way and time.monotonic() < until:
            time.sleep(0.01)
        assert site.guard.under_way == 0
        time.sleep(0.1)  # what runs ends at its next check
        begun = len(model.parts)
        time.sleep(0.3)
        assert len(model.parts) == begun < whole + 4 * whole  # two run; sixteen waited, the others were sent away
        assert site.post("explain", text="good").status == 200


def test_a_fault_is_a_sentence_without_a_traceback(models: list[ServedRun], capfd: pytest.CaptureFixture[str]) -> None:
    class Broken(ServedRun):
        def explain(self, *_: object) -> dict[str, object]:
            raise ZeroDivisionError("a secret")

    broken = Broken(**{name: getattr(models[0], name) for name in ServedRun.__dataclass_fields__})
    with running([broken]) as site:
        told = site.post("explain", text="good")
    assert (told.status, told.error) == (
        500,
        "Something went wrong inside heedful. The server's own output says more.",
    )
    assert "a secret" in capfd.readouterr().err
