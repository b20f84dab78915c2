"""The command, and what a server is made of."""

import asyncio
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

import heedful
from heedful.errors import InputError, MissingExtra
from heedful.pipeline import Run
from heedful.web.limits import RATE_HERE, RATE_OPEN, Hosts, Limits
from heedful.web.opening import examples_of, serve_subject
from heedful.web.served import NOT_HERE, ServedRun
from heedful.web.serving import ServeError, limits_for, listen, make_server, named_apart
from tests.commands import Call, start
from tests.tiny_transformers import made
from tests.web.conftest import running


def test_the_command_serves_on_this_computer_and_ends(two_runs: tuple[Run, Run]) -> None:
    server = start("serve", *(one.path for one in two_runs), "--port", 0, stdout=subprocess.PIPE)
    assert server.stdout is not None
    with server.stdout as said:
        try:
            lines = [said.readline() for _ in range(3)]
            assert lines[0] == f"{two_runs[0].path.name}: corpus.csv: dot attention, no encoder, λ = 10\n"
            found = re.fullmatch(r"heedful serves (http://127\.0\.0\.1:\d+) \(Ctrl\+C ends it\)\n", lines[2])
            assert found is not None
            with urllib.request.urlopen(f"{found[1]}/") as page:
                assert b"<title>heedful</title>" in page.read()
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(timeout=30)


def test_a_name_that_is_no_run_is_a_sentence(call: Call, tmp_path: Path) -> None:
    done = call("serve", "nothing", "--store", tmp_path)
    assert done.code == 1
    assert "nothing" in done.err


def test_a_taken_port_is_a_sentence() -> None:
    with listen("127.0.0.1", 0) as taken, pytest.raises(ServeError, match="Give another with --port or --host"):
        listen("127.0.0.1", taken.getsockname()[1])
    with pytest.raises(ServeError, match=r"Cannot listen at nowhere\.invalid"):
        listen("nowhere.invalid", 0)


def test_without_the_extra_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, models: list[ServedRun]) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(MissingExtra, match=r"pip install 'heedful\[web\]'"):
        make_server(list(models), hosts=Hosts.of("127.0.0.1"), limits=Limits())


def test_a_server_needs_a_model() -> None:
    with pytest.raises(InputError, match="A server needs a model"):
        make_server([], hosts=Hosts.of("127.0.0.1"), limits=Limits())


def test_models_of_one_name_are_told_apart(models: list[ServedRun]) -> None:
    name = models[0].name
    assert [one.name for one in named_apart([models[0], models[0], models[1]])] == [name, f"{name}-2", models[1].name]


def test_others_may_ask_less_often() -> None:
    assert [limits_for(host).rate for host in ("127.0.0.1", "::1", "0.0.0.0")] == [RATE_HERE, RATE_HERE, RATE_OPEN]
    assert limits_for("0.0.0.0", 3.0).rate == 3
    assert (limits_for("::1").words, limits_for("::1").body_bytes) == (20_000, 262_144)
    assert (limits_for("::1", words=10**6).words, limits_for("::1", words=10**6).body_bytes) == (10**6, 12 * 10**6)


def test_answers_do_not_wait_for_acknowledgements() -> None:
    """The parts of an answer are sent at once (TCP_NODELAY), which asyncio sees to only where it knows the protocol."""

    async def accepted() -> int:
        found: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def met(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            found.set_result(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        taken = listen("127.0.0.1", 0)
        async with await asyncio.start_server(met, sock=taken):
            _, writer = await asyncio.open_connection(*taken.getsockname())
            writer.close()
            return await found

    assert asyncio.run(accepted()) != 0


def test_port_six_of_the_newer_kind() -> None:
    if not socket.has_ipv6:
        pytest.skip("no addresses of version 6 here")
    with listen("::1", 0) as taken:
        assert taken.family == socket.AF_INET6


def test_a_folder_of_a_transformers_model_is_served(tmp_path: Path) -> None:
    model, tokenizer = made("bert")
    for part in (model, tokenizer):
        part.save_pretrained(tmp_path / "tiny")
    with running([serve_subject(tmp_path / "tiny", words=100)]) as site:
        told = site.post("erase", text="a good film", positions=[1]).json
        refused = site.post("minimum", text="a good film")
    own = heedful.subject(model, tokenizer).read(["a good film", "a film"])
    assert list(told["probabilities"].values()) == pytest.approx(own.probabilities[0].tolist(), abs=1e-6)
    assert told["level"] == "delete"
    assert list(told["after"]["probabilities"].values()) == pytest.approx(own.probabilities[1].tolist(), abs=1e-6)
    assert (refused.status, refused.error) == (422, NOT_HERE["minimum"])


def test_texts_to_start_from_are_of_several_kinds(two_runs: tuple[Run, Run]) -> None:
    examples, notice = examples_of(two_runs[0])
    assert notice == ""
    assert len({example["text"] for example in examples}) == 3
    trace = two_runs[0].trace()
    corpus = heedful.load_corpus(two_runs[0].settings.data.source)
    sure = trace.probabilities.amax(1).where(trace.predictions == 0, -1.0)
    assert examples[0]["text"] == corpus.test.texts[int(sure.argmax())]


def test_data_that_are_gone_or_changed_give_no_texts(
    two_runs: tuple[Run, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = two_runs[0]
    changed = {**run.manifest, "fingerprint": "another"}
    monkeypatch.setitem(run.__dict__, "manifest", changed)
    assert examples_of(run) == (
        [],
        "There are no texts to start from: the data are not those of the training any more.",
    )


def test_serving_is_not_imported_before_it_is_asked_for() -> None:
    code = "import heedful.cli, sys; print([name for name in ('fastapi', 'uvicorn', 'torch') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
