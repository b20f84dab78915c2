"""The command line: parse, call one public function, print. Nothing heavy is imported before it is needed."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.commands.calibrate import calibrate
from heedful.commands.data import fetch_data
from heedful.commands.erase import erase
from heedful.commands.lookup import find_run
from heedful.commands.options import AllUnits, Json, StoreRoot, print_json
from heedful.commands.reproduce import reproduce
from heedful.commands.runs import runs_app
from heedful.commands.sweep import sweep
from heedful.errors import HeedfulError
from heedful.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable

    from heedful.commands.progress import ProgressBar
    from heedful.config import RunSettings
    from heedful.text.corpus import Corpus

app = typer.Typer(
    help="Can you trust attention as an explanation of this text classifier, on this data?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: rich would double the time that --help takes
    context_settings={"help_option_names": ["-h", "--help"]},
)
data = typer.Typer(help="The corpora at hand.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(data, name="data")
app.add_typer(runs_app, name="runs")

UNREAD = 141
"""The exit code where nobody reads the output any more: 128 and the number of the signal of a closed pipe."""

Data = Annotated[
    str | None, typer.Argument(help="A corpus name (see `heedful data list`) or a CSV, TSV, JSON or Parquet file.")
]
Config = Annotated[Path | None, typer.Option("--config", help="A TOML or JSON file of settings.")]
Changes = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Change a setting, e.g. model.score_scale=100.")
]
Structure = Annotated[str | None, typer.Option(help="flat or hierarchical: attention to words, or to sentences too.")]
Attention = Annotated[str | None, typer.Option(help="dot or additive.")]
Encoder = Annotated[str | None, typer.Option(help="none, affine, lstm, gru or conv.")]
Scale = Annotated[float | None, typer.Option("--score-scale", help="λ, the divisor of the attention scores.")]
Epochs = Annotated[int | None, typer.Option(help="Passes over the training split.")]
Seed = Annotated[int | None, typer.Option(help="Draws parameters, order and dropout.")]
TextColumn = Annotated[str | None, typer.Option(help="The column that holds the text.")]
LabelColumn = Annotated[str | None, typer.Option(help="The column that holds the label.")]
SplitColumn = Annotated[
    str | None, typer.Option(help="The column that names the split; none uses no column and draws all splits.")
]
SplitValues = Annotated[
    str | None,
    typer.Option(
        metavar="SPLIT=VALUE,…",
        help="What the values of the split column mean, e.g. train=rest,dev=validate; skip=VALUE leaves rows out.",
    ),
]
MissingLabels = Annotated[
    str | None,
    typer.Option(
        metavar="skip|keep",
        help="Rows labelled NaN, null, N/A: skip leaves them out (default), keep makes a class of them.",
    ),
]
Encoding = Annotated[str | None, typer.Option(help="The file's text encoding, e.g. cp1252; default: utf-8.")]
Fresh = Annotated[bool, typer.Option(help="Compute again what is already there.")]


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        print(f"heedful {__version__}")
        raise typer.Exit


@app.command()
def audit(
    source: Data = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Where the report goes; default: the run.")] = None,
    structure: Structure = None,
    attention: Attention = None,
    encoder: Encoder = None,
    score_scale: Scale = None,
    epochs: Epochs = None,
    seed: Seed = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    split_column: SplitColumn = None,
    split_values: SplitValues = None,
    missing_labels: MissingLabels = None,
    encoding: Encoding = None,
    config: Config = None,
    changes: Changes = None,
    store: StoreRoot = Path("runs"),
    fresh: Fresh = False,
    advice: Annotated[
        bool | None,
        typer.Option(
            "--advice/--no-advice",
            help="Try λ = 1, 10 and 100, with and without a penalty on VᵀW; by default unless the data are large. "
            "Without, runs of them that are in the store are shown all the same.",
            show_default=False,
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", "-j", min=1, help="Processes that try other λ; default: by cores.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Train on the data, compare what is attended to with what is used, try other λ, and write a report."""
    from heedful.commands.progress import AuditProgress
    from heedful.pipeline import read_corpus
    from heedful.store import Store
    from heedful.studies.audit import audit as run_audit
    from heedful.studies.audit_terminal import print_audit

    settings = _settings(config, changes, locals())
    corpus = read_corpus(settings)
    with AuditProgress(settings.training.epochs, name=corpus.name) as bar:
        done = run_audit(
            settings,
            Store(store),
            out=out,
            corpus=corpus,
            observers=[bar],
            fresh=fresh,
            advice=advice,
            workers=workers,
            watch=bar.watch,
        )
    if as_json:
        print_json(done.summary())
    else:
        print_audit(done)


@app.command()
def train(
    source: Data = None,
    structure: Structure = None,
    attention: Attention = None,
    encoder: Encoder = None,
    score_scale: Scale = None,
    epochs: Epochs = None,
    seed: Seed = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    split_column: SplitColumn = None,
    split_values: SplitValues = None,
    missing_labels: MissingLabels = None,
    encoding: Encoding = None,
    config: Config = None,
    changes: Changes = None,
    store: StoreRoot = Path("runs"),
    fresh: Fresh = False,
    as_json: Json = False,
) -> None:
    """Train a classifier and keep it, with its trace and token scores, as a run."""
    from heedful.pipeline import read_corpus, run
    from heedful.store import Store
    from heedful.studies.words import accuracy_words

    settings = _settings(config, changes, locals())
    corpus = read_corpus(settings)
    _print_notes(corpus.notices)
    with _progress(settings, corpus) as bar:
        done = run(settings, Store(store), corpus=corpus, observers=[bar], fresh=fresh)
    notices = done.notices(corpus)
    _print_notes(notices[len(corpus.notices) :])
    if as_json:
        print_json({"run": str(done.path), **done.manifest, "notices": list(notices)})
    else:
        print(f"test accuracy {accuracy_words(done.metrics)} at epoch {done.metrics['best_epoch']}")
        print(f"run {done.path}")


@app.command()
def explain(
    text: Annotated[str, typer.Argument(help="The text to explain; - reads standard input.")],
    run: Annotated[str, typer.Option("--run", help="A run: its directory, or the beginning of its name in the store.")],
    everything: AllUnits = False,
    store: StoreRoot = Path("runs"),
    as_json: Json = False,
) -> None:
    """Show what a trained model attends to and what it uses in a text."""
    from heedful.studies.explain import explain as explain_text
    from heedful.studies.explain import print_explanation

    found = explain_text(find_run(run, store).model(), sys.stdin.read() if text == "-" else text)
    if as_json:
        print_json(found.summary())
    else:
        print_explanation(found, everything=everything)


@data.command("list")
def list_data(as_json: Json = False) -> None:
    """The corpora that can be named."""
    from heedful.text.datasets import DATASETS

    rows = [
        {"name": one.name, "about": one.about, "available": one.available, "file": one.needs}
        for one in DATASETS.values()
    ]
    if as_json:
        print_json(rows)
    else:
        for row in rows:
            missing = "" if row["available"] else f"  (needs {row['file']} in the data folder)"
            print(f"{row['name']:16} {row['about']}{missing}")


@data.command("stats")
def data_stats(
    source: Data = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    split_column: SplitColumn = None,
    split_values: SplitValues = None,
    missing_labels: MissingLabels = None,
    encoding: Encoding = None,
    config: Config = None,
    changes: Changes = None,
    as_json: Json = False,
) -> None:
    """Sizes, lengths and classes of a corpus."""
    from heedful.pipeline import read_corpus
    from heedful.studies.statistics import corpus_statistics, print_statistics

    found = corpus_statistics(read_corpus(_settings(config, changes, locals())))
    if as_json:
        print_json(found)
    else:
        print_statistics(found)


@app.command()
def doctor(as_json: Json = False) -> None:
    """Versions, device and data folder: what this installation has."""
    from heedful.studies.doctor import examine

    found = examine()
    if as_json:
        print_json(found)
    else:
        for name, value in found.items():
            print(f"{name:14} {value}")


app.command("erase")(erase)
app.command("calibrate")(calibrate)
app.command("sweep")(sweep)
app.command("reproduce")(reproduce)
data.command("fetch")(fetch_data)


def _settings(config: Path | None, changes: list[str] | None, given: dict[str, Any]) -> "RunSettings":
    """Defaults, then the file, then the named options, then --set."""
    from heedful.config import DataSettings, ModelSettings, RunSettings, Settings, TrainingSettings

    base = RunSettings.read(config) if config else RunSettings()
    values = base.model_dump(mode="json")
    groups: dict[str, type[Settings]] = {"data": DataSettings, "model": ModelSettings, "training": TrainingSettings}
    for group, cls in groups.items():
        wanted = set(cls.model_fields) - ({"seed"} if group == "data" else set())  # --seed is the training's
        values[group] |= {name: given[name] for name in wanted if given.get(name) is not None}
    return RunSettings.of(values).override(changes or ())


def _print_notes(notices: "Iterable[str]") -> None:
    """What was done to the data, on stderr: standard output is for results."""
    from heedful.studies.words import printable

    for notice in notices:
        print(f"note: {printable(notice)}", file=sys.stderr)


def _progress(settings: "RunSettings", corpus: "Corpus") -> "ProgressBar":
    """A bar that begins when the data are read: what is wrong with them is said without one."""
    from heedful.commands.progress import ProgressBar
    from heedful.studies.words import printable

    return ProgressBar(settings.training.epochs, title=f"training on {printable(corpus.name)}")


def main() -> None:
    """Run the command; an error the user can mend is one sentence and exit code 1.

    A reader of the output that went away, as `head` does when it has seen enough, is no error: the command ends without
    a word, with the exit code that shells give to one that a closed pipe ended.
    """
    try:
        _run()
    except BrokenPipeError:
        _end_unread()
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # typer and rich turn it into exit code 1
            _end_unread()
        raise


def _run() -> None:
    try:
        app()
    except HeedfulError as error:
        print(f"heedful: {error}", file=sys.stderr)
        sys.exit(1)
    finally:
        sys.stdout.flush()  # here, and not when the interpreter ends: that would complain of a closed pipe


def _end_unread() -> None:
    """What is still to be written goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(UNREAD)


if __name__ == "__main__":
    main()
