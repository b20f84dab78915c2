"""Tables of erasure made by hand: a few kinds of instances, as many of each as a test asks for."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

Tables = dict[str, pd.DataFrame]


def single(rows: Sequence[tuple[float, float, bool, bool]], ranking: str = "attention") -> pd.DataFrame:
    """Rows of Δα, ΔJS, whether the top unit flips, whether the other does."""
    table = pd.DataFrame(rows, columns=["delta_weight", "delta_js", "flip_top", "flip_random"])
    return table.assign(ranking=ranking, instance=range(len(rows)), units=10)


def flips(
    units: int | Sequence[int] = 10,
    mass: dict[str, float] | None = None,
    taken: float = 0.5,
    **erased: Sequence[int | None],
) -> pd.DataFrame:
    """One row per ranking and instance; `random_1` is a second order of random."""
    parts = []
    for name, counts in erased.items():
        ranking, _, order = name.partition("_")
        count = pd.array(counts, dtype="Int64")
        part = pd.DataFrame({"ranking": ranking, "order": int(order or 0), "instance": range(len(counts))})
        part = part.assign(units=units, erased=count, lead_taken=taken)
        weight = np.where(count.isna(), np.nan, (mass or {}).get(ranking, 0.5))
        parts.append(part.assign(fraction=(count / part["units"]).astype("Float64").astype(float), mass=weight))
    return pd.concat(parts, ignore_index=True)


def named(table: pd.DataFrame, model: str, dataset: str = "yelp", seed: int = 0) -> pd.DataFrame:
    """The rows of a run of HANrnn, FLANnoenc, …; what these are stands in columns of their own."""
    structure = "hierarchical" if model.startswith("HAN") else "flat"
    encoder = {"rnn": "gru", "conv": "conv", "noenc": "none"}[model.removeprefix("HAN").removeprefix("FLAN")]
    return table.assign(dataset=dataset, model=model, seed=seed, structure=structure, encoder=encoder)


def tops(*parts: tuple[int, float, float, bool, bool], ranking: str = "attention") -> Tables:
    """So many instances of each kind."""
    return {"single": single([row for count, *row in parts for _ in range(count)], ranking)}  # type: ignore[misc]


def two_tops(attention: int, product: int, gradient: int | None = None) -> Tables:
    """Of 100 decisions so many are flipped by the top unit of each ranking."""
    counts = {"attention": attention, "product": product, "gradient": attention if gradient is None else gradient}
    parts = [
        tops((count, 0.1, 0.1, True, False), (100 - count, 0.1, 0.1, False, False), ranking=ranking)["single"]
        for ranking, count in counts.items()
    ]
    return {"single": pd.concat(parts, ignore_index=True)}


def same(mass: dict[str, float] | None = None, taken: float = 0.5, **erased: int) -> Tables:
    """A hundred instances of ten units that each ranking flips after so many."""
    return {"flips": flips(mass=mass, taken=taken, **{name: [count] * 100 for name, count in erased.items()})}


def leads(**taken: float) -> Tables:
    """A hundred instances of ten units that lose such a share of their lead along each ranking."""
    tables = flips(**{name: [5] * 100 for name in taken})  # type: ignore[arg-type]
    orders = tables["ranking"] + tables["order"].map(lambda order: f"_{order}" if order else "")
    return {"flips": tables.assign(lead_taken=orders.map(taken))}


def models(table: str, seeds: int = 2, **made: Tables) -> Tables:
    """Several models, one table each, the same for every seed."""
    parts = [named(tables[table], model, seed=seed) for model, tables in made.items() for seed in range(seeds)]
    return {table: pd.concat(parts, ignore_index=True)}


def erased(count: int) -> Tables:
    return same(attention=count, gradient=count, product=count, random=count)


def rising(onset: float, count: int = 20) -> Tables:
    """So many instances in the middle of each of the first six tenths of Δα; ΔJS is (Δα − onset) / 10 + .01 nats."""
    places = [(tenth + 0.5) / 10 for tenth in range(6)]
    return tops(*((count, place, (place - onset) / 10 + 0.01, False, False) for place in places))
