"""What stands at the end of each `--help`: examples that run as they are written, and what exit codes mean."""

from collections.abc import Iterator, Mapping

import typer
from typer.models import CommandInfo

EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "": ("heedful audit", "heedful audit reviews.csv --text-column review", "heedful doctor"),
    "audit": ("heedful audit reviews.csv --epochs 20", "heedful audit reviews.csv --model ./my-model --texts 100"),
    "train": ("heedful train sst --encoder lstm --seed 1", "heedful train reviews.csv --set model.vectors=word2vec"),
    "explain": (
        'heedful explain "a good film" --run 3c57',
        "heedful explain - --run 3c57 --out explained.html < review.txt",
    ),
    "trace": ("heedful trace 3c57 --split test --out traces/test", "heedful trace 3c57 --workers 2"),
    "erase": ('heedful erase "a good film" --run 3c57', "heedful erase --trace trace.parquet --out tables/"),
    "attack": ("heedful attack 3c57 --out tables/", 'heedful attack "a good film" --run 3c57 --epsilon 0.05'),
    "faithfulness": (
        "heedful faithfulness reviews.csv --model ./my-model --by shapley,lime",
        "heedful faithfulness --model trace.parquet",
        "heedful faithfulness --watch",
    ),
    "report": ("heedful report 3c57 f2cd --out both.html", "heedful report sun2020"),
    "serve": ("heedful serve 3c57 --open", "heedful serve 3c57 ./my-model --port 8080"),
    "reproduce": ("heedful reproduce --list", "heedful reproduce sun2020 --table 2 --quick"),
    "sweep": ("heedful sweep plan.toml --dry-run", "heedful sweep plan.toml --on ray"),
    "calibrate": ("heedful calibrate --seeds 1 --no-trained",),
    "doctor": ("heedful doctor --json",),
    "data": ("heedful data list",),
    "data list": ("heedful data list --json",),
    "data stats": ("heedful data stats reviews.csv",),
    "data fetch": ("heedful data fetch sst", "heedful data fetch imdb --from https://mirror.example.org/imdb"),
    "explainers": ("heedful explainers list",),
    "explainers list": ("heedful explainers list --json",),
    "explainers show": ("heedful explainers show integrated_gradients",),
    "runs": ("heedful runs list",),
    "runs list": (
        "heedful runs list --where model.encoder=lstm",
        "heedful runs list --out runs.csv",
    ),
    "runs show": ("heedful runs show 3c57",),
    "runs diff": ("heedful runs diff 3c57 f2cd",),
    "runs rm": ("heedful runs rm 3c57 f2cd",),
    "runs gc": ("heedful runs gc --dry-run",),
    "runs verify": ("heedful runs verify",),
    "zoo": ("heedful zoo list",),
    "zoo list": ("heedful zoo list --json",),
    "zoo show": ("heedful zoo show bahdanau",),
    "zoo train": ("heedful zoo train all --quick",),
    "zoo compare": ("heedful zoo compare --out zoo/",),
}
"""By command; 3c57 stands for a run, ./my-model for a folder that save_pretrained wrote."""

SHORT: Mapping[str, str] = {
    "audit": "Train, test whether attention explains, and write a report.",
    "train": "Train a classifier and keep it as a run.",
    "explain": "What a trained model attends to and uses in a text.",
    "erase": "Erase attention weights until the decision flips.",
    "attack": "Other attention with the same output, exactly.",
    "faithfulness": "Measure explanations of a model by many metrics.",
    "report": "Write the report of runs, a sweep or a study again.",
    "serve": "Serve a page to play with texts.",
    "reproduce": "Run a paper again, beside its printed numbers.",
    "sweep": "Run what is missing of a plan, on all cores or on Ray.",
    "calibrate": "How often the answer is wrong on worlds of known truth.",
    "doctor": "What this installation has.",
    "data fetch": "Download a corpus into the data folder.",
    "explainers list": "All explainers, and what they need.",
    "explainers show": "One explainer: what it computes, and its options.",
    "runs diff": "The settings and metrics in which two runs differ.",
    "zoo": "Every mechanism of attention on tasks of known answers.",
    "zoo show": "The card of a member, or what a task asks.",
    "zoo train": "Train every entrant of a task, once.",
    "zoo compare": "What is in the store, side by side.",
}
"""One line in the list of commands, where the first sentence does not fit into 80 columns."""

EXIT_CODES: Mapping[int, str] = {
    0: "done",
    1: "not done, one sentence says why; or some runs failed or are damaged",
    2: "the command was not understood",
    70: "a defect of heedful; details are in a private file that is named",
    130: "interrupted (Ctrl+C); what was finished is kept",
    141: "nobody read the output any more",
}

_VERBATIM = "\b"
"""A paragraph that begins so is not wrapped anew."""


def add_endings(app: typer.Typer, path: str = "") -> None:
    """Give every command below this one its examples, as the end of its help."""
    for name, info in _named(app):
        place = f"{path} {name}".strip()
        info.epilog, info.short_help = _examples(place), SHORT.get(place)
    for group in app.registered_groups:
        if group.typer_instance is not None and group.name:
            group.epilog, group.short_help = _examples(group.name), SHORT.get(group.name)
            add_endings(group.typer_instance, group.name)


def _named(app: typer.Typer) -> Iterator[tuple[str, CommandInfo]]:
    for info in app.registered_commands:
        assert info.callback is not None
        yield info.name or info.callback.__name__, info


def ending() -> str:
    """Of the help of `heedful` itself."""
    codes = "\n".join(f"  {code:>3}  {words}" for code, words in EXIT_CODES.items())
    return f"{_examples('')}\n\n{_VERBATIM}\nExit codes:\n{codes}"


def _examples(path: str) -> str:
    lines = EXAMPLES.get(path, ())
    title = "Examples:" if len(lines) > 1 else "Example:"
    return "\n".join([_VERBATIM, title, *(f"  {line}" for line in lines)]) if lines else ""
