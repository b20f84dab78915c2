"""Erasure of many texts for people: of a whole trace, and of words that leave the text beside their weights.

Reading changed texts again costs what tracing costs, many times over, so in a study a run is measured once and its
table stays in the store: one row per level (attention, delete, mask), ranking and text (`flips_by_level`).
"""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool

from heedful.analysis.flips import in_front
from heedful.analysis.in_shards import erased_tables
from heedful.analysis.quality import by_ranking, flip_summary, fraction_distribution, ranking_quality
from heedful.claims.scores import shows_learning
from heedful.pipeline import Run
from heedful.probes.reading import MODES, flips_by_level
from heedful.report.page import Page, PageTable, Section
from heedful.studies import measures
from heedful.studies.examine import ErasedAttention, summed_up
from heedful.studies.explain import RANKINGS
from heedful.studies.study import Material
from heedful.sweep.shards import LOCAL, erase_shards
from heedful.text.corpus import Corpus
from heedful.trace_folders import TraceFolder
from heedful.traces import Trace
from heedful.training.loop import limited_threads

TEXTS = 100
"""Test texts of a run that are read again, drawn without replacement."""

LOOKS = 20
"""At most so many times for each ranking, after sizes that grow by a factor from one unit on."""

FORMAT = 2
"""Raised when what is kept changes; part of its name."""

COMPARED_WORDS: measures.InWords = {
    "ranking": ("ranking", str),
    "median, text": ("median_fraction_input", measures.per_cent),
    "median, weights": ("median_fraction_attention", measures.per_cent),
    "text sooner": ("input_sooner", measures.per_cent),
    "same": ("equal", measures.per_cent),
    "rank correlation": ("correlation", measures.two_digits),
}


def erase_trace(
    trace: Trace | TraceFolder,
    *,
    seed: int = 0,
    on: str = LOCAL,
    workers: int = 1,
    watch: Callable[[int, int], None] | None = None,
) -> Page:
    """All rankings on all instances of a trace, the exact minimum, and single erasures: the tables of the paper.

    The section `tables` holds every table: what each ranking erases at the flip (flips-…), the smallest sets with
    whether plain erasure of each flips the decision (minimum), single erasures and which of two flips (single, tops),
    and how rankings compare (summary, fractions, quality, wins). A trace in shards gives the same page, shard by shard,
    here or `on` a Ray cluster.
    """
    if isinstance(trace, TraceFolder):
        made = erase_shards(trace, seed=seed, rankings=RANKINGS, on=on, workers=workers, watch=watch)
    else:
        made = erased_tables(trace, seed=seed, rankings=RANKINGS)
    instances = made.pop("instances")
    first = ~instances["digest"].duplicated().to_numpy()
    both = instances.loc[first, ["label", "predicted"]].rename(columns={"predicted": "decision"})
    learned = bool(both["label"].isna().all()) or shows_learning(both.astype("int64"))
    tables = {name: made[name] for name in ("single", "flips")}
    erased = summed_up(tables, first, trace.class_names, learned=learned)
    return _page(erased, made["minimum"], first)


def _page(erased: ErasedAttention, minimum: pd.DataFrame, first: Bool[np.ndarray, " instances"]) -> Page:
    flips, single = by_ranking(erased.tables["flips"]), erased.tables["single"]
    tops = [
        {"ranking": name, "cell": cell, **measures.beside("share", found, 1, None)}
        for name, rows in single.groupby("ranking", sort=False)
        for cell, found in measures.cell_shares(rows).items()
    ]
    tables = {
        **{f"flips-{name}": rows for name, rows in flips.items()},
        "minimum": minimum,
        "single": single,
        "tops": pd.DataFrame(tops).reindex(columns=["ranking", "cell", "share", "low", "high", "instances"]),
        "summary": flip_summary(flips),
        "fractions": fraction_distribution(flips),
        "quality": ranking_quality(measures.apart(flips)[0], minimum),
        "wins": measures.wins_and_attainment(flips),
    }
    shown = [PageTable(name=name, cells=table) for name, table in tables.items()]
    every = Section(name="tables", title="All tables", tables=shown, on_terminal=False)
    title = "Erasing attention weights until the decision flips"
    return Page(title=title, headline=title, sections=[erased.section(_instances(erased, first)), every])


def _instances(erased: ErasedAttention, first: Bool[np.ndarray, " instances"]) -> str:
    """On which instances the tables stand, and what became of the others."""
    resting, several = int(erased.resting["instances"].max()), int(erased.decisions["texts"].sum())
    repeated = int((~first).sum())
    copies = f"{repeated:,} are copies of others, " if repeated else ""
    return (
        f"On the {resting:,} instances whose decision rests on a part of them: fewer units than all can flip it. A "
        f"ranking that never flips one counts as everything erased. Of {len(first):,} in all, {copies}"
        f"{len(first) - repeated - several:,} have one unit only, {several - resting:,} flip only when everything is "
        "erased, or never."
    )


def erase_inputs(run: Run, corpus: Corpus, mode: str, *, watch: Callable[[int, int], None] | None = None) -> Page:
    """Units that leave some test texts of a run beside erased weights: compared, and the flips of both summed up."""
    said = {"dataset": corpus.name, "model": run.path.name, "seed": run.settings.training.seed}
    levels = in_front(said, read_changed_texts(run, corpus, [mode], watch=watch))
    compared = measures.inputs_table(levels)
    title = "Units leave the text, and it is read again"
    section = Section(
        name="inputs",
        title=f"{title} ({mode})",
        lead=f"On {compared['instances'].iloc[0]:.0f} test texts of several units, medians over those that both flip.",
        tables=[PageTable(name="inputs", cells=measures.in_words(compared, COMPARED_WORDS), data=compared)],
    )
    flips = PageTable(name="input-flips", cells=measures.input_summary_table(levels))
    every = Section(name="flips", title="What is erased at the flip", tables=[flips], on_terminal=False)
    return Page(title=title, headline=title, sections=[section, every])


def changed_texts(material: Material) -> pd.DataFrame:
    """The measure `inputs`: the flips of every run at each level, with what tells the run apart in front."""
    return material.kept("reading changed texts", read_changed_texts, [FORMAT, TEXTS, LOOKS])


def read_changed_texts(
    run: Run, corpus: Corpus, modes: Sequence[str] = MODES, *, watch: Callable[[int, int], None] | None = None
) -> pd.DataFrame:
    """The drawn texts of one run at every level, with the number of threads that it was trained with."""
    seed = run.settings.training.seed
    drawn = torch.randperm(len(corpus.test), generator=torch.Generator().manual_seed(seed))[:TEXTS]
    rows = drawn.sort().values.tolist()
    with limited_threads(run.settings.training.threads):
        return flips_by_level(
            run.model(), corpus.test, modes=modes, steps=LOOKS, spacing="geometric", rows=rows, watch=watch
        )
