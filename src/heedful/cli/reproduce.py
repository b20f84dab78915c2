"""`heedful reproduce`: a paper's tables, figures and claims, run again."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import Json, StoreRoot, Workers, print_json
from heedful.errors import ConfigError


def reproduce(
    paper: Annotated[
        str | None, typer.Argument(help="The study of a paper: sun2020 or serrano2019; --list shows what they have.")
    ] = None,
    tables: Annotated[
        list[str] | None, typer.Option("--table", help="Only this table, by its number or name; may be repeated.")
    ] = None,
    figures: Annotated[
        list[str] | None,
        typer.Option("--figure", help="Only this figure, such as 3, S14, minimum or all; may be repeated."),
    ] = None,
    claims: Annotated[bool, typer.Option("--claims", help="Only the verdicts on the paper's claims.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Minutes instead of hours: fewer data and settings.")] = False,
    datasets: Annotated[
        str | None, typer.Option("--datasets", help="Names or files, with commas between; default: those of the study.")
    ] = None,
    models: Annotated[
        str | None, typer.Option("--models", help="The paper's names, with commas between, such as DP,AD.")
    ] = None,
    scales: Annotated[str | None, typer.Option("--scales", help="Values of λ, with commas between; sun2020.")] = None,
    seeds: Annotated[int | None, typer.Option("--seeds", help="Runs per model and data set.")] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where tables, figures and the page go.")] = Path("study"),
    on: Annotated[str, typer.Option("--on", help="local, ray, or ray://host:port.")] = "local",
    workers: Workers = None,
    store: StoreRoot = Path("runs"),
    listing: Annotated[bool, typer.Option("--list", help="Show every study with its tables, figures, claims.")] = False,
    as_json: Json = False,
) -> None:
    """Run a paper again: its tables beside the printed numbers, its figures, and verdicts on its claims.

    Without --table, --figure or --claims all of them. A study that was stopped goes on when it is called again.
    """
    from heedful.cli.progress import SweepProgress
    from heedful.report.terminal import print_page
    from heedful.store import Store
    from heedful.studies.study import find_study, want
    from heedful.studies.study import reproduce as run_study

    if listing:
        _list(paper, as_json)
        return
    if paper is None:
        raise typer.BadParameter("name a study, such as sun2020, or give --list to see all of them")
    study = find_study(paper)
    wanted = want(
        study,
        tables=_words(tables or ()),
        figures=_words(figures or ()),
        claims=claims,
        quick=quick,
        datasets=None if datasets is None else _words([datasets]),
        models=None if models is None else _words([models]),
        scales=None if scales is None else [_number(word) for word in _words([scales])],
        seeds=seeds,
    )
    with SweepProgress(study.name) as watch:
        done = run_study(study, wanted, Store(store), out, on=on, workers=workers, watch=watch)
    if as_json:
        print_json(done.summary())
    else:
        print_page(done.page)
    if done.failures:
        raise typer.Exit(1)


def _list(paper: str | None, as_json: bool) -> None:
    """Every study, or one, with what it has."""
    from heedful.claims import CLAIMS
    from heedful.studies.study import STUDIES, find_study

    studies = [find_study(name) for name in ([paper] if paper else STUDIES)]
    parts: dict[str, dict[str, dict[str, str]]] = {
        study.name: {
            "models": dict.fromkeys(study.models, ""),
            "datasets": dict.fromkeys(study.whole.datasets, ""),
            "tables": {table.name: "" for table in study.tables if not table.comes_with},
            "figures": {figure.name: figure.caption for figure in study.figures},
            "claims": {name: CLAIMS[name].statement for name in study.claims},
        }
        for study in studies
    }
    if as_json:
        print_json([{"name": study.name, "title": study.title, **parts[study.name]} for study in studies])
        return
    for study in studies:
        print(f"{study.name}  {study.title}")
        for part, names in parts[study.name].items():
            print(f"  {part}  {', '.join(names)}" if not any(names.values()) else f"  {part}")
            print("".join(f"    {name:8} {said}\n" for name, said in names.items() if said), end="")


def _words(texts: Sequence[str]) -> list[str]:
    return [word.strip() for text in texts for word in text.split(",") if word.strip()]


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise ConfigError(f"λ is a number above 0, not '{word}'.") from None
