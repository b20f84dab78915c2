"""The doors: what each is given, drawn from a seed, and the function that must answer it.

A knock ends in a result ("taken") or in a HeedfulError ("refused"); whatever else is raised is a defect.
"""

import contextlib
import gzip
import io
import json
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import torch

import heedful
from heedful.errors import HeedfulError
from tests.fuzz.damage import STRANGE, damage_bytes, damage_json, damage_value, nested, pick
from tests.fuzz.requests import requests

Knock = Callable[[Random, Path], object]

WORDS = ["good", "bad", "fine", "dull", "film", "plot", "cast", "🙂", "naïve", "the"]


def knock(door: str, seed: int, folder: Path) -> str:
    """Whether the input that this seed draws was taken or refused; all else that is raised goes through."""
    try:
        DOORS[door](Random(f"{door}/{seed}"), folder)
    except HeedfulError as error:
        said = str(error)
        assert said[-1:] in {".", ")", "?"}, f"not a sentence: {said[-200:]!r}"
        return "refused"
    return "taken"


# Tables ---------------------------------------------------------------------------------------------------------------


def _rows(random: Random) -> list[dict[str, Any]]:
    return [
        {
            "text": " ".join(random.choices(WORDS, k=random.randint(1, 8))),
            "label": random.choice(("no", "yes")),
            "split": random.choice(("train", "train", "dev", "test")),
        }
        for _ in range(random.choice((0, 1, 12, 24, 40)))
    ]


def _odd_rows(random: Random) -> list[dict[str, Any]]:
    """Rows of which some hold something else."""
    rows, share = _rows(random), random.choice((0.02, 0.3))
    for row in rows:
        if random.random() < share:
            name = random.choice([*row, "other", ""])
            row[name] = random.choice(STRANGE)
        if random.random() < 0.05:
            row.pop(random.choice(list(row)))
    return rows


def _delimited(random: Random, rows: list[dict[str, Any]]) -> bytes:
    frame = pd.DataFrame(
        [{name: str(value) for name, value in row.items()} for row in rows] or [{"text": "", "label": ""}], dtype=object
    )
    if random.random() < 0.1:
        frame = frame.set_axis([random.choice(["text", "label", "", "x"]) for _ in frame], axis=1)
    text = frame.to_csv(index=random.random() < 0.2, sep=random.choice(",,,;\t|"))
    return text.encode(random.choice(("utf-8", "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32")), "surrogatepass")


def _json_table(random: Random, rows: list[dict[str, Any]]) -> bytes:
    if random.random() < 0.5:
        return b"\n".join(json.dumps(row).encode() for row in rows)
    return damage_json(random, random.choice((rows, {"rows": rows}, {"a": rows, "b": rows})))


def _parquet_table(random: Random, rows: list[dict[str, Any]]) -> bytes:
    buffer = io.BytesIO()
    columns: dict[str, Any] = {name: [row.get(name) for row in rows] for name in ("text", "label", "split")}
    size = len(rows)
    others: list[Any] = [
        list(range(size)), [[1]] * size, [{"a": 1}] * size, [b"\xff"] * size, [None] * size, [0.5] * size,
        pd.date_range("2020", periods=size), pd.Categorical(["a"] * size), [True] * size,
        pd.array([1] * size, dtype="Int64"), pd.to_timedelta([1] * size, unit="s"), [np.nan] * size,
    ]  # fmt: skip
    if random.random() < 0.6:
        columns[random.choice(list(columns))] = random.choice(others)
    odd_index = random.random() < 0.1
    try:
        frame = pd.DataFrame(columns)
        if odd_index:
            frame.index = pd.Index([random.choice(WORDS) for _ in range(size)], name=random.choice([None, "text"]))
        frame.to_parquet(buffer)
    except Exception:  # such a file nobody can write
        pd.DataFrame({"text": ["a"], "label": ["b"]}).to_parquet(buffer)
    return buffer.getvalue()


def tables(random: Random, folder: Path) -> object:
    """Corpora from files of all formats."""
    rows = _odd_rows(random) if random.random() < 0.6 else _rows(random)
    kind = random.choice(("csv", "tsv", "jsonl", "ndjson", "json", "parquet"))
    make = {"csv": _delimited, "tsv": _delimited, "parquet": _parquet_table}.get(kind, _json_table)
    content = make(random, rows)
    if random.random() < 0.4:
        content = damage_bytes(random, content)
    name = f"reviews.{kind}"
    if kind != "parquet" and random.random() < 0.2:
        name, content = f"{name}.gz", gzip.compress(content)
        content = damage_bytes(random, content) if random.random() < 0.4 else content
    path = folder / name
    path.write_bytes(content)
    options = pick(random, {
        "text_column": ("text", "label", "split", "", "none", "TEXT", " text"),
        "label_column": ("label", "text", "split", "nothing"),
        "split_column": ("split", "none", "label", "text", ""),
        "split_values": ("dev=train", "train=no,test=yes", "=", "a=b", {"train": "dev"}, {1: "test"}, '"'),
        "missing_labels": ("skip", "keep", "other"),
        "encoding": ("utf-8", "cp1252", "latin-1", "utf-16", "base64", "hex", "idna", "punycode", "rot13", "", "\0"),
        "tokenizer": ("words", "alphanumeric", "whitespace", "letters"),
        "min_count": (0, 1, 2, 100, -1, 2.5, "1", None),
        "seed": (0, 1, -1, 2**70, "0", None, 1.5),
    })  # fmt: skip
    return heedful.load_corpus(path, **options)


def frames(random: Random, _: Path) -> object:
    """Corpora from data frames and pairs of lists."""
    rows = _odd_rows(random)
    if random.random() < 0.5:
        texts: Any = [row.get("text") for row in rows]
        labels: Any = [row.get("label") for row in rows]
        odd = random.choice((texts, labels))
        if odd:
            odd[random.randrange(len(odd))] = random.choice((*STRANGE, object(), {1}, b"x", np.array([1, 2]), pd.NaT))
        shapes: list[Any] = [
            (texts, labels), (texts,), (texts, labels, []), (texts, labels[1:]), (np.array(texts, object), labels),
            (iter(texts), labels), (texts, None), ("abc", "abc"), (pd.Series(texts, dtype=object), labels),
            [texts, labels], {"text": texts}, None, 5, b"x",
        ]  # fmt: skip
        source = shapes[0] if random.random() < 0.6 else random.choice(shapes)
    else:
        source = pd.DataFrame(
            {name: pd.Series([row.get(name) for row in rows], dtype=object) for name in ("text", "label")}
        )
        if random.random() < 0.3 and len(source.columns):
            source = source.set_axis(
                [random.choice((None, 1, "text", ("a", "b"), 0.5)) for _ in source.columns], axis=1
            )
        if random.random() < 0.2:
            source.index = [0] * len(source)
    return heedful.load_corpus(source)


# Traces ---------------------------------------------------------------------------------------------------------------


def _good_arrays(random: Random) -> dict[str, Any]:
    lengths = [random.randint(1, 4) for _ in range(random.randint(1, 4))]
    units, classes = sum(lengths), random.randint(2, 4)
    draw = np.random.default_rng(random.randrange(2**32))
    return {
        "offsets": np.concatenate([[0], np.cumsum(lengths)]),
        "attention_scores": draw.normal(size=units),
        "polarity_scores": draw.normal(size=(units, classes)),
        "bias": draw.normal(size=classes),
        "labels": draw.integers(0, classes, len(lengths)),
        "units": [random.choice(WORDS) for _ in range(units)],
        "class_names": [f"c{number}" for number in range(classes)],
    }


OBJECTS: tuple[Callable[[Any], Any], ...] = (
    lambda _: None,
    lambda value: str(value),
    lambda value: [str(entry) for entry in value],
    lambda value: torch.tensor(value).to_sparse() if isinstance(value, np.ndarray) else value,
    lambda value: np.asarray(value, dtype=object),
    lambda value: np.asarray(value).astype(complex) if isinstance(value, np.ndarray) else complex(1),
    lambda value: iter(value),
    lambda value: set(map(str, value)),
    lambda value: dict(enumerate(value)),
    lambda value: pd.Series(list(value)),
    lambda value: torch.tensor(value, dtype=torch.float16),
    lambda value: torch.tensor(value, dtype=torch.bfloat16),
    lambda value: torch.tensor(value).to("meta") if isinstance(value, np.ndarray) else value,
    lambda value: torch.tensor(value, dtype=torch.float64).requires_grad_() if isinstance(value, np.ndarray) else value,
    lambda value: np.asarray(value)[::-1],
    lambda value: np.asarray(value)[..., None],
    lambda value: np.asarray(value).T,
    lambda value: np.asarray(value)[:0],
    lambda value: np.asarray(value)[:-1],
    lambda value: np.asarray(value) * np.nan if isinstance(value, np.ndarray) else [None] * len(value),
    lambda value: np.asarray(value) * np.inf if isinstance(value, np.ndarray) else [b"x"] * len(value),
    lambda value: np.asarray(value) * 1e308 * 10 if isinstance(value, np.ndarray) else [1] * len(value),
    lambda value: [2**70] * len(value),
    lambda value: [-(2**63)] * len(value),
    lambda value: np.asarray(value).astype("datetime64[s]") if isinstance(value, np.ndarray) else value,
    lambda value: np.asarray(value).astype(bool) if isinstance(value, np.ndarray) else value,
    lambda value: np.ma.masked_array(value, mask=True) if isinstance(value, np.ndarray) else value,
    lambda _: nested(3000),
    lambda _: [[1], [2, 3]],
    lambda _: 5,
    lambda _: object(),
    lambda _: b"12345678",
    lambda value: [*value, *value],
    lambda value: np.asarray(value).astype(np.uint64) if isinstance(value, np.ndarray) else value,
    lambda value: np.asarray(value).astype("S") if isinstance(value, np.ndarray) else value,
    lambda value: np.asarray(value).view(np.recarray) if isinstance(value, np.ndarray) else value,
)


def arrays(random: Random, folder: Path) -> object:
    """Traces from arrays of any kind; what is taken can be saved and loaded, and is then the same."""
    given = _good_arrays(random)
    with np.errstate(all="ignore"):
        for _ in range(random.choice((1, 1, 1, 2, 3))):
            name = random.choice(list(given))
            try:
                given[name] = random.choice(OBJECTS)(given[name])
            except (TypeError, ValueError, RuntimeError, OverflowError, AttributeError, IndexError, UserWarning):
                given[name] = random.choice(STRANGE)
            if random.random() < 0.1:
                given.pop(random.choice(("labels", "units", "class_names", "attention_scores")), None)
    if random.random() < 0.1:
        given["attention_weights"] = given.pop("attention_scores", None)
    if random.random() < 0.1:
        given[random.choice(("logits", "probabilities"))] = random.choice((*STRANGE, [[0.5, 0.5]]))
    trace = heedful.Trace.from_arrays(**given)
    path = folder / f"trace.{random.choice(('safetensors', 'parquet'))}"
    trace.save(path)
    again = heedful.Trace.load(path)
    assert torch.equal(again.polarity_scores, trace.polarity_scores)
    assert torch.equal(again.attention_weights, trace.attention_weights)
    assert again.class_names == trace.class_names
    repr(trace), trace._repr_html_(), trace.predictions
    return heedful.minimum_flips(trace)


def trace_files(random: Random, folder: Path) -> object:
    """Damaged trace files: refused, or exactly what was saved."""
    arrays = _good_arrays(random)
    if random.random() < 0.3:
        del arrays[random.choice(("labels", "units", "class_names"))]
    trace = heedful.Trace.from_arrays(**arrays)
    path = folder / f"trace.{random.choice(('safetensors', 'parquet'))}"
    trace.save(path)
    good = path.read_bytes()
    path.write_bytes(_flipped(random, good) if random.random() < 0.5 else damage_bytes(random, good))
    again = heedful.Trace.load(path)
    same = (
        all(
            torch.equal(getattr(again, name), getattr(trace, name))
            for name in ("offsets", "attention_scores", "polarity_scores", "bias")
        )
        and again.class_names == trace.class_names
        and (again.labels is None) == (trace.labels is None)
        and (again.labels is None or torch.equal(again.labels, trace.labels))  # type: ignore[arg-type]
        and (None if again.units is None else list(again.units)) == (None if trace.units is None else list(trace.units))
    )
    assert same, "SILENT: a damaged file gave another trace"
    return again


def _flipped(random: Random, good: bytes) -> bytes:
    found = bytearray(good)
    found[random.randrange(len(found))] ^= 1 << random.randrange(8)
    return bytes(found)


# Settings -------------------------------------------------------------------------------------------------------------

SETTINGS: Mapping[str, Any] = {
    "data": {"source": "synthetic-1", "seed": 0, "min_count": 2, "split_values": {"dev": "dev"}},
    "model": {"attention": "dot", "encoder": "none", "score_scale": 10.0, "widths": [3, 5], "embedding_size": 8},
    "training": {"epochs": 3, "seed": 1, "optimizer": "adagrad", "device": "cpu"},
    "record": {"scores": True, "flow": 10},
}
PLAN: Mapping[str, Any] = {
    "name": "scales",
    "seeds": 3,
    "base": {"training": {"epochs": 2}},
    "grid": {"model.score_scale": [1, 10], "model.encoder": ["none", "lstm"]},
    "runs": [{"training.optimizer": "adam"}, {"training.optimizer": "sgd"}],
}


def settings(random: Random, folder: Path) -> object:
    """Settings from files and changes."""
    path = folder / "settings.json"
    if random.random() < 0.3:
        path = folder / "settings.toml"
        import tomli_w

        path.write_bytes(damage_bytes(random, tomli_w.dumps(dict(SETTINGS)).encode()))
    else:
        path.write_bytes(damage_json(random, SETTINGS))
    made = heedful.RunSettings.read(path)
    names = ("model.score_scale", "training.seed", "data.source", "base.model.encoder", "base.base", "a", "")
    values = ("1", "none", "[", "{", "nan", "1e999", "9" * 5000, "[" * 5000, "x")
    parts = (names, ("=", "", "=="), values)
    made = made.override("".join(map(random.choice, parts)) for _ in range(random.randint(0, 2)))
    made.write(folder / "again.toml")
    return made.digest("x")


def plans(random: Random, folder: Path) -> object:
    """Plans of sweeps."""
    from heedful.sweep.plan import Plan

    path = folder / "plan.json"
    damaged = damage_value(random, PLAN)
    if isinstance(damaged, dict) and random.random() < 0.2:
        damaged["seeds"] = random.choice((10**12, [1] * 10, list(range(3000)), -5, 0, [[]], ["a"], True))
    if isinstance(damaged, dict) and random.random() < 0.1:
        damaged["grid"] = {
            f"model.{name}": list(range(1, 1001)) for name in ("embedding_size", "hidden_size", "score_scale")
        }
    try:
        path.write_text(json.dumps(damaged))
    except (RecursionError, UnicodeError):
        path.write_text("[" * 100_000)
    if random.random() < 0.3:
        path.write_bytes(damage_bytes(random, path.read_bytes()))
    plan = Plan.read(path, random.choice(((), ("training.epochs=3",), ("x",), ("training.epochs=" + "9" * 4400,))))
    return plan.varied


# What is published ----------------------------------------------------------------------------------------------------


def _archive(random: Random, members: Mapping[str, bytes], zipped: bool) -> bytes:
    buffer = io.BytesIO()
    if zipped:
        with zipfile.ZipFile(buffer, "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content)
    else:
        with tarfile.open(fileobj=buffer, mode=random.choice(("w", "w:gz", "w:bz2", "w:xz"))) as tar:
            for name, content in members.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                if random.random() < 0.05:
                    info.type = random.choice((tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE))
                    info.size = 0
                tar.addfile(info, io.BytesIO(content) if info.isreg() else None)
    return buffer.getvalue()


def _good_publication(name: str) -> Any:
    trees = b"(3 (2 It) (4 works))\n(1 (2 It) (0 (1 does) (2 not)))\n"
    table = b'"1","a title","some \\n text"\n"2","another","one"\n'
    lines = b'{"id": "a", "label": 1, "text": "x"}\n{"id": "b", "label": 0, "text": "y"}\n'
    rated = b'[{"review": "fine", "rating": "8"}, {"review": "dull", "rating": 2}]'
    news, scale = "20news-bydate-{}/sci.med/{}", ("subj", "rating", "label.3class", "label.4class")
    both, sides = ("train", "test"), [(part, side) for part in ("train", "test") for side in ("pos", "neg")]
    return {
        "TREEBANK": ({f"trees/{part}.txt": trees for part in ("train", "dev", "test")}, True),
        "IMDB": ({f"aclImdb/{part}/{side}/{n}_{n + 1}.txt": b"text" for part, side in sides for n in (1, 2)}, False),
        "NEWSGROUPS": ({news.format(part, n): b"From: a\r\n\r\nbody" for part in both for n in (1, 2)}, False),
        "YELP": ({f"yelp_review_full_csv/{part}.csv": table for part in both}, False),
        "SCALE": ({f"scaledata/A/{c}.A": b"0.1\n0.5\n" if c == "rating" else b"1\n2\n" for c in scale}, False),
        "AG_NEWS": {"a.csv": table, "b.csv": table},
        "AMAZON_MULTI": {"a.jsonl": lines, "b.jsonl": lines},
        "IMDB_TEN": {"a.json": rated},
        "YELP_PARQUET": {"a.parquet": _parquet(False), "b.parquet": _parquet(False)},
    }[name]  # fmt: skip


@cache
def _parquet(odd: bool) -> bytes:
    buffer = io.BytesIO()
    pd.DataFrame({"text": ["a", None] if odd else ["a", "b"], "label": [None, "x"] if odd else [0, 1]}).to_parquet(
        buffer
    )
    return buffer.getvalue()


PUBLICATIONS = (
    "TREEBANK",
    "IMDB",
    "NEWSGROUPS",
    "YELP",
    "SCALE",
    "AG_NEWS",
    "AMAZON_MULTI",
    "IMDB_TEN",
    "YELP_PARQUET",
)


def _moved(random: Random, member: str) -> str:
    return random.choice((f"../{member}", f"/{member}", member.upper(), f"C:\\{member}"))


def _other_content(random: Random, member: str, content: bytes) -> bytes:
    if random.random() < 0.4:
        return content
    if member.endswith((".json", ".jsonl")) and random.random() < 0.5:
        return damage_json(random, json.loads(content.splitlines()[0]))
    return damage_bytes(random, content)


def publications(random: Random, folder: Path) -> object:
    """Archives and files from public places, turned into tables."""
    from heedful.text import published
    from heedful.text.tables import write_tables

    name = random.choice(PUBLICATIONS)
    source, good = getattr(published, name), _good_publication(name)
    members, zipped = good if isinstance(good, tuple) else (good, False)
    damaged = {
        _moved(random, member) if random.random() < 0.1 else member: _other_content(random, member, content)
        for member, content in members.items()
    }
    if name == "YELP_PARQUET" and random.random() < 0.3:
        damaged[next(iter(damaged))] = _parquet(True)
    paths = []
    if isinstance(good, tuple):
        content = _archive(random, damaged, zipped)
        content = damage_bytes(random, content) if random.random() < 0.3 else content
        paths.append(folder / source.files[0].name)
        paths[0].write_bytes(content)
    else:
        for file, content in zip(source.files, damaged.values(), strict=True):
            paths.append(folder / file.name)
            paths[-1].write_bytes(content)
    return write_tables(source.rows(paths), folder / "tables", source.makes)


# Runs -----------------------------------------------------------------------------------------------------------------


@cache
def _run_files() -> dict[str, bytes]:
    """The files of a small finished run."""
    import tempfile

    from heedful.pipeline import run
    from heedful.store import Store

    wanted = heedful.RunSettings().override(
        ["data.source=synthetic:size=120", "training.epochs=2", "model.embedding_size=4", "record.flow=1"]
    )
    with tempfile.TemporaryDirectory() as place:
        made = run(wanted, Store(place)).path
        return {str(file.relative_to(made)): file.read_bytes() for file in sorted(made.rglob("*")) if file.is_file()}


def runs(random: Random, folder: Path) -> object:
    """A run one of whose files is damaged: all that is read of it is refused, or as it was."""
    from heedful.pipeline import Run
    from heedful.store import Store

    files = _run_files()
    store = folder / "runs"
    place = store / "0123456789ab_damaged"
    wrong = random.choice(list(files))
    for name, content in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(content)
    content = files[wrong]
    damaged = (
        damage_json(random, json.loads(content)) if wrong.endswith(".json") and random.random() < 0.5
        else _flipped(random, content) if random.random() < 0.5 else damage_bytes(random, content)
    )  # fmt: skip
    if random.random() < 0.05:
        (place / wrong).unlink()
    else:
        (place / wrong).write_bytes(damaged)
    list(Store(store).manifests())
    run = Run(place)
    read: list[Callable[[], object]] = [
        lambda: run.settings, lambda: run.metrics, lambda: run.model().predict(["a good film"]), run.trace,
        *(partial(run.table, name.removesuffix(".parquet")) for name in files if name.endswith(".parquet")),
    ]  # fmt: skip
    refused = None
    for action in read:
        try:
            action()
        except HeedfulError as error:
            refused = error
    if refused:
        raise refused
    assert wrong == "manifest.json" or wrong in {"settings.json", "environment.json"} or damaged == content, (
        f"SILENT: {wrong.rpartition('.')[2]} of a run was read though it is damaged"
    )
    return run


def checkpoints(random: Random, folder: Path) -> object:
    """Checkpoints of a training that was interrupted."""
    from heedful.config import ModelSettings, TrainingSettings
    from heedful.training.state import TrainingState

    interface, settings = _interface(), ModelSettings(embedding_size=3)
    training = TrainingSettings(epochs=2)
    state = TrainingState.start(interface, settings, training)
    state.best = {name: tensor.clone() for name, tensor in state.model.state_dict().items()}
    path = folder / "training.safetensors"
    state.save(path)
    good = path.read_bytes()
    path.write_bytes(_flipped(random, good) if random.random() < 0.5 else damage_bytes(random, good))
    fresh = TrainingState.start(interface, settings, training)
    fresh.restore(path)
    same = all(torch.equal(fresh.best[name], tensor) for name, tensor in state.best.items())
    assert (same, fresh.epoch) == (True, state.epoch), "SILENT: a damaged checkpoint was taken"
    return fresh


@cache
def _interface() -> Any:
    from heedful.models.interface import Interface
    from heedful.text.tokenize import Tokenizer, Vocabulary

    return Interface(vocabulary=Vocabulary.of(WORDS), tokenizer=Tokenizer(), class_names=("no", "yes"))


# Vectors and explanations ---------------------------------------------------------------------------------------------


def vectors(random: Random, folder: Path) -> object:
    """GloVe files, as text and as arrays."""
    from heedful.text.vectors import initial_vectors

    corpus = _corpus()
    lines = "\n".join(" ".join([word, *(f"{random.gauss(0, 1):.3f}" for _ in range(4))]) for word in WORDS).encode()
    if random.random() < 0.4:
        buffer = io.BytesIO()
        np.savez(buffer, words=np.array("\n".join(WORDS)), vectors=np.ones((len(WORDS), 4), np.float32))
        content, name = buffer.getvalue(), "v.npz"
    else:
        content, name = lines, random.choice(("v.txt", "v.vec", "v"))
    path = folder / name
    path.write_bytes(damage_bytes(random, content) if random.random() < 0.8 else content)
    return initial_vectors(corpus, str(path), size=4, seed=0)


@cache
def _corpus() -> Any:
    texts = [f"{' '.join(WORDS)} {i}" for i in range(40)]
    return heedful.load_corpus((texts, [str(i % 2) for i in range(40)]))


def explanation_files(random: Random, folder: Path) -> object:
    """Explanations as other programs write them."""
    from heedful.explanation_files import read_explanations

    texts = ["a good film", "a dull plot , bad cast"]
    rows: list[Any] = [
        {"text": text, "tokens": text.split(), "scores": [random.random() for _ in text.split()], "method": "x",
         "target": "yes", "class_names": ["no", "yes"], "units": text.split(), "signed": True} for text in texts
    ]  # fmt: skip
    spans = [{"start_token": 0, "end_token": 2}]
    eraser: list[Any] = [
        {
            "annotation_id": f"{i}",
            "rationales": [{"docid": f"{i}", "hard_rationale_predictions": spans}],
            "classification": "yes",
        }
        for i in range(2)
    ]
    content = random.choice((rows, eraser))
    damaged = damage_value(random, content) if random.random() < 0.8 else content
    lines = damaged if isinstance(damaged, list) else [damaged]
    try:
        data = b"\n".join(json.dumps(row).encode() for row in lines)
    except (RecursionError, ValueError, OverflowError):
        data = b"[" * 50_000
    if random.random() < 0.3:
        data = damage_bytes(random, data)
    path = folder / random.choice(("e.jsonl", "e.json", "e.parquet"))
    if path.suffix == ".parquet":
        pd.DataFrame(rows).to_parquet(path)
        path.write_bytes(damage_bytes(random, path.read_bytes()))
    else:
        path.write_bytes(data)
    return read_explanations(path)


# The command line -----------------------------------------------------------------------------------------------------

ODD_WORDS = (
    *("", ".", "..", "~", "-", " ", "a" * 300, "b/" * 200, "🙂", "é\u0301", "\ud800", "\ufeff", "a\nb", "%s"),
    *("/proc/self/mem", "/proc/self/fd/999", "/dev/null", "/dev/full", "file.csv", "file.parquet", "folder"),
    *("http://[::1", "http://a:b", "ftp://x", "0", "-1", "1e9", "nan", "none", "NaN=1", "a=b", "=", "model.x=1"),
    *("synthetic:size=", "synthetic:classes=1", "synthetic:size=9e9", "synthetic", "sst ", "SST"),
)
"""What people type, by mistake or not."""

COMMANDS: Mapping[str, tuple[int, tuple[str, ...]]] = {
    "explain": (1, ("--run", "--store", "--by", "--model")),
    "erase": (1, ("--run", "--store", "--trace", "--by")),
    "attack": (1, ("--run", "--store", "--trace", "--epsilon", "--words")),
    "faithfulness": (1, ("--model", "--store", "--explanations", "--metrics", "--by", "--texts")),
    "train": (1, ("--text-column", "--encoding", "--split-values", "--config", "--set", "--encoder", "--score-scale")),
    "audit": (1, ("--model", "--label-column", "--config", "--set", "--epochs", "--store")),
    "sweep": (1, ("--out", "--store", "--on", "-j")),
    "reproduce": (1, ("--table", "--figure", "--datasets", "--models", "--seeds", "--list")),
    "report": (2, ("-o", "--store")),
    "runs show": (1, ("--store",)),
    "runs list": (0, ("--where", "--store", "--out")),
    "runs diff": (2, ("--store",)),
    "runs verify": (1, ("--store",)),
    "data stats": (1, ("--encoding", "--text-column")),
    "data fetch": (1, ("--from",)),
    "explainers show": (1, ()),
    "zoo show": (1, ()),
}


def options(random: Random, folder: Path) -> object:
    """Commands with words that are no names, paths or numbers; each ends with 0, 1 or 2 and without a traceback."""
    from heedful.cli import app

    name = random.choice(list(COMMANDS))
    count, known = COMMANDS[name]
    words = name.split()
    for _ in range(count + random.choice((0, 0, 0, 1))):  # without data an audit would begin
        words.append(random.choice(ODD_WORDS))
    for option in random.sample(known, k=random.randint(0, min(2, len(known)))):
        words += [option, random.choice(ODD_WORDS)]
    if random.random() < 0.1:
        words.append(random.choice(("--json", "--nothing", "-h")))
    _furnish(folder)
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            app(words)
        except SystemExit as end:
            code = end.code
        else:
            code = 0
    if code in {1, 2}:
        raise HeedfulError("The command was refused.")
    assert not code, f"the exit code {code}"
    return words


def _furnish(folder: Path) -> None:
    """A few things that words may mean."""
    (folder / "folder").mkdir()
    (folder / "file.csv").write_text("text,label\n" + "a b,no\nc,yes\n" * 2)
    (folder / "file.parquet").write_bytes(b"PAR1")


DOORS: Mapping[str, Knock] = {
    "tables": tables,
    "frames": frames,
    "arrays": arrays,
    "trace files": trace_files,
    "settings": settings,
    "plans": plans,
    "publications": publications,
    "runs": runs,
    "checkpoints": checkpoints,
    "vectors": vectors,
    "explanation files": explanation_files,
    "options": options,
    "requests": requests,
}
