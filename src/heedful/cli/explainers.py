"""`heedful explainers`: by what texts can be explained."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.options import Json, print_json, print_lines

if TYPE_CHECKING:
    from heedful.explainers import Explainer

explainers_app = typer.Typer(help="By what texts can be explained.", no_args_is_help=True, rich_markup_mode=None)


@explainers_app.command("list")
def list_explainers(as_json: Json = False) -> None:
    """All explainers: whether they have a sign, what they need, what they are."""
    from heedful.explainers import EXPLAINERS

    rows = [_said(one) for one in EXPLAINERS.values()]
    lines = [f"{row['name']:27} {'signed' if row['signed'] else '':7} {row['words']}  ({_needs(row)})" for row in rows]
    print_lines(rows, lines, as_json)


@explainers_app.command("show")
def show_explainer(
    name: Annotated[str, typer.Argument(help="An explainer (see `heedful explainers list`).")], as_json: Json = False
) -> None:
    """What one explainer computes, who proposed it, and its options."""
    from heedful.explainers import find_explainer

    found = _said(find_explainer(name))
    if as_json:
        print_json(found)
        return
    for key, value in found.items():
        print(f"{key:9} {', '.join(value) if isinstance(value, list) else _word(value)}")


def _needs(row: dict[str, Any]) -> str:
    return ", ".join(filter(None, (row["needs"], row["extra"])))


def _word(value: Any) -> str:
    known: dict[Any, str] = {True: "yes", False: "no", None: "–"}
    return known.get(value, str(value))


def _said(one: "Explainer") -> dict[str, Any]:
    """An explainer as plain values."""
    in_name = f"{one.name.partition('@')[0]}@{'.'.join(f'<{option}>' for option in one.at)}" if one.at else None
    return {
        "name": one.name,
        "words": one.words,
        "formula": one.formula,
        "source": one.source,
        "signed": one.signed,
        "family": one.family,
        "needs": one.needs,
        "extra": one.extra or None,
        "options": list(one.known_options),
        "also": in_name,
    }
