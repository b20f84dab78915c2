"""`heedful audit`, `train`, `explain`, `erase`, `attack`: one model, its attention, and when decisions flip."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.options import (
    DATA,
    FILES,
    MODEL,
    AllUnits,
    AllVerdicts,
    Explainers,
    Fresh,
    How,
    Json,
    Metrics,
    ModelName,
    Most,
    On,
    ShardWorkers,
    StoreRoot,
    TablesOut,
    TextCount,
    Threads,
    Truncate,
    find_model,
    find_run,
    names_of,
    print_json,
    print_lines,
    read_trace,
    show_page,
    with_settings,
)

if TYPE_CHECKING:
    from heedful.config import RunSettings
    from heedful.pipeline import Run
    from heedful.report.page import Page
    from heedful.studies.foreign import ForeignAudit


@with_settings(**DATA, **MODEL, **FILES)
def audit(
    settings: "RunSettings",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Where the report goes; default: the run.")] = None,
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
        int | None,
        typer.Option(
            "--workers", "-j", min=1, help="Processes that try other λ; default: by cores, and one for little work."
        ),
    ] = None,
    model: ModelName = None,
    texts: TextCount = 200,
    by: Explainers = None,
    metrics: Metrics = None,
    how: How = None,
    truncate: Truncate = False,
    threads: Threads = None,
    most: Most = None,
    figures: Annotated[
        str, typer.Option("--figures", help="Formats of the figures beside the report: svg, pdf, png, by commas.")
    ] = "svg",
    everything: AllVerdicts = False,
    as_json: Json = False,
) -> None:
    """Train on the data, compare what is attended to with what is used, try other λ, and write a report.

    With --model nothing is trained: a model of your own is examined on the test texts, and explanations of many kinds
    are compared. --texts, --by, --metrics, --how, --truncate, --threads and --most are for
    such a model.
    """
    formats = names_of(figures) or []
    if model is not None:
        limits = {"figures": formats, "texts": texts, "truncate": truncate, "threads": threads}
        limits |= {"most": most} if most else {}
        page = _audit_model(settings, model, store, out, limits, by=by, metrics=metrics, how=how).page
        show_page(page, as_json, everything=everything)
        return
    from heedful.cli.progress import AuditProgress
    from heedful.pipeline import read_corpus
    from heedful.store import Store
    from heedful.studies.audit import audit as run_audit

    corpus = read_corpus(settings)
    _print_notes(corpus.notices)
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
            figures=formats,
            watch=bar.watch,
        )
    show_page(done.page, as_json, everything=everything)


def _audit_model(
    settings: "RunSettings",
    model: str,
    store: Path,
    out: Path | None,
    limits: dict[str, Any],
    **chosen: str | None,
) -> "ForeignAudit":
    """Examine a model of the user's own."""
    from heedful.cli.progress import stages
    from heedful.store import Store
    from heedful.studies.audit import audit as run_audit

    _refuse_training(settings)
    found = find_model(model, store, settings)
    with stages() as watch:
        return run_audit(
            settings,
            Store(store),
            model=found,
            out=out,
            watch=watch,
            by=names_of(chosen["by"]),
            metrics=names_of(chosen["metrics"]),
            how=chosen["how"],
            **limits,
        )


def _refuse_training(settings: "RunSettings") -> None:
    """Options of a training mean nothing where none takes place."""
    from heedful.config import RunSettings
    from heedful.errors import ConfigError

    usual, given = (one.model_dump(include={"model", "training"}) for one in (RunSettings(), settings))
    given["training"]["seed"] = usual["training"]["seed"]
    other = [name for group in usual for name in usual[group] if usual[group][name] != given[group][name]]
    if other:
        raise ConfigError(
            f"With --model nothing is trained, so that {', '.join(other)} cannot be set. Leave it away, or --model."
        )


@with_settings(**DATA, **MODEL, **FILES)
def train(
    settings: "RunSettings", store: StoreRoot = Path("runs"), fresh: Fresh = False, as_json: Json = False
) -> None:
    """Train a classifier and keep it, with its trace and token scores, as a run."""
    from heedful.cli.progress import ProgressBar
    from heedful.pipeline import read_corpus, run
    from heedful.report.terminal import printable
    from heedful.store import Store
    from heedful.studies.wording import accuracy_words

    corpus = read_corpus(settings)
    _print_notes(corpus.notices)
    with ProgressBar(settings.training.epochs, title=f"training on {printable(corpus.name)}") as bar:
        done = run(settings, Store(store), corpus=corpus, observers=[bar], fresh=fresh)
    notices = done.notices(corpus)
    _print_notes(notices[len(corpus.notices) :])
    said = f"test accuracy {accuracy_words(done.metrics)} at epoch {done.metrics['best_epoch']}"
    print_lines({"run": done.path, **done.manifest, "notices": notices}, [said, f"run {done.path}"], as_json)


def _print_notes(notices: Iterable[str]) -> None:
    """What was done to the data, on stderr: standard output is for results."""
    from heedful.report.terminal import printable

    for notice in notices:
        print(f"note: {printable(notice)}", file=sys.stderr)


def explain(
    text: Annotated[str, typer.Argument(help="The text to explain; - reads standard input.")],
    run: Annotated[str, typer.Option("--run", help="A run: its directory, or the beginning of its name in the store.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Write it instead: a table (.csv, .parquet, .tex), a picture (.svg, .pdf, .png), a page (.html), an "
            "explanation (.jsonl, or .eraser.jsonl in ERASER's form).",
        ),
    ] = None,
    everything: AllUnits = False,
    store: StoreRoot = Path("runs"),
    as_json: Json = False,
) -> None:
    """Show what a trained model attends to and what it uses in a text."""
    from heedful.cli.text_views import print_explanation
    from heedful.studies.explain import explain as explain_text

    explanation = explain_text(find_run(run, store).model(), _given(text))
    if out is not None:
        explanation.save(out)
    elif as_json:
        print_json(explanation.summary())
    else:
        print_explanation(explanation, everything=everything)


def erase(
    text: Annotated[str | None, typer.Argument(help="The text; - reads standard input.")] = None,
    run: Annotated[
        str | None, typer.Option("--run", help="A run: its directory, or the beginning of its name in the store.")
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            "--trace", help="A trace file (.parquet, .safetensors), or a folder of shards, instead of a text."
        ),
    ] = None,
    inputs: Annotated[
        str | None,
        typer.Option("--input", help="Units leave the text and it is read again: delete, or mask by the unknown word."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Draws random orders; default: the run's seed, 0 for a trace.")
    ] = None,
    on: On = "local",
    workers: ShardWorkers = 1,
    out: TablesOut = None,
    everything: AllUnits = False,
    store: StoreRoot = Path("runs"),
    as_json: Json = False,
) -> None:
    """Erase attention weights along each ranking until the decision flips, beside the provably smallest set.

    With TEXT and --run, one text; with --run alone, the test split of that run; with --trace, a trace of any model.
    With --input and --run, words leave the text beside their weights: on the TEXT, or on 100 test texts of the run.
    --on and --workers are for a trace in shards, as `heedful trace` writes it.
    """
    shared = on != "local" or workers != 1
    if shared and (trace is None or not trace.is_dir()):
        raise typer.BadParameter("--on and --workers are for a trace in shards: give its folder by --trace")
    if text is not None and run is not None and trace is None:
        if out is not None:
            raise typer.BadParameter("--out is for the tables of many texts; of one text --json prints everything")
        from heedful.cli.text_views import print_erased
        from heedful.studies.explain import erase_text

        found = find_run(run, store)
        erased = erase_text(found.model(), _given(text), inputs=inputs, seed=_drawn(seed, found))
        if as_json:
            print_json(erased.summary())
        else:
            print_erased(erased, everything=everything)
    elif inputs is not None:
        if text is not None or run is None or trace is not None:
            raise typer.BadParameter("--input needs a model to read again: give --run, with or without a TEXT")
        _show(_erase_inputs(run, store, inputs), out, f"-{inputs}", as_json)
    elif text is None and (run is None) != (trace is None):
        page = _erase_shards(trace, seed, on, workers) if trace and trace.is_dir() else None
        _show(page or _erase_trace(run, store, trace, seed), out, "", as_json)
    else:
        raise typer.BadParameter("give a TEXT with --run, or --run alone, or --trace alone")


def attack(
    text: Annotated[
        str | None, typer.Argument(help="The text, with --run; - reads standard input. Without --run: a run.")
    ] = None,
    run: Annotated[
        str | None, typer.Option("--run", help="A run: its directory, or the beginning of its name in the store.")
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option("--trace", help="A trace file (.parquet, .safetensors), or a folder of shards, instead of a run."),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(help="How far the output may move, as |Δp| (total variation); by default not at all."),
    ] = None,
    floor: Annotated[float | None, typer.Option(help="The least weight of every unit; by default 0.")] = None,
    without_top: Annotated[
        int | None, typer.Option("--without-top", help="So many most attended units get nothing; by default 0.")
    ] = None,
    determined: Annotated[
        bool,
        typer.Option("--determined", help="Of a RUN also: what one attention for the whole corpus could do; minutes."),
    ] = False,
    words: Annotated[
        int,
        typer.Option(min=1, help="With --determined: so many words are asked about, seconds each; all if fewer."),
    ] = 12,
    shuffles: Annotated[int, typer.Option(help="How often the weights of a text are dealt out anew.")] = 100,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Draws shuffles; default: the run's seed, 0 for a trace.")
    ] = None,
    out: TablesOut = None,
    everything: AllUnits = False,
    store: StoreRoot = Path("runs"),
    as_json: Json = False,
) -> None:
    """Find the attention farthest from the model's own that gives the same output, exactly, and shuffle the weights.

    With TEXT and --run, one text; with a RUN, its test split; with --trace, a trace of any model. Of many texts four
    kinds of other weights are looked for, unless --epsilon, --floor or --without-top ask for one. With --determined it
    is also asked how far the outputs of the training texts determine the attention scores of words.
    """
    if text is not None and run is None and trace is None:
        text, run = None, text
    if (run is None) == (trace is None) or (text is not None and run is None):
        raise typer.BadParameter("give a TEXT with --run, or a RUN alone, or --trace alone")
    if text is not None and out is not None:
        raise typer.BadParameter("--out is for the tables of many texts; of one text --json prints everything")
    if determined and (run is None or text is not None):
        raise typer.BadParameter("--determined is of a model and its training texts: give a RUN alone")
    from heedful.cli.text_views import print_attacked
    from heedful.studies.attack import Kind, attack_text, attack_trace

    given = epsilon is not None or floor is not None or without_top is not None
    asked = Kind.asked(epsilon or 0.0, floor or 0.0, without_top or 0) if given else None
    if run is None:
        page = attack_trace(read_trace(trace or Path()), seed=seed or 0, shuffles=shuffles, asked=asked)
        _show(page, out, "", as_json)
        return
    found = find_run(run, store)
    drawn = _drawn(seed, found)
    if text is None:
        unit = found.settings.model.unit
        page = attack_trace(found.trace(), seed=drawn, shuffles=shuffles, asked=asked, unit=unit)
        _show(_with_determined(page, found, words, drawn) if determined else page, out, "", as_json)
        return
    attacked = attack_text(found.model(), _given(text), asked=asked, shuffles=shuffles, seed=drawn)
    if as_json:
        print_json(attacked.summary())
    else:
        print_attacked(attacked, everything=everything)


def _with_determined(page: "Page", run: "Run", words: int, seed: int) -> "Page":
    from dataclasses import replace

    from heedful.cli.progress import counting
    from heedful.pipeline import read_corpus
    from heedful.studies.one_attention import determined_sections

    with counting("asking about words") as watch:
        sections = determined_sections(
            run.model(), read_corpus(run.settings), run.table("tokens"), words=words, seed=seed, watch=watch
        )
    return replace(page, sections=[*page.sections, *sections])


def _given(text: str) -> str:
    return sys.stdin.read() if text == "-" else text


def _erase_inputs(name: str, store: Path, mode: str) -> "Page":
    from heedful.cli.progress import counting
    from heedful.pipeline import read_corpus
    from heedful.studies.erase import erase_inputs

    run = find_run(name, store)
    with counting("reading changed texts") as watch:
        return erase_inputs(run, read_corpus(run.settings), mode, watch=watch)


def _erase_trace(name: str | None, store: Path, file: Path | None, seed: int | None) -> "Page":
    from heedful.studies.erase import erase_trace
    from heedful.traces import Trace

    if name is None:
        return erase_trace(Trace.load(file or Path()), seed=seed or 0)
    run = find_run(name, store)
    return erase_trace(run.trace(), seed=_drawn(seed, run))


def _erase_shards(folder: Path, seed: int | None, on: str, workers: int) -> "Page":
    from heedful.cli.progress import counting
    from heedful.studies.erase import erase_trace
    from heedful.trace_folders import TraceFolder

    with counting("erasing") as watch:
        return erase_trace(TraceFolder(folder), seed=seed or 0, on=on, workers=workers, watch=watch)


def _drawn(seed: int | None, run: "Run") -> int:
    """The seed that is given, or else the run's."""
    return run.settings.training.seed if seed is None else seed


def _show(page: "Page", out: Path | None, ending: str, as_json: bool) -> None:
    """Save tables and pictures where that is asked for, and print."""
    from heedful.report.exports import save_tables

    if out is not None:
        save_tables({f"{name}{ending}": table for name, table in page.tables().items()}, out)
        for picture in page.pictures():
            picture.save(out)
    show_page(page, as_json)
