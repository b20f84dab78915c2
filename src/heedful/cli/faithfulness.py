"""`heedful faithfulness`: explanations of a model by metrics, and which metrics to trust."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.options import (
    DATA,
    FILES,
    TRACES,
    Explainers,
    How,
    Json,
    Metrics,
    ModelName,
    Most,
    StoreRoot,
    TablesOut,
    TextCount,
    Threads,
    Truncate,
    find_model,
    is_trace_folder,
    names_of,
    read_trace,
    show_page,
    with_settings,
)
from heedful.files import is_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from heedful.config import RunSettings
    from heedful.report.page import Page
    from heedful.studies.faithfulness import Suite, Wanted, Watch


@with_settings(**DATA, **FILES)
def faithfulness(
    settings: "RunSettings",
    model: ModelName = None,
    by: Explainers = None,
    metrics: Metrics = None,
    texts: TextCount = 200,
    how: How = None,
    explanations: Annotated[
        list[Path] | None,
        typer.Option(
            "--explanations", metavar="FILE", help="A file of explanations: Parquet, JSON lines (also ERASER's), JSON."
        ),
    ] = None,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="Which metrics know the truth: on planted worlds, or, with DATA and --model, on a file of your own "
            "with a column `important` that marks the words that truly matter.",
        ),
    ] = False,
    truncate: Truncate = False,
    threads: Threads = None,
    most: Most = None,
    seed: Annotated[int, typer.Option(min=0, help="Draws texts, and what metrics and explainers draw.")] = 0,
    out: TablesOut = None,
    store: StoreRoot = Path("runs"),
    as_json: Json = False,
) -> None:
    """Explain test texts of a model in many ways and measure how faithful each explanation is, with intervals.

    --model is a folder of transformers, a run, or a trace, a file or a folder of shards (then without DATA). Where the
    file of DATA has a column `rationales`, spans [start, end) of words that people marked, plausibility is measured
    too. With --watch it is asked of the metrics themselves whether they can be trusted.
    """
    from heedful.cli.progress import stages
    from heedful.studies.faithfulness import Wanted

    wanted = Wanted(
        by=names_of(by),
        metrics=names_of(metrics),
        how=how,
        files=explanations or (),
        texts=texts,
        seed=seed,
        **({"most": most} if most else {}),
    )
    if watch:
        if explanations:
            raise typer.BadParameter("--watch is of metrics and explainers: leave --explanations away")
        with stages() as told:
            page = _watched(settings, model, store, wanted, told, truncate=truncate, threads=threads)
        _show(page, page.tables(), out, as_json)
        return
    if model is None:
        raise typer.BadParameter("give --model, a folder, a run or a trace file; or --watch alone")
    with stages() as told:
        suite = _measured(settings, model, store, wanted, told, truncate=truncate, threads=threads)
    if out is not None:
        suite.compared.save_texts(out)
    _show(suite.page, {**suite.page.tables(), **suite.tables}, out, as_json)


def _measured(settings: "RunSettings", model: str, store: Path, wanted: "Wanted", told: "Watch", **how: Any) -> "Suite":
    from heedful.pipeline import read_corpus
    from heedful.studies import faithfulness as study
    from heedful.studies.models import subject_of
    from heedful.studies.rationales import read_marked, texts_by_id

    place, data = Path(model), settings.data
    if (is_file(place) and place.suffix in TRACES) or is_trace_folder(place):
        if data.source != type(data)().source:
            raise typer.BadParameter("a trace has its own texts: leave DATA away")
        return study.measure_trace(read_trace(place), wanted, watch=told, name=place.name)
    subject = subject_of(find_model(model, store, settings), **how)
    marked = read_marked(data.source, text_column=data.text_column, encoding=data.encoding)
    named = texts_by_id(data.source, text_column=data.text_column, encoding=data.encoding) if wanted.files else None
    return study.measure_subject(read_corpus(settings), subject, wanted, marked=marked, named=named, watch=told)


def _watched(
    settings: "RunSettings", model: str | None, store: Path, wanted: "Wanted", told: "Watch", **how: Any
) -> "Page":
    from heedful.errors import DataError
    from heedful.studies.models import subject_of
    from heedful.studies.rationales import IMPORTANT, read_marked
    from heedful.studies.watching import watch_metrics, watch_on

    if model is None:
        about = {name: getattr(wanted, name) for name in ("metrics", "by", "how", "texts", "seed")}
        return watch_metrics(**about, watch=told)
    found, data = find_model(model, store, settings), settings.data
    marked = read_marked(data.source, IMPORTANT, text_column=data.text_column, encoding=data.encoding)
    if marked is None:
        raise DataError(
            f"'{data.source}' must be a file with a column `important`: for each text a list of the words that truly "
            "matter, or of spans [start, end) of them."
        )
    return watch_on(subject_of(found, **how), marked, wanted, name=Path(data.source).name, watch=told)


def _show(page: "Page", tables: "Mapping[str, pd.DataFrame]", out: Path | None, as_json: bool) -> None:
    """Save tables and pictures where that is asked for, and print."""
    from heedful.report.exports import save_tables

    if out is not None:
        save_tables(tables, out)
        for picture in page.pictures():
            picture.save(out)
    show_page(page, as_json)
