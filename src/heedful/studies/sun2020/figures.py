"""The figures of the paper (2–5) and of its supplement (S1–S28), and attention over training time.

The pictures themselves are not in the text we have; they are arranged by their captions. Where captions are shared,
the first of two shows polarity, the second attention of the same model (S14 and S15, S17 and S18, S19 and S20); S25,
S26 and S27 show the polarity towards each of the three classes, S28 the attention. S1–S12 are on made data.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pandas as pd
from matplotlib.figure import Figure as Canvas

from heedful.analysis.tokens import as_printed
from heedful.figures import dynamics
from heedful.figures.tokens import ScorePanel, polarity_names, score_grid, weights_by_group
from heedful.studies.measures import called
from heedful.studies.study import StudyFigure
from heedful.studies.sun2020.runs import NAMES, Cell
from heedful.studies.sun2020.tables import last_moment

Draw = Callable[..., Canvas]
"""Of the tables that a figure needs, in their order."""

BOTH = ("polarity", "attention")
POLAR_KINDS = ("pos-pos", "neg-neg", "pos-neg")
ALL_KINDS = ("pos-pos", "neg-neg", "pos-neu", "neg-neu", "neu-neu", "pos-neg")
"""In the order of the paper's Figure 2."""

PLAIN = tuple(Cell(dataset=dataset) for dataset in ("sst", "imdb", "20news-1"))
LARGE = Cell(dataset="sst", scale=100.0)
THREE_CLASSES = Cell(dataset="20news-2")
ADDITIVE = Cell(dataset="sst", model="AD")
LSTM = Cell(dataset="sst", model="DP-L")
AFFINE = Cell(dataset="sst", model="DP-A", scale=20.0)
IMDB_AFFINE, IMDB_ADDITIVE = (Cell(dataset="imdb", model=model) for model in ("DP-A", "AD"))
NEWSGROUPS = tuple(Cell(dataset="20news-1", model="DP-A", scale=scale) for scale in (1.0, 10.0, 20.0, 50.0))
SEVERAL = Cell(dataset="20news-2", model="DP-A")
CELLS = (*PLAIN, LARGE, THREE_CLASSES, ADDITIVE, LSTM, AFFINE, IMDB_AFFINE, IMDB_ADDITIVE, *NEWSGROUPS, SEVERAL)
"""The cells of Table 2 whose first run a figure shows."""


def of_cell(cell: Cell, table: str = "tokens") -> str:
    """The measure that is a table of a cell's first run."""
    return f"{table}: {cell.dataset} {cell.model} {cell.scale:g}"


def of_recording(name: str, table: str) -> str:
    """The measure that is a table of the first recording of a set."""
    return f"{table}: {name}"


def _figure(name: str, needs: Sequence[str], draw: Draw, caption: str, see: str, title: str = "") -> StudyFigure:
    """A figure by its number; one of the supplement has its title before the caption."""
    number = name.removeprefix("S")
    where = f"Supplement, Figure {number}" if name.startswith("S") else f"Figure {number}"
    said = f"{title}. {caption}" if title and number.isdigit() else caption
    return StudyFigure(
        name=name,
        title=where if number.isdigit() else title,
        caption=said,
        see=see,
        needs=tuple(dict.fromkeys(needs)),
        draw=lambda tables: draw(*(tables[need] for need in needs)),
    )


def _scores(
    name: str, shown: Sequence[tuple[Cell, str]], caption: str, see: str, columns: int = 0, *, brief: bool = False
) -> StudyFigure:
    """Scores of models beside each other, each under its cell, or in brief its data set."""

    def draw(*tables: pd.DataFrame) -> Canvas:
        panels = [
            ScorePanel(title=called(cell.dataset, NAMES) if brief else cell.title, table=table, column=column)
            for (cell, column), table in zip(shown, tables, strict=True)
        ]
        return score_grid(panels, columns=columns or len(panels))

    return _figure(name, [of_cell(cell) for cell, _ in shown], draw, caption, see)


def _pair(names: tuple[str, str], cell: Cell, attention_see: str) -> Iterator[StudyFigure]:
    """Two figures with one caption: polarity, then attention."""
    for name, column, see in zip(names, BOTH, (_RIGHT_SIGNS, attention_see), strict=True):
        yield _scores(name, [(cell, column)], f"{cell.title}, {column}", see)


def _single(name: str, cell: Cell, see: str) -> StudyFigure:
    return _scores(name, [(cell, column) for column in BOTH], cell.title, see)


def _three_classes() -> Iterator[StudyFigure]:
    """S25–S28: polarity towards motorcycles, med and guns, then attention."""
    for number, name in enumerate(("motorcycles", "med", "guns")):
        see = f"The tokens of {name} lie above zero, those of the other two classes below."
        caption = f"{SEVERAL.title}, polarity towards {name}"
        yield _figure(f"S{25 + number}", [of_cell(SEVERAL)], partial(_class_polarity, number), caption, see)
    see = "The tokens of all three classes lie above the neutral ones, the frequent neutral ones lowest."
    yield _scores("S28", [(SEVERAL, "attention")], f"{SEVERAL.title}, attention", see)


def _class_polarity(number: int, tokens: pd.DataFrame) -> Canvas:
    """Polarity towards one of several classes."""
    table = as_printed(tokens)
    return score_grid([ScorePanel(title=SEVERAL.title, table=table, column=polarity_names(table)[number])], columns=1)


def _local_and_global(local: pd.DataFrame, alone: pd.DataFrame) -> Canvas:
    titles = {"SST (DP-L, λ=10), local: mean in context": local, "global: the token alone": alone}
    panels = [ScorePanel(title=title, table=table, column="attention") for title, table in titles.items()]
    return score_grid(panels, columns=1)


_RIGHT_SIGNS = "Polarity scores have the sign of their group and neutral tokens lie at zero."

ON_REAL_DATA = (
    _scores(
        "2",
        [(cell, column) for column in BOTH for cell in PLAIN],
        "Polarity (top) and attention scores (bottom). Scaled dot-product attention with λ = 10.",
        "Polarity has the sign of the group; attention lifts both classes above the neutral tokens, on IMDB the "
        "negative words most.",
        columns=3,
        brief=True,
    ),
    _scores(
        "3",
        [(LARGE, "polarity"), (LARGE, "attention"), (THREE_CLASSES, "attention")],
        "Polarity (left) and attention scores (middle) for SST with λ = 100; attention scores (right) for 20News II "
        "with λ = 10. Scaled dot-product attention.",
        "A large λ doubles the polarity scores and parts the two classes from each other instead of both from the "
        "neutral tokens; with three classes and λ = 10 all of them lie above the neutral.",
    ),
    _scores(
        "4",
        [(ADDITIVE, column) for column in BOTH],
        "Polarity and attention scores with additive attention (SST, λ = 10).",
        "The pattern of the dot product: right signs, and attention lifts polar words, the negative ones most.",
    ),
    _figure(
        "5",
        [of_cell(PLAIN[0], "weights")],
        lambda weights: weights_by_group(as_printed(weights)),
        "Average attention weights on the test texts of SST for positive, negative and neutral tokens.",
        "The median polar token gets about twice the weight of the median neutral one; circles are outliers, such as "
        "tokens of very short texts.",
    ),
    _figure(
        "S13",
        [of_cell(LSTM, "tokens_local"), of_cell(LSTM)],
        _local_and_global,
        "Attention scores with an LSTM: mean in context (top), of the token alone (bottom). SST, λ = 10.",
        "In context only the negative words stand out; for the token alone the positive ones lie above the neutral "
        "too.",
    ),
    *_pair(
        ("S14", "S15"),
        AFFINE,
        "The classes begin to part: negative words lie high, positive ones reach down to neutral.",
    ),
    _single("S16", LSTM, f"{_RIGHT_SIGNS} Attention lifts the negative words most, the positive ones a little."),
    *_pair(("S17", "S18"), IMDB_AFFINE, "Both classes lie together above the neutral tokens, frequent words highest."),
    *_pair(
        ("S19", "S20"), IMDB_ADDITIVE, "Negative words are lifted; most positive ones are not told from the neutral."
    ),
    _single(
        "S21", NEWSGROUPS[0], "With a small λ a few words take all attention; polarity is learned for these alone."
    ),
    _single("S22", NEWSGROUPS[1], "With a moderate λ both classes rise above the neutral tokens alike."),
    _single("S23", NEWSGROUPS[2], "The pattern stays when λ grows; attention scores shrink, polarity scores grow."),
    _single("S24", NEWSGROUPS[3], "The classes have parted: hockey above the neutral tokens, baseball below."),
    *_three_classes(),
)


def _by_initialisation(small: pd.DataFrame, large: pd.DataFrame) -> Canvas:
    shown = {"Embeddings initialised in ±0.1": small, "Embeddings initialised in ±1": large}
    return dynamics.dot_product_trends(shown, kinds=POLAR_KINDS, single=True)


def _boxes(pairs: pd.DataFrame) -> Canvas:
    title = "Dot products after training, by kind of pair"
    return dynamics.dot_product_boxes(last_moment(pairs), kinds=ALL_KINDS, title=title)


def _distributions(column: str, one: pd.DataFrame, other: pd.DataFrame) -> Canvas:
    return dynamics.score_distributions({"Data I": one, "Data II (noise)": other}, column)


def _gaps(tokens: pd.DataFrame, courses: pd.DataFrame) -> Canvas:
    return dynamics.closing_gap(tokens[~tokens["penalised"]], tokens[tokens["penalised"]], courses)


def _six_pairs(pairs: pd.DataFrame) -> Canvas:
    chosen = pairs.drop_duplicates("kind")[["kind", "first", "second"]]
    return dynamics.single_pairs(pairs.merge(chosen), title="Six pairs of tokens on Data II")


def _embedded_and_hidden(pairs: pd.DataFrame) -> Canvas:
    hidden = pairs.assign(omega=pairs["omega_hidden"])
    shown = {"(a) embeddings e": pairs, "(b) affine representations h = M e": hidden}
    return dynamics.dot_product_trends(shown, kinds=ALL_KINDS, columns=2, label="dot product")


def _trends(tokens: pd.DataFrame) -> Canvas:
    shown = {"Polarity score by group": "polarity", "Attention score by group": "attention"}
    return dynamics.score_trends({title: (tokens, column) for title, column in shown.items()})


def _several(pairs: pd.DataFrame, tokens: pd.DataFrame) -> Canvas:
    classes = {str(group) for group in tokens["group"]} - {"neutral", "none"}
    return dynamics.pairs_of_classes(pairs, classes=sorted(classes))


ON_MADE_DATA = (
    _figure(
        "S1",
        [of_recording("data-1", "pairs"), of_recording("wide", "pairs")],
        _by_initialisation,
        "Embedding dot products between two positive, two negative, and a positive and a negative token, with "
        "embeddings initialised uniformly in ±0.1 (top) and ±1 (bottom). Data I, λ = 10. Thick lines are means of 100 "
        "pairs, thin ones single pairs.",
        "From the small initialisation all pairs part by sign at once; from the large one the same drift is buried in "
        "the spread that the pairs began with.",
        "Dot products during training, by initialisation",
    ),
    _figure(
        "S2",
        [of_recording("data-1", "pairs")],
        _boxes,
        "Embedding dot products after training on Data I, 100 pairs of each kind. SGD, λ = 10.",
        "Pairs of one polarity lie far above zero, opposite ones below and nearer to it, and pairs with a neutral "
        "token on it.",
        "Dot products by kind of pair",
    ),
    _figure(
        "S3",
        [of_recording("data-1", "scores"), of_recording("data-2", "scores")],
        partial(_distributions, "polarity"),
        "Polarity score of every token by planted group after training, λ = 10. Black lines are means.",
        "Positive and negative tokens end far apart with the right signs, neutral ones at zero; noise shrinks the "
        "scores and leaves the pattern.",
        "Polarity scores on Data I and Data II",
    ),
    _figure(
        "S4",
        [of_recording("data-1", "scores"), of_recording("data-2", "scores")],
        partial(_distributions, "attention"),
        "Attention score of every token by planted group after training, λ = 10. Black lines are means.",
        "Tokens of both polarities end above the neutral ones, with noise and without.",
        "Attention scores on Data I and Data II",
    ),
    _figure(
        "S5",
        ["widest gap", "gap courses"],
        _gaps,
        "Mean attention score by group on Data I, (a) without and (b) with a penalty of 0.001 on |VᵀW|, for the "
        "initialisation with the largest gap; right, the gap between positive and negative tokens in every run.",
        "Without the penalty one polarity gets more attention than the other; with it the curves all but meet.",
        "The gap that VᵀW opens, and its closing",
    ),
    _figure(
        "S6",
        [of_recording("data-2", "pairs")],
        _six_pairs,
        "Dot products of six random pairs of tokens, one of each kind, during training on Data II.",
        "The two same-polarity pairs rise, the opposite pair falls, and the three with a neutral token stay near zero, "
        "in spite of the noise.",
        "Six pairs during training on Data II",
    ),
    _figure(
        "S7",
        ["alignment courses"],
        dynamics.alignment_by_ratio,
        "VᵀW during training on five synthetic corpora with different shares of positive texts, mean of four "
        "initialisations (left), and |VᵀW| of each run at the end (right). The paper does not print its ratios.",
        "The more skewed the data, the further VᵀW drifts, towards the larger class.",
        "VᵀW and the class ratio",
    ),
    _figure(
        "S8",
        [of_recording("affine", "pairs")],
        _embedded_and_hidden,
        "Dot products of (a) embeddings and (b) affine representations by kind of pair, model with an affine input "
        "layer, Data I, SGD.",
        "The pattern of the plain model appears in both, and the affine layer makes it larger.",
        "Dot products of the affine model",
    ),
    _figure(
        "S9",
        [of_recording("affine", "tokens")],
        _trends,
        "Mean polarity (top) and attention scores (bottom) by group, model with an affine input layer and a penalty on "
        "W'ᵀV', Data I, SGD at a fixed rate.",
        "Polarity scores part by sign and both polarities gain attention, as without the layer.",
        "Scores of the affine model",
    ),
    _figure(
        "S10",
        [of_recording("additive", "tokens")],
        _trends,
        "Mean polarity (top) and attention scores (bottom) by group with additive attention, Data I, SGD at a fixed "
        "rate.",
        "Additive attention behaves alike, and more strongly: one polarity leads, both end far above the neutral "
        "tokens.",
        "Scores with additive attention",
    ),
    _figure(
        "S11",
        [of_recording("multi", "pairs"), of_recording("multi", "tokens")],
        _several,
        "Embedding dot products on a synthetic corpus of three classes and neutral tokens: over training by relation "
        "of the two tokens, and at the end by their classes (neu: neutral).",
        "Two tokens of one class have large positive dot products, of different classes negative ones, and neutral "
        "tokens stay near zero.",
        "Dot products with three classes",
    ),
    _figure(
        "S12",
        [of_recording("multi", "tokens")],
        lambda tokens: dynamics.score_trends({"Attention score by class of the token": (tokens, "attention")}),
        "Mean attention score of the tokens of each class, and of neutral ones, during training on a synthetic corpus "
        "of three classes.",
        "The tokens of every class gain attention, the neutral ones lose it.",
        "Attention scores with three classes",
    ),
    _figure(
        "time",
        [of_recording("data-1", "tokens")],
        dynamics.attention_over_time,
        "Attention scores by group, and of the tokens that end highest and lowest in their group, during training on "
        "Data I.",
        "Attention comes late: scores part only once polarity scores are large enough to be worth attending.",
        "Attention over training time",
    ),
)


def _order(figure: StudyFigure) -> tuple[bool, bool, int]:
    """The paper's figures, the supplement's, then ours."""
    number = figure.name.removeprefix("S")
    return not number.isdigit(), figure.name.startswith("S"), int(number) if number.isdigit() else 0


FIGURES = tuple(sorted((*ON_REAL_DATA, *ON_MADE_DATA), key=_order))
