"""Corpora from a server: this one is on the same machine, with small archives of the true formats."""

import csv
import hashlib
import io
import json
import re
import stat
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from typer import Typer
from typer.testing import CliRunner

from heedful.cli.data import fetch_data
from heedful.errors import DataError, UnknownName
from heedful.text import fetch as fetching
from heedful.text.datasets import load_corpus
from heedful.text.fetch import Step, Unreachable, download, fetch
from heedful.text.published import PublicFile
from heedful.text.recipes import DATASETS

WORDS = [f"{first}{second}ord" for first in "bcdfg" for second in ("al", "el", "il", "ol")]


@dataclass
class Server:
    """Files by path, the ways in which they go wrong, and what was asked for."""

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    cuts: dict[str, list[int]] = field(default_factory=dict)
    """How many bytes of an answer come before the connection breaks, answer by answer."""
    tags: dict[str, str] = field(default_factory=dict)
    kind: str = "application/octet-stream"
    ranges: bool = True
    asked: list[tuple[str, str | None]] = field(default_factory=list)

    def file(self, name: str, content: bytes, checksum: str | None = None) -> PublicFile:
        self.files[f"/{name}"] = content
        return PublicFile(name=name, address=f"{self.address}/{name}", checksum=checksum)


def _answer(server: Server, handler: BaseHTTPRequestHandler) -> None:
    wanted = handler.headers.get("Range")
    server.asked.append((handler.path, wanted))
    content = server.files.get(handler.path)
    if content is None:
        handler.send_error(404)
        return
    tag, known = server.tags.get(handler.path), handler.headers.get("If-Range")
    start = int(wanted[6:-1]) if wanted and server.ranges and (known is None or known == tag) else 0
    if start >= len(content) > 0 and start:
        handler.send_error(416)
        return
    handler.send_response(206 if start else 200)
    handler.send_header("Content-Type", server.kind)
    handler.send_header("Content-Length", str(len(content) - start))
    if start:
        handler.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
    if tag:
        handler.send_header("ETag", tag)
    handler.end_headers()
    cuts = server.cuts.get(handler.path, [])
    handler.wfile.write(content[start : start + cuts.pop(0)] if cuts else content[start:])


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _answer(state, self)

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    monkeypatch.setenv("no_proxy", "127.0.0.1")
    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.address = f"http://127.0.0.1:{running.server_address[1]}"
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield state
    running.shutdown()
    thread.join()
    running.server_close()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder, which need not exist yet."""
    place = tmp_path / "data"
    monkeypatch.setenv("HEEDFUL_DATA", str(place))
    return place


Publish = Callable[..., None]


@pytest.fixture
def publish(server: Server, monkeypatch: pytest.MonkeyPatch) -> Publish:
    """Serve small files under the names of a corpus's public files, with checksums of their own."""

    def put(name: str, files: Mapping[str, bytes], *, source: int = 0) -> None:
        chosen = DATASETS[name].sources[source].at(server.address)
        sums = {file: f"sha256:{hashlib.sha256(content).hexdigest()}" for file, content in files.items()}
        for file, content in files.items():
            server.file(file, content)
        moved = replace(chosen, files=tuple(replace(file, checksum=sums.get(file.name)) for file in chosen.files))
        others = tuple(other.at(server.address) for other in DATASETS[name].sources[:source])
        changed = {**DATASETS, name: replace(DATASETS[name], sources=(*others, moved))}
        monkeypatch.setattr(fetching, "DATASETS", changed)

    return put


def zipped(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def tarred(files: Mapping[str, bytes], *extra: tarfile.TarInfo) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        for info in extra:
            archive.addfile(info)
    return out.getvalue()


def comma_separated(rows: list[list[str]]) -> bytes:
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL).writerows(rows)
    return out.getvalue().encode()


def parquet(rows: list[dict[str, Any]]) -> bytes:
    out = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), out)
    return out.getvalue()


def trees() -> bytes:
    """Three sentences of each of the five labels for each split."""
    sentence = "({label} (2 {split}) ({label} (2 word{n}) (2 -LRB-)))"
    return zipped(
        {
            f"trees/{split}.txt": "\n".join(
                sentence.format(label=label, split=split, n=n) for label in range(5) for n in range(3)
            ).encode()
            for split in ("train", "dev", "test")
        }
    )


def star_lists(count: int, classes: int, fields: int) -> list[list[str]]:
    """Rows of a class number from 1 and fields of text, each text its own."""
    return [
        [str(1 + n % classes), *(f"{WORDS[n % 20]} field {part}\\nnumber {n}" for part in range(fields))]
        for n in range(count)
    ]


def test_the_sentiment_treebank_is_read_from_its_zip(folder: Path, publish: Publish) -> None:
    publish("sst", {"trainDevTestTrees_PTB.zip": trees()})
    done = fetch("sst")
    assert done.rows == {"sst2_tree.jsonl.gz": 36, "sst5_tree.jsonl.gz": 45}
    assert sorted(path.name for path in folder.iterdir()) == ["sst2_tree.jsonl.gz", "sst5_tree.jsonl.gz"]
    corpus = load_corpus("sst")
    assert corpus.train.labels.bincount().tolist() == [6, 6]
    assert corpus.train.surface(0) == ["train", "word0"]
    assert load_corpus("sst-5").test.labels.bincount().tolist() == [3, 3, 3, 3, 3]


def test_imdb_is_read_from_its_tar(folder: Path, publish: Publish) -> None:
    names = [
        (f"aclImdb/{split}/{side}/{n}_{rating}.txt", f"{split} {side} {WORDS[n]}<br /><br />film {n}".encode())
        for split in ("train", "test")
        for side, rating in (("pos", 9), ("neg", 2))
        for n in range(12)
    ]
    long = {"aclImdb/train/pos/12_10.txt": b"word " * 400, "aclImdb/train/unsup/0_0.txt": b"no label"}
    publish("imdb", {"aclImdb_v1.tar.gz": tarred({**dict(names), **long})})
    assert fetch("imdb").rows == {"imdb_train.jsonl.gz": 25, "imdb_test.jsonl.gz": 24}
    corpus = load_corpus("imdb")
    assert [len(split) for split in corpus.splits().values()] == [18, 4, 24]
    assert corpus.train.texts[0].startswith("train ")
    assert not any("<br" in text for text in corpus.train.texts)
    assert corpus.notices[0] == "1 reviews of 400 words or more left out."
    assert folder.joinpath("imdb_train.jsonl.gz").is_file()
    assert load_corpus("imdb-ratings").class_names == ("2", "9", "10")


@pytest.mark.usefixtures("folder")
def test_newsgroups_are_read_from_their_tar(publish: Publish) -> None:
    groups = ("rec.sport.hockey", "rec.sport.baseball", "alt.atheism")
    files = {
        f"20news-bydate-{split}/{group}/{n}": f"From: me\nLines: 1\n\n{group[-6:]} {WORDS[n]} \xe9 {n}\n".encode(
            "latin-1"
        )
        for split in ("train", "test")
        for group in groups
        for n in range(10)
    }
    publish("20news-1", {"20news-bydate.tar.gz": tarred(files)})
    assert fetch("20news-1").rows == {"20news_bydate_5cat.jsonl.gz": 40}
    corpus = load_corpus("20news-1")
    assert corpus.class_names == ("baseball", "hockey")
    assert {text.split()[0] for text in corpus.train.texts} == {"hockey", "seball"}
    assert all(text.endswith("é qqq") for text in corpus.train.texts)


@pytest.mark.usefixtures("folder")
def test_news_is_read_from_its_csv(publish: Publish) -> None:
    files = {f"ag_news_{split}.csv": comma_separated(star_lists(40, 4, 2)) for split in ("train", "test")}
    publish("agnews", files)
    assert fetch("agnews").rows == {"agnews_train_pool.jsonl.gz": 40, "agnews_official_test.jsonl.gz": 40}
    corpus = load_corpus("agnews")
    assert corpus.class_names == ("business", "scitech", "sports", "world")
    assert corpus.test.texts[0] == "balord field 0 number 0 balord field 1 number 0"


@pytest.mark.usefixtures("folder")
def test_the_second_source_is_used_when_the_first_is_gone(publish: Publish, server: Server) -> None:
    rows = [{"text": f"{word} number {n}", "label": n % 4} for n, word in enumerate(WORDS * 2)]
    publish("agnews", {f"ag_news_{split}.parquet": parquet(rows) for split in ("train", "test")}, source=1)
    assert fetch("agnews").source == "AG News (Zhang et al. 2015), Hugging Face"
    assert server.asked[0] == ("/ag_news_train.csv", None)
    assert load_corpus("agnews").test.labels.bincount().tolist() == [10, 10, 10, 10]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("name", "archive", "classes", "fields"),
    [
        ("yelp", "yelp_review_full_csv", 5, 1),
        ("amazon", "amazon_review_full_csv", 5, 2),
        ("yahoo", "yahoo_answers_csv", 10, 3),
    ],
)
def test_review_archives_are_read_from_their_tar_of_csv(
    publish: Publish, name: str, archive: str, classes: int, fields: int
) -> None:
    rows = comma_separated(star_lists(100, classes, fields))
    files = {f"{archive}/{split}.csv": rows for split in ("train", "test")} | {f"{archive}/readme.txt": b"?"}
    publish(name, {f"{archive}.tgz": tarred(files)})
    assert sum(fetch(name).rows.values()) == 200
    corpus = load_corpus(name)
    assert corpus.classes == classes
    assert len(corpus.test) == 100
    assert corpus.test.texts[0] == "\n".join(f"balord field {part}\nnumber 0" for part in range(fields))


@pytest.mark.usefixtures("folder")
def test_yelp_is_read_from_parquet(publish: Publish, server: Server) -> None:
    rows = [{"text": f"{word} place {n}", "label": n % 5} for n, word in enumerate(WORDS * 2)]
    publish("yelp", {f"yelp_{split}.parquet": parquet(rows) for split in ("train", "test")}, source=1)
    assert fetch("yelp").rows == {"yelp_review_full.parquet": 80}
    assert server.asked[0][0] == "/yelp_review_full_csv.tgz"
    assert load_corpus("yelp").class_names == ("1", "2", "3", "4", "5")


@pytest.mark.usefixtures("folder")
def test_ten_ratings_are_read_from_a_list_of_objects(publish: Publish) -> None:
    rows = [{"review": f"film {n} {WORDS[n % 20]}", "rating": n % 11, "user": "u", "movie": "m"} for n in range(220)]
    publish("imdb-10", {"jmars_data.json": json.dumps(rows).encode()})
    assert fetch("imdb-10").rows == {"imdb10.parquet": 200}
    corpus = load_corpus("imdb-10")
    assert corpus.class_names == tuple(str(stars) for stars in range(1, 11))
    assert [len(split) for split in corpus.splits().values()] == [160, 20, 20]


@pytest.mark.usefixtures("folder")
def test_amazon_samples_are_read_from_json_lines(publish: Publish) -> None:
    lines = [
        {"id": f"en_{n}", "text": f"{WORDS[n % 20]} thing {n}", "label": n % 5, "label_text": "?"} for n in range(50)
    ]
    content = "\n".join(map(json.dumps, lines)).encode()
    publish("amazon-multi", {f"amazon_multi_en_{split}.jsonl": content for split in ("validation", "test")})
    fetch("amazon-multi")
    assert [len(split) for split in load_corpus("amazon-multi").splits().values()] == [45, 5, 50]


@pytest.mark.usefixtures("folder")
def test_scaled_reviews_are_read_line_by_line(publish: Publish) -> None:
    lines = {
        "subj": [f"{word} review {n}" for n, word in enumerate(WORDS)],
        "rating": [str(n % 3 / 2) for n in range(20)],
        "label.3class": [str(n % 3) for n in range(20)],
        "label.4class": [str(n % 4) for n in range(20)],
        "id": ["7"] * 20,
    }
    files = {
        f"scaledata/{author}/{name}.{author}": "\n".join(part).encode()
        for author in ("A+One", "B+Two")
        for name, part in lines.items()
    }
    publish("pl-scale", {"scale_data.tar.gz": tarred(files)})
    assert fetch("pl-scale").rows == {"pl_scale.jsonl.gz": 40}
    assert load_corpus("pl-scale").class_names == ("low", "middle", "high")


def test_a_corpus_that_is_at_hand_is_not_fetched(folder: Path, publish: Publish, server: Server) -> None:
    folder.mkdir()
    folder.joinpath("sst2_tree.jsonl.gz").write_bytes(b"mine")
    publish("sst", {"trainDevTestTrees_PTB.zip": trees()})
    assert fetch("sst").rows == {}
    assert server.asked == []
    assert folder.joinpath("sst2_tree.jsonl.gz").read_bytes() == b"mine"


def test_what_a_killed_process_downloaded_goes_and_what_was_put_there_by_hand_stays(
    folder: Path, publish: Publish, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish("sst", {"trainDevTestTrees_PTB.zip": trees()})
    with monkeypatch.context() as patch:
        patch.setattr(fetching, "write_tables", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            fetch("sst")
    assert sorted(path.name for path in folder.iterdir()) == [
        ".trainDevTestTrees_PTB.zip.fetched",
        "trainDevTestTrees_PTB.zip",
    ]
    tables = ["sst2_tree.jsonl.gz", "sst5_tree.jsonl.gz"]
    with monkeypatch.context() as patch:
        patch.setattr(fetching, "_remove_download", lambda _: None)  # it dies before that
        fetch("sst")
    assert len(server.asked) == 1
    (folder / ".trainDevTestTrees_PTB.zip.lock").touch()
    fetch("sst")
    assert sorted(path.name for path in folder.iterdir()) == tables


def test_a_file_put_there_by_hand_needs_no_network_and_stays(folder: Path, publish: Publish, server: Server) -> None:
    publish("sst", {"trainDevTestTrees_PTB.zip": trees()})
    folder.mkdir()
    folder.joinpath("trainDevTestTrees_PTB.zip").write_bytes(trees())
    assert fetch("sst").rows["sst2_tree.jsonl.gz"] == 36
    assert server.asked == []
    assert folder.joinpath("trainDevTestTrees_PTB.zip").is_file()


def test_a_wrong_file_put_there_by_hand_is_refused(folder: Path, publish: Publish) -> None:
    publish("sst", {"trainDevTestTrees_PTB.zip": trees()})
    folder.mkdir()
    folder.joinpath("trainDevTestTrees_PTB.zip").write_bytes(b"something else")
    with pytest.raises(DataError, match=r"is not the published file: its checksum is not sha256:.* Remove it"):
        fetch("sst")


CONTENT = bytes(range(256)) * 1000
SUM = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"


def test_a_download_that_breaks_off_goes_on_within_the_call(server: Server, tmp_path: Path) -> None:
    file = server.file("a.bin", CONTENT, SUM)
    server.cuts["/a.bin"] = [100_000, 50_000]
    steps: list[Step] = []
    assert download(file, tmp_path / "a.bin", observer=steps.append).read_bytes() == CONTENT
    assert server.asked == [("/a.bin", None), ("/a.bin", "bytes=100000-"), ("/a.bin", "bytes=150000-")]
    assert steps[-1] == Step(file="a.bin", done=256_000, total=256_000)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".a.bin.fetched", "a.bin"]


def test_a_download_goes_on_in_the_next_call(server: Server, tmp_path: Path) -> None:
    file = server.file("a.bin", CONTENT, SUM)
    server.cuts["/a.bin"] = [1000, 0]
    with pytest.raises(Unreachable, match=r"broke off after 1,000 of 256,000 bytes, which are kept\."):
        download(file, tmp_path / "a.bin")
    assert (tmp_path / "a.bin.part").stat().st_size == 1000
    assert not (tmp_path / "a.bin").exists()
    download(file, tmp_path / "a.bin")
    assert server.asked[-1] == ("/a.bin", "bytes=1000-")
    assert (tmp_path / "a.bin").read_bytes() == CONTENT


def test_a_file_that_changed_meanwhile_is_taken_from_the_start(server: Server, tmp_path: Path) -> None:
    file = server.file("a.bin", CONTENT)
    server.tags["/a.bin"] = '"one"'
    server.cuts["/a.bin"] = [1000, 0]
    with pytest.raises(Unreachable):
        download(file, tmp_path / "a.bin")
    server.tags["/a.bin"] = '"two"'
    server.files["/a.bin"] = CONTENT[::-1]
    assert download(file, tmp_path / "a.bin").read_bytes() == CONTENT[::-1]


def test_without_tag_and_checksum_nothing_is_taken_up_again(server: Server, tmp_path: Path) -> None:
    file = server.file("a.bin", CONTENT)
    (tmp_path / "a.bin.part").write_bytes(b"of who knows when")
    assert download(file, tmp_path / "a.bin").read_bytes() == CONTENT
    assert server.asked == [("/a.bin", None)]


@pytest.mark.parametrize("old", [b"another file", CONTENT + b"too long", CONTENT])
def test_an_old_part_of_another_file_does_not_spoil_the_download(server: Server, tmp_path: Path, old: bytes) -> None:
    file = server.file("a.bin", CONTENT, SUM)
    (tmp_path / "a.bin.part").write_bytes(old)
    assert download(file, tmp_path / "a.bin").read_bytes() == CONTENT


def test_a_server_that_knows_no_ranges_sends_everything_again(server: Server, tmp_path: Path) -> None:
    file = server.file("a.bin", CONTENT, SUM)
    server.ranges = False
    (tmp_path / "a.bin.part").write_bytes(CONTENT[:5000])
    assert download(file, tmp_path / "a.bin").read_bytes() == CONTENT


def test_a_wrong_checksum_leaves_nothing_behind(server: Server, tmp_path: Path) -> None:
    file = server.file("a.bin", CONTENT[:-1], SUM)
    with pytest.raises(
        DataError, match=r"sent \(255,999 bytes\) is not the published file: its checksum is not sha256"
    ):
        download(file, tmp_path / "a.bin")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["text/html; charset=utf-8", "application/octet-stream"])
def test_a_web_page_is_no_archive(server: Server, tmp_path: Path, kind: str) -> None:
    file = server.file("a.bin", b"\n<!DOCTYPE html><html>Please log in</html>", SUM)
    server.kind = kind
    (tmp_path / "a.bin.part").write_bytes(b"")
    with pytest.raises(Unreachable, match="sends a web page instead of the file"):
        download(file, tmp_path / "a.bin")
    assert not (tmp_path / "a.bin").exists()


def test_a_web_page_does_not_cost_what_was_downloaded(server: Server, tmp_path: Path) -> None:
    file = server.file("a.bin", b"<html>Quota exceeded</html>", SUM)
    server.ranges = False
    (tmp_path / "a.bin.part").write_bytes(CONTENT[:5000])
    with pytest.raises(Unreachable):
        download(file, tmp_path / "a.bin")
    assert (tmp_path / "a.bin.part").read_bytes() == CONTENT[:5000]


def test_a_missing_file_is_told_with_what_to_do(folder: Path, server: Server) -> None:
    with pytest.raises(Unreachable) as caught:
        fetch("imdb", base=server.address)
    said = str(caught.value)
    assert f"{server.address}/aclImdb_v1.tar.gz answers 404 (Not Found)." in said
    assert f"Put it into '{folder}' and call `heedful data fetch imdb` again" in said


def test_no_network_is_told_with_what_to_download_and_where_to_put_it(
    folder: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = "http://127.0.0.1:9"  # the discard port: nothing listens there
    assert server.address != closed
    moved = replace(DATASETS["sst"], sources=(DATASETS["sst"].sources[0].at(closed),))
    monkeypatch.setattr(fetching, "DATASETS", {**DATASETS, "sst": moved})
    with pytest.raises(Unreachable) as caught:
        fetch("sst")
    said = str(caught.value)
    assert "cannot be reached" in said
    assert f"{closed}/trainDevTestTrees_PTB.zip as 'trainDevTestTrees_PTB.zip'" in said
    assert f"Put it into '{folder}'" in said
    assert "https://nlp.stanford.edu/sentiment/" in said


def _link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def _zipped_as(kind: int) -> bytes:
    """An archive whose second member is of this kind of Unix."""
    out, info = io.BytesIO(), zipfile.ZipInfo("aclImdb/test")
    info.external_attr = (kind | 0o644) << 16
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("aclImdb/train/pos/0_9.txt", "good")
        archive.writestr(info, "/etc/passwd")
    return out.getvalue()


@pytest.mark.parametrize(
    "archive",
    [
        tarred({"aclImdb/train/pos/0_9.txt": b"good", "../outside.txt": b"bad"}),
        tarred({"aclImdb/train/pos/0_9.txt": b"good", "/etc/outside.txt": b"bad"}),
        tarred({"aclImdb/train/pos/0_9.txt": b"good"}, _link("aclImdb/test", "/etc")),
        tarred({"aclImdb/train/pos/0_9.txt": b"good"}, _link("aclImdb/test", "/etc/passwd", tarfile.LNKTYPE)),
        tarred({"aclImdb/train/pos/0_9.txt": b"good"}, _link("aclImdb/test", "", tarfile.CHRTYPE)),
        tarred({"aclImdb/train/pos/0_9.txt": b"good"}, _link("aclImdb/test", "", tarfile.FIFOTYPE)),
        _zipped_as(stat.S_IFLNK),
        _zipped_as(stat.S_IFCHR),
        _zipped_as(stat.S_IFIFO),
        zipped({"aclImdb/train/pos/0_9.txt": b"good", "aclImdb/../../outside.txt": b"bad"}),
        zipped({"C:\\outside.txt": b"bad"}),
    ],
    ids=[
        "up", "absolute", "link", "hard link", "device", "pipe",
        "zip link", "zip device", "zip pipe", "zip up", "drive",
    ],
)  # fmt: skip
def test_an_archive_that_reaches_outside_is_refused(
    folder: Path, tmp_path: Path, publish: Publish, archive: bytes
) -> None:
    publish("imdb", {"aclImdb_v1.tar.gz": archive})
    with pytest.raises(DataError, match=r"'aclImdb_v1\.tar\.gz' is refused: its member .* (outside|link)"):
        fetch("imdb")
    assert not list(tmp_path.rglob("outside.txt"))
    assert not list(folder.glob("imdb_*"))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (tarred({"aclImdb/train/pos/0_9.txt": b"good" * 1000})[:80], "cannot be read"),
        (b"\x1f\x8b not really gzip", "cannot be read"),
        (tarred({"something/else.txt": b"?"}), r"holds no rows for imdb_train\.jsonl\.gz, imdb_test\.jsonl\.gz"),
    ],
    ids=["cut short", "not gzip", "foreign"],
)
def test_a_damaged_archive_makes_no_tables(folder: Path, publish: Publish, content: bytes, said: str) -> None:
    publish("imdb", {"aclImdb_v1.tar.gz": content})
    with pytest.raises(DataError, match=said):
        fetch("imdb")
    assert not list(folder.glob("imdb_*"))


@pytest.mark.usefixtures("folder")
def test_a_sample_without_an_address_says_where_to_put_it() -> None:
    with pytest.raises(
        DataError, match=r"'yelp10k' is a sample without a public address\. Put yelp10k_stars\.jsonl\.gz"
    ):
        fetch("yelp10k")


def test_an_unknown_corpus_is_told_its_neighbour() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'imdb'"):
        fetch("imbd")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("base", ["ftp://example.org", "http://", "http://[::1", "http://a:b", "https:/a"])
def test_other_kinds_of_address_are_refused(base: str) -> None:
    with pytest.raises(DataError, match="begins with http"):
        fetch("sst", base=base)


@pytest.mark.parametrize("name", [name for name, dataset in DATASETS.items() if dataset.sources])
def test_every_source_says_what_is_needed_to_use_it(name: str) -> None:
    for source in DATASETS[name].sources:
        assert source.title
        assert source.home.startswith("http")
        assert set(DATASETS[name].files) <= set(source.makes)
        for file in source.files:
            assert file.address.startswith("https://")
            assert file.checksum is None or re.fullmatch(r"sha256:[0-9a-f]{64}|md5:[0-9a-f]{32}", file.checksum)


def test_the_command_fetches_and_says_what_it_made(folder: Path, publish: Publish) -> None:
    app = Typer()
    app.command()(fetch_data)
    publish("sst", {"trainDevTestTrees_PTB.zip": trees()})
    done = CliRunner().invoke(app, ["sst"])
    assert done.exit_code == 0
    assert f"{folder / 'sst2_tree.jsonl.gz'}  36 rows" in done.stdout
    assert "trainDevTestTrees_PTB.zip" in done.stderr
    again = CliRunner().invoke(app, ["sst", "--json"])
    assert json.loads(again.stdout) == {"corpus": "sst", "folder": str(folder), "source": None, "rows": {}}
