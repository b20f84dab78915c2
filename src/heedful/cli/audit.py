"""`heedful audit` and `heedful train`."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.options import DATA, FILES, MODEL, Fresh, Json, StoreRoot, print_json, with_settings

if TYPE_CHECKING:
    from heedful.config import RunSettings


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
        int | None, typer.Option("--workers", "-j", min=1, help="Processes that try other λ; default: by cores.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Train on the data, compare what is attended to with what is used, try other λ, and write a report."""
    from heedful.cli.progress import AuditProgress
    from heedful.pipeline import read_corpus
    from heedful.report.terminal import print_page
    from heedful.store import Store
    from heedful.studies.audit import audit as run_audit

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
        print_page(done.page)


@with_settings(**DATA, **MODEL, **FILES)
def train(
    settings: "RunSettings", store: StoreRoot = Path("runs"), fresh: Fresh = False, as_json: Json = False
) -> None:
    """Train a classifier and keep it, with its trace and token scores, as a run."""
    from heedful.cli.progress import ProgressBar
    from heedful.pipeline import read_corpus, run
    from heedful.report.terminal import printable
    from heedful.store import Store
    from heedful.studies.audit import accuracy_words

    corpus = read_corpus(settings)
    _print_notes(corpus.notices)
    with ProgressBar(settings.training.epochs, title=f"training on {printable(corpus.name)}") as bar:
        done = run(settings, Store(store), corpus=corpus, observers=[bar], fresh=fresh)
    notices = done.notices(corpus)
    _print_notes(notices[len(corpus.notices) :])
    if as_json:
        print_json({"run": done.path, **done.manifest, "notices": notices})
    else:
        print(f"test accuracy {accuracy_words(done.metrics)} at epoch {done.metrics['best_epoch']}")
        print(f"run {done.path}")


def _print_notes(notices: Iterable[str]) -> None:
    """What was done to the data, on stderr: standard output is for results."""
    from heedful.report.terminal import printable

    for notice in notices:
        print(f"note: {printable(notice)}", file=sys.stderr)
