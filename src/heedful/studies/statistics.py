"""Sizes, lengths and classes of a corpus."""

from typing import Any

from rich.console import Console
from rich.table import Table

from heedful.text.corpus import Corpus


def corpus_statistics(corpus: Corpus) -> dict[str, Any]:
    """The columns of Sun & Lu's Table 1, and what was noticed while reading."""
    return {
        "corpus": corpus.name,
        "classes": list(corpus.class_names),
        "vocabulary": len(corpus.vocabulary),
        "splits": {
            name: {
                "texts": len(split),
                "per_class": split.labels.bincount(minlength=corpus.classes).tolist(),
                "mean_length": round(float(split.lengths.double().mean()), 1),
                "longest": int(split.lengths.max()),
                "unknown_tokens": round(float((split.tokens.numbers == 0).double().mean()), 4),
            }
            for name, split in corpus.splits().items()
        },
        "notices": list(corpus.notices),
    }


def print_statistics(found: dict[str, Any]) -> None:
    console = Console()
    table = Table(title=f"{found['corpus']}: vocabulary {found['vocabulary']:,} (training split)", title_justify="left")
    for column in ("split", "texts", " / ".join(found["classes"]), "mean length", "longest", "unknown"):
        table.add_column(column, justify="left" if column == "split" else "right")
    for name, row in found["splits"].items():
        counts = " / ".join(str(count) for count in row["per_class"])
        table.add_row(
            name,
            f"{row['texts']:,}",
            counts,
            f"{row['mean_length']:.1f}",
            f"{row['longest']:,}",
            f"{row['unknown_tokens']:.1%}",
        )
    console.print(table)
    for notice in found["notices"]:
        console.print(f"note: {notice}", markup=False)
