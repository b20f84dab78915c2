"""Supplement figures 1–12 of Sun & Lu 2020, on synthetic data, and attention over training time: declared by name.

The pictures themselves are not in the text of the paper; panels follow the captions.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from heedful.errors import UnknownName
from heedful.figures import dynamics
from heedful.store import Store
from heedful.studies.sun2020.synthetic import Recording, Recordings, recordings
from heedful.studies.sun2020.synthetic_tables import (
    RATIO_SETS,
    alignment_courses,
    attention_gap,
    gap_courses,
    last_moment,
)

POLAR_KINDS = ("pos-pos", "neg-neg", "pos-neg")
ALL_KINDS = ("pos-pos", "neg-neg", "pos-neu", "neg-neu", "neu-neu", "pos-neg")
"""In the order of the paper's Figure 2."""


@dataclass(frozen=True, kw_only=True)
class SyntheticFigure:
    """A figure of the supplement: what it shows, what to see, which sets of recordings it is drawn from."""

    name: str
    title: str
    caption: str
    see: str
    """One sentence: what to see in it."""
    needs: tuple[str, ...]
    draw: Callable[[Recordings], Figure]


def figures(
    store: Store, *, quick: bool = False, names: Sequence[str] | None = None, workers: int | None = None
) -> dict[str, Figure]:
    """The named figures (by default all), drawn from recordings that are made where they are missing."""
    wanted = tuple(FIGURES) if names is None else tuple(names)
    for name in wanted:
        if name not in FIGURES:
            raise UnknownName("figure", name, FIGURES)
    needed = [needed for name in wanted for needed in FIGURES[name].needs]
    found = recordings(store, quick=quick, sets=needed, workers=workers)
    return {name: FIGURES[name].draw(found) for name in wanted}


def _draw_s1(found: Recordings) -> Figure:
    tables = {
        "Embeddings initialised in ±0.1": found["data-1"][0].table("pairs"),
        "Embeddings initialised in ±1": found["wide"][0].table("pairs"),
    }
    return dynamics.dot_product_trends(tables, kinds=POLAR_KINDS, single=True)


def _draw_s2(found: Recordings) -> Figure:
    table = last_moment(found["data-1"][0].table("pairs"))
    return dynamics.dot_product_boxes(table, kinds=ALL_KINDS, title="Dot products after training, by kind of pair")


def _draw_scores(column: str) -> Callable[[Recordings], Figure]:
    def draw(found: Recordings) -> Figure:
        tables = {"Data I": found["data-1"][0].table("scores"), "Data II (noise)": found["data-2"][0].table("scores")}
        return dynamics.score_distributions(tables, column)

    return draw


def _draw_s5(found: Recordings) -> Figure:
    shown = widest_gap(found["data-1"])
    without, penalised = (_tokens(found[name][shown]) for name in ("data-1", "penalised"))
    return dynamics.closing_gap(without, penalised, gap_courses([*found["data-1"], *found["penalised"]]))


def widest_gap(runs: Sequence[Recording]) -> int:
    """The place of the run with the largest attention gap; the paper, too, shows one where it is apparent."""
    gaps = [attention_gap(recording.table("scores")) for recording in runs]
    return gaps.index(max(gaps))


def _draw_s6(found: Recordings) -> Figure:
    pairs = found["data-2"][0].table("pairs")
    chosen = pairs.drop_duplicates("kind")[["kind", "first", "second"]]
    return dynamics.single_pairs(pairs.merge(chosen), title="Six pairs of tokens on Data II")


def _draw_s7(found: Recordings) -> Figure:
    return dynamics.alignment_by_ratio(alignment_courses([run for name in RATIO_SETS for run in found[name]]))


def _draw_s8(found: Recordings) -> Figure:
    pairs = found["affine"][0].table("pairs")
    tables = {
        "(a) embeddings e": pairs,
        "(b) affine representations h = M e": pairs.assign(omega=pairs["omega_hidden"]),
    }
    return dynamics.dot_product_trends(tables, kinds=ALL_KINDS, columns=2, label="dot product")


def _draw_score_trends(name: str) -> Callable[[Recordings], Figure]:
    def draw(found: Recordings) -> Figure:
        tokens = _tokens(found[name][0])
        return dynamics.score_trends(
            {"Polarity score by group": (tokens, "polarity"), "Attention score by group": (tokens, "attention")}
        )

    return draw


def _draw_s11(found: Recordings) -> Figure:
    recording = found["multi"][0]
    return dynamics.pairs_of_classes(recording.table("pairs"), classes=recording.run.trace().class_names)


def _draw_s12(found: Recordings) -> Figure:
    return dynamics.score_trends({"Attention score by class of the token": (_tokens(found["multi"][0]), "attention")})


def _draw_time(found: Recordings) -> Figure:
    return dynamics.attention_over_time(_tokens(found["data-1"][0]))


def _tokens(recording: Recording) -> pd.DataFrame:
    return recording.table("tokens")


FIGURES: Mapping[str, SyntheticFigure] = {
    figure.name: figure
    for figure in (
        SyntheticFigure(
            name="S1",
            title="Dot products during training, by initialisation",
            caption="Embedding dot products between two positive, two negative, and a positive and a negative token, "
            "with embeddings initialised uniformly in ±0.1 (top) and ±1 (bottom). Data I, λ = 10. Thick lines are "
            "means of 100 pairs, thin ones single pairs.",
            see="From the small initialisation all pairs part by sign at once; from the large one the same drift is "
            "buried in the spread that the pairs began with.",
            needs=("data-1", "wide"),
            draw=_draw_s1,
        ),
        SyntheticFigure(
            name="S2",
            title="Dot products by kind of pair",
            caption="Embedding dot products after training on Data I, 100 pairs of each kind. SGD, λ = 10.",
            see="Pairs of one polarity lie far above zero, opposite ones below and nearer to it, and pairs with a "
            "neutral token on it.",
            needs=("data-1",),
            draw=_draw_s2,
        ),
        SyntheticFigure(
            name="S3",
            title="Polarity scores on Data I and Data II",
            caption="Polarity score of every token by planted group after training, λ = 10. Black lines are means.",
            see="Positive and negative tokens end far apart with the right signs, neutral ones at zero; noise shrinks "
            "the scores and leaves the pattern.",
            needs=("data-1", "data-2"),
            draw=_draw_scores("polarity"),
        ),
        SyntheticFigure(
            name="S4",
            title="Attention scores on Data I and Data II",
            caption="Attention score of every token by planted group after training, λ = 10. Black lines are means.",
            see="Tokens of both polarities end above the neutral ones, with noise and without.",
            needs=("data-1", "data-2"),
            draw=_draw_scores("attention"),
        ),
        SyntheticFigure(
            name="S5",
            title="The gap that VᵀW opens, and its closing",
            caption="Mean attention score by group on Data I, (a) without and (b) with a penalty of 0.001 on |VᵀW|, "
            "for the initialisation with the largest gap; right, the gap between positive and negative tokens "
            "in every run.",
            see="Without the penalty one polarity gets more attention than the other; with it the curves all but meet.",
            needs=("data-1", "penalised"),
            draw=_draw_s5,
        ),
        SyntheticFigure(
            name="S6",
            title="Six pairs during training on Data II",
            caption="Dot products of six random pairs of tokens, one of each kind, during training on Data II.",
            see="The two same-polarity pairs rise, the opposite pair falls, and the three with a neutral token stay "
            "near zero, in spite of the noise.",
            needs=("data-2",),
            draw=_draw_s6,
        ),
        SyntheticFigure(
            name="S7",
            title="VᵀW and the class ratio",
            caption="VᵀW during training on five synthetic corpora with different shares of positive texts, mean of "
            "four initialisations (left), and |VᵀW| of each run at the end (right). The paper does not print its "
            "ratios.",
            see="The more skewed the data, the further VᵀW drifts, towards the larger class.",
            needs=RATIO_SETS,
            draw=_draw_s7,
        ),
        SyntheticFigure(
            name="S8",
            title="Dot products of the affine model",
            caption="Dot products of (a) embeddings and (b) affine representations by kind of pair, model with an "
            "affine input layer, Data I, SGD.",
            see="The pattern of the plain model appears in both, and the affine layer makes it larger.",
            needs=("affine",),
            draw=_draw_s8,
        ),
        SyntheticFigure(
            name="S9",
            title="Scores of the affine model",
            caption="Mean polarity (top) and attention scores (bottom) by group, model with an affine input layer and "
            "a penalty on W'ᵀV', Data I, SGD at a fixed rate.",
            see="Polarity scores part by sign and both polarities gain attention, as without the layer.",
            needs=("affine",),
            draw=_draw_score_trends("affine"),
        ),
        SyntheticFigure(
            name="S10",
            title="Scores with additive attention",
            caption="Mean polarity (top) and attention scores (bottom) by group with additive attention, Data I, SGD "
            "at a fixed rate.",
            see="Additive attention behaves alike, and more strongly: one polarity leads, both end far above the "
            "neutral tokens.",
            needs=("additive",),
            draw=_draw_score_trends("additive"),
        ),
        SyntheticFigure(
            name="S11",
            title="Dot products with three classes",
            caption="Embedding dot products on a synthetic corpus of three classes and neutral tokens: over training "
            "by relation of the two tokens, and at the end by their classes (neu: neutral).",
            see="Two tokens of one class have large positive dot products, of different classes negative ones, and "
            "neutral tokens stay near zero.",
            needs=("multi",),
            draw=_draw_s11,
        ),
        SyntheticFigure(
            name="S12",
            title="Attention scores with three classes",
            caption="Mean attention score of the tokens of each class, and of neutral ones, during training on a "
            "synthetic corpus of three classes.",
            see="The tokens of every class gain attention, the neutral ones lose it.",
            needs=("multi",),
            draw=_draw_s12,
        ),
        SyntheticFigure(
            name="time",
            title="Attention over training time",
            caption="Attention scores by group, and of the tokens that end highest and lowest in their group, during "
            "training on Data I.",
            see="Attention comes late: scores part only once polarity scores are large enough to be worth attending.",
            needs=("data-1",),
            draw=_draw_time,
        ),
    )
}
