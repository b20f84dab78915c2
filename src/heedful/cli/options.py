"""What several commands share: options, settings from options, how runs are named, and printing of JSON."""

import functools
import inspect
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.errors import StoreError
from heedful.files import is_file, is_folder
from heedful.store import MANIFEST, Store

if TYPE_CHECKING:
    from heedful.config import RunSettings
    from heedful.pipeline import Run
    from heedful.report.page import Page
    from heedful.trace_folders import TraceFolder
    from heedful.traces import Trace

Json = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]
StoreRoot = Annotated[Path, typer.Option("--store", envvar="HEEDFUL_STORE", help="The folder of runs.")]
AllUnits = Annotated[bool, typer.Option("--all", help="Show every unit of a long text; --json has all of them.")]
AllVerdicts = Annotated[
    bool, typer.Option("--all", help="Print all that the report says: every verdict with its number, and the tables.")
]
RunName = Annotated[str, typer.Argument(help="A run: the name of its directory, or the beginning of it.")]
Workers = Annotated[int | None, typer.Option("--workers", "-j", min=1, help="Processes; default: by cores.")]
On = Annotated[str, typer.Option("--on", help="local, ray, or ray://host:port.")]
ShardWorkers = Annotated[
    int, typer.Option("--workers", "-j", min=1, help="Processes of this machine that share the shards; default: 1.")
]
TablesOut = Annotated[
    Path | None, typer.Option("--out", "-o", help="Where the tables go, as CSV, Parquet and LaTeX, and pictures.")
]
Fresh = Annotated[bool, typer.Option(help="Compute again what is already there.")]


def _option(kind: Any, words: str, *names: str, **more: Any) -> Any:
    """An option that may be left out."""
    return Annotated[kind | None, typer.Option(*names, help=words, **more)]


DATA: dict[str, Any] = {
    "source": Annotated[
        str | None, typer.Argument(help="A corpus name (see `heedful data list`) or a CSV, TSV, JSON or Parquet file.")
    ],
    "text_column": _option(str, "The column that holds the text; default: the one that is recognised."),
    "label_column": _option(str, "The column that holds the label; default: the one that is recognised."),
    "split_column": _option(
        str,
        "The column that names the split; none draws all splits; default: the one that is recognised.",
    ),
    "split_values": _option(
        str,
        "What the values of the split column mean, e.g. train=rest,dev=validate; skip=VALUE leaves rows out.",
        metavar="SPLIT=VALUE,…",
    ),
    "missing_labels": _option(
        str,
        "Rows labelled NaN, null, N/A: skip leaves them out (default), keep makes a class of them.",
        metavar="skip|keep",
    ),
    "encoding": _option(str, "The file's text encoding, e.g. cp1252; default: utf-8."),
}
MODEL: dict[str, Any] = {
    "structure": _option(str, "flat (default) or hierarchical: attention to words, or to sentences too."),
    "attention": _option(str, "dot (default) or additive."),
    "encoder": _option(
        str, "none (default), affine, tanh, lstm, gru, conv; or transformer, frozen, with --set model.encoder_path=…"
    ),
    "score_scale": _option(float, "λ, the divisor of the attention scores; default: 10.", "--score-scale"),
    "epochs": _option(int, "Passes over the training split; default: 40."),
    "seed": _option(int, "Draws parameters, order and dropout; default: 0."),
}
FILES: dict[str, Any] = {
    "config": _option(Path, "A TOML or JSON file of settings.", "--config"),
    "changes": _option(list[str], "Change a setting, e.g. model.score_scale=100.", "--set", metavar="NAME=VALUE"),
}

Command = Callable[..., None]


def with_settings(**options: Any) -> Callable[[Command], Command]:
    """A command whose first parameter are `RunSettings`: on the command line it has these options instead.

    Options are named as the settings they set. All of them may be left out.
    """

    def decorate(command: Command) -> Command:
        _, *own = inspect.signature(command).parameters.values()

        @functools.wraps(command)
        def called(**given: Any) -> None:
            command(_settings({name: given.pop(name) for name in options}), **given)

        some = [inspect.Parameter(name, own[0].kind, default=None, annotation=kind) for name, kind in options.items()]
        called.__signature__ = inspect.Signature([*some, *own])  # type: ignore[attr-defined]
        called.__annotations__ = {one.name: one.annotation for one in (*some, *own)} | {"return": None}
        return called

    return decorate


def _settings(given: dict[str, Any]) -> "RunSettings":
    """Defaults, then the file, then the named options, then --set; defaults suit the encoder that is asked for."""
    from heedful.config import HEAD, RunSettings, parse_change, read_mapping
    from heedful.store import flatten

    config = given.get("config")
    base = RunSettings.read(config) if config else RunSettings()
    said = {**(flatten(read_mapping(config)) if config else {}), **dict(map(parse_change, given.get("changes") or ()))}
    if "transformer" in (given.get("encoder"), said.get("model.encoder")):
        where = {name: value for name, value in said.items() if name.startswith("model.encoder_")}
        base = base.change({**{name: value for name, value in HEAD.items() if name not in said}, **where})
    values = base.model_dump(mode="json")
    for group in values.keys() - {"base"}:
        wanted = set(values[group]) - ({"seed"} if group == "data" else set())  # --seed is the training's
        values[group] |= {name: given[name] for name in wanted if given.get(name) is not None}
    return RunSettings.of(values).override(given.get("changes") or ())


ModelName = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="FOLDER|RUN",
        help="A model of your own: the folder that save_pretrained wrote, or a run, its directory or the beginning of "
        "its name in the store.",
    ),
]
TextCount = Annotated[int, typer.Option("--texts", min=1, help="So many test texts are explained, drawn by the seed.")]
Explainers = Annotated[
    str | None,
    typer.Option("--by", metavar="NAME,…", help="By which explainers (see `heedful explainers list`)."),
]
Metrics = Annotated[
    str | None,
    typer.Option(
        "--metrics",
        metavar="NAME,…",
        help="Which metrics (docs/metrics.md); default: all that can be had, but naopc of a model, and sensitivity.",
    ),
]
How = Annotated[
    str | None,
    typer.Option(
        "--how", help="How units are taken away: attention, delete or mask; default: the first that the model offers."
    ),
]
Truncate = Annotated[
    bool, typer.Option("--truncate", help="Read only the beginning of texts that are too long for the model.")
]

Threads = Annotated[
    int | None, typer.Option("--threads", min=1, help="Threads of torch while the model reads; default: 1.")
]

Most = Annotated[
    int | None,
    typer.Option(
        "--most",
        min=1,
        help="So many words of changed texts the model reads at most; what takes more is refused before it begins. "
        "Default: 100,000,000.",
    ),
]


def names_of(given: str | None) -> list[str] | None:
    """Names between commas; None where none is given."""
    return None if given is None else [name.strip() for name in given.split(",") if name.strip()]


TRACES = (".parquet", ".safetensors")


def is_trace_folder(place: Path) -> bool:
    """Whether a folder is a trace in shards, or was begun to be one."""
    return any((place / name).is_file() for name in ("plan.json", "trace.json"))


def read_trace(place: Path) -> "Trace | TraceFolder":
    """A trace file, or a folder of shards, which stays on disk."""
    from heedful.trace_folders import TraceFolder
    from heedful.traces import Trace

    return TraceFolder(place) if place.is_dir() else Trace.load(place)


def find_model(name: str, store: Path, settings: "RunSettings") -> "Path | Run":
    """The folder of a transformer, which needs data of its own, or a run."""
    from heedful.config import RunSettings

    place = Path(name)
    if is_folder(place) and not is_file(place / MANIFEST):
        if settings.data.source == RunSettings().data.source:
            raise typer.BadParameter("give DATA, texts with labels, beside --model")
        return place
    if is_file(place) and place.suffix in TRACES:
        raise StoreError(
            f"'{name}' is a trace and no model. Its explanations are measured by: heedful faithfulness --model {name}."
        )
    try:
        return find_run(name, store)
    except StoreError as error:
        file = " (it is a file)" if is_file(place) else ""
        raise StoreError(
            f"There is no folder '{name}'{file} with a model. Give the folder that save_pretrained wrote, or a run. "
            f"{error}"
        ) from error


def find_run(name: str, store: Path) -> "Run":
    """The run in that directory; where there is none, the run whose name begins so, in the store or in its folder."""
    from heedful.pipeline import Run

    place = Path(name)
    if is_file(place / MANIFEST):
        return Run(place)
    if name in {"", "."} or (place.is_absolute() and is_folder(place)):
        raise StoreError(
            f"'{name}' is not a run: there is no {MANIFEST} in it. Give the directory of a run, or the beginning of "
            "its name in the store (`heedful runs list`)."
        )
    root = place.parent if len(place.parts) > 1 else store
    return Run(Store(root).resolve(place.name))


def print_lines(content: object, lines: Iterable[str], as_json: bool) -> None:
    """The content as JSON, or what people read of it."""
    if as_json:
        print_json(content)
    else:
        for line in lines:
            print(line)


def show_page(page: "Page", as_json: bool, content: object = None, *, everything: bool = True) -> None:
    """A page on the terminal, its answer alone or everything, or as JSON: its own payload, or what is given."""
    from heedful.report.page import payload
    from heedful.report.terminal import print_page

    if as_json:
        print_json(payload(page) if content is None else content)
    else:
        print_page(page, everything=everything)


def print_json(value: object) -> None:
    """Strict JSON: what is not a number is null."""
    from heedful.report import plain

    print(json.dumps(plain(value), indent=2, ensure_ascii=False, default=str, allow_nan=False))
