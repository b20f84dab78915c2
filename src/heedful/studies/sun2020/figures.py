"""The figures of the paper (2–5) and of its supplement (S1–S28), and attention over training time.

The pictures themselves are not in the text we have; they are arranged by their captions. Where captions are shared,
the first of two shows polarity, the second attention of the same model (S14 and S15, S17 and S18, S19 and S20); S25,
S26 and S27 show the polarity towards each of the three classes, S28 the attention. S1–S12 are on made data.
"""

from collections.abc import Callable, Iterator, Sequence

import pandas as pd
from matplotlib.figure import Figure as Canvas

from heedful.analysis.tokens import as_printed
from heedful.figures import dynamics
from heedful.figures.tokens import ScorePanel, polarity_names, score_grid, weights_by_group
from heedful.studies.study import Frames, StudyFigure
from heedful.studies.sun2020.runs import Cell, called
from heedful.studies.sun2020.tables import last_moment

Draw = Callable[[Frames], Canvas]

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


def _panel(tables: Frames, cell: Cell, column: str, *, table: str = "tokens", title: str | None = None) -> ScorePanel:
    return ScorePanel(title=title or cell.title, table=tables[of_cell(cell, table)], column=column)


def _panels(cell: Cell, *columns: str) -> Draw:
    """Scores of one model beside each other."""
    return lambda tables: score_grid([_panel(tables, cell, column) for column in columns], columns=len(columns))


def _figure(name: str, caption: str, see: str, needs: Sequence[str], draw: Draw, title: str = "") -> StudyFigure:
    """A figure by its number; one of the supplement has its title before the caption."""
    number = name.removeprefix("S")
    where = f"Supplement, Figure {number}" if name.startswith("S") else f"Figure {number}"
    said = f"{title}. {caption}" if title and number.isdigit() else caption
    known = where if number.isdigit() else title
    return StudyFigure(name=name, title=known, caption=said, see=see, needs=tuple(dict.fromkeys(needs)), draw=draw)


def _pair(names: tuple[str, str], cell: Cell, sees: tuple[str, str]) -> Iterator[StudyFigure]:
    """Two figures with one caption: polarity, then attention."""
    for name, column, see in zip(names, ("polarity", "attention"), sees, strict=True):
        yield _figure(name, f"{cell.title}, {column}", see, [of_cell(cell)], _panels(cell, column))


def _single(name: str, cell: Cell, see: str) -> StudyFigure:
    return _figure(name, cell.title, see, [of_cell(cell)], _panels(cell, "polarity", "attention"))


def _three_classes() -> Iterator[StudyFigure]:
    """S25–S28: polarity towards motorcycles, med and guns, then attention."""
    cell, needs = SEVERAL, [of_cell(SEVERAL)]
    for number, name in enumerate(("motorcycles", "med", "guns")):
        see = f"The tokens of {name} lie above zero, those of the other two classes below."
        yield _figure(
            f"S{25 + number}", f"{cell.title}, polarity towards {name}", see, needs, _class_polarity(cell, number)
        )
    see = "The tokens of all three classes lie above the neutral ones, the frequent neutral ones lowest."
    yield _figure("S28", f"{cell.title}, attention", see, needs, _panels(cell, "attention"))


def _class_polarity(cell: Cell, number: int) -> Draw:
    """Polarity towards one of several classes."""

    def draw(tables: Frames) -> Canvas:
        table = as_printed(tables[of_cell(cell)])
        return score_grid([ScorePanel(title=cell.title, table=table, column=polarity_names(table)[number])], columns=1)

    return draw


def _figure_2(tables: Frames) -> Canvas:
    columns = ("polarity", "attention")
    panels = [_panel(tables, cell, column, title=called(cell.dataset)) for column in columns for cell in PLAIN]
    return score_grid(panels, columns=3)


def _figure_3(tables: Frames) -> Canvas:
    shown = [(LARGE, "polarity"), (LARGE, "attention"), (THREE_CLASSES, "attention")]
    return score_grid([_panel(tables, cell, column) for cell, column in shown], columns=3)


def _figure_s13(tables: Frames) -> Canvas:
    local = _panel(tables, LSTM, "attention", table="tokens_local", title="SST (DP-L, λ=10), local: mean in context")
    return score_grid([local, _panel(tables, LSTM, "attention", title="global: the token alone")], columns=1)


_RIGHT_SIGNS = "Polarity scores have the sign of their group and neutral tokens lie at zero."

ON_REAL_DATA = (
    _figure(
        "2",
        "Polarity (top) and attention scores (bottom). Scaled dot-product attention with λ = 10.",
        "Polarity has the sign of the group; attention lifts both classes above the neutral tokens, on IMDB the "
        "negative words most.",
        [of_cell(cell) for cell in PLAIN],
        _figure_2,
    ),
    _figure(
        "3",
        "Polarity (left) and attention scores (middle) for SST with λ = 100; attention scores (right) for 20News II "
        "with λ = 10. Scaled dot-product attention.",
        "A large λ doubles the polarity scores and parts the two classes from each other instead of both from the "
        "neutral tokens; with three classes and λ = 10 all of them lie above the neutral.",
        [of_cell(LARGE), of_cell(THREE_CLASSES)],
        _figure_3,
    ),
    _figure(
        "4",
        "Polarity and attention scores with additive attention (SST, λ = 10).",
        "The pattern of the dot product: right signs, and attention lifts polar words, the negative ones most.",
        [of_cell(ADDITIVE)],
        _panels(ADDITIVE, "polarity", "attention"),
    ),
    _figure(
        "5",
        "Average attention weights on the test texts of SST for positive, negative and neutral tokens.",
        "The median polar token gets about twice the weight of the median neutral one; circles are outliers, such as "
        "tokens of very short texts.",
        [of_cell(PLAIN[0], "weights")],
        lambda tables: weights_by_group(as_printed(tables[of_cell(PLAIN[0], "weights")])),
    ),
    _figure(
        "S13",
        "Attention scores with an LSTM: mean in context (top), of the token alone (bottom). SST, λ = 10.",
        "In context only the negative words stand out; for the token alone the positive ones lie above the neutral "
        "too.",
        [of_cell(LSTM), of_cell(LSTM, "tokens_local")],
        _figure_s13,
    ),
    *_pair(
        ("S14", "S15"),
        AFFINE,
        (_RIGHT_SIGNS, "The classes begin to part: negative words lie high, positive ones reach down to neutral."),
    ),
    _single("S16", LSTM, f"{_RIGHT_SIGNS} Attention lifts the negative words most, the positive ones a little."),
    *_pair(
        ("S17", "S18"),
        IMDB_AFFINE,
        (_RIGHT_SIGNS, "Both classes lie together above the neutral tokens, frequent words highest."),
    ),
    *_pair(
        ("S19", "S20"),
        IMDB_ADDITIVE,
        (_RIGHT_SIGNS, "Negative words are lifted; most positive ones are not told from the neutral."),
    ),
    _single(
        "S21", NEWSGROUPS[0], "With a small λ a few words take all attention; polarity is learned for these alone."
    ),
    _single("S22", NEWSGROUPS[1], "With a moderate λ both classes rise above the neutral tokens alike."),
    _single("S23", NEWSGROUPS[2], "The pattern stays when λ grows; attention scores shrink, polarity scores grow."),
    _single("S24", NEWSGROUPS[3], "The classes have parted: hockey above the neutral tokens, baseball below."),
    *_three_classes(),
)


def _s1(tables: Frames) -> Canvas:
    shown = {
        "Embeddings initialised in ±0.1": tables[of_recording("data-1", "pairs")],
        "Embeddings initialised in ±1": tables[of_recording("wide", "pairs")],
    }
    return dynamics.dot_product_trends(shown, kinds=POLAR_KINDS, single=True)


def _s2(tables: Frames) -> Canvas:
    table = last_moment(tables[of_recording("data-1", "pairs")])
    return dynamics.dot_product_boxes(table, kinds=ALL_KINDS, title="Dot products after training, by kind of pair")


def _scores(column: str) -> Draw:
    def draw(tables: Frames) -> Canvas:
        one, other = (tables[of_recording(name, "scores")] for name in ("data-1", "data-2"))
        return dynamics.score_distributions({"Data I": one, "Data II (noise)": other}, column)

    return draw


def _s5(tables: Frames) -> Canvas:
    tokens = tables["widest gap"]
    without, penalised = (tokens[tokens["penalised"] == penalised] for penalised in (False, True))
    return dynamics.closing_gap(without, penalised, tables["gap courses"])


def _s6(tables: Frames) -> Canvas:
    pairs = tables[of_recording("data-2", "pairs")]
    chosen = pairs.drop_duplicates("kind")[["kind", "first", "second"]]
    return dynamics.single_pairs(pairs.merge(chosen), title="Six pairs of tokens on Data II")


def _s8(tables: Frames) -> Canvas:
    pairs = tables[of_recording("affine", "pairs")]
    shown = {
        "(a) embeddings e": pairs,
        "(b) affine representations h = M e": pairs.assign(omega=pairs["omega_hidden"]),
    }
    return dynamics.dot_product_trends(shown, kinds=ALL_KINDS, columns=2, label="dot product")


def _trends(name: str) -> Draw:
    def draw(tables: Frames) -> Canvas:
        tokens = tables[of_recording(name, "tokens")]
        columns = {"Polarity score by group": "polarity", "Attention score by group": "attention"}
        return dynamics.score_trends({title: (tokens, column) for title, column in columns.items()})

    return draw


def _s11(tables: Frames) -> Canvas:
    pairs = tables[of_recording("multi", "pairs")]
    return dynamics.pairs_of_classes(pairs, classes=sorted(_classes(tables[of_recording("multi", "tokens")])))


def _classes(tokens: pd.DataFrame) -> set[str]:
    return {str(group) for group in tokens["group"]} - {"neutral", "none"}


def _s12(tables: Frames) -> Canvas:
    tokens = tables[of_recording("multi", "tokens")]
    return dynamics.score_trends({"Attention score by class of the token": (tokens, "attention")})


ON_MADE_DATA = (
    _figure(
        "S1",
        "Embedding dot products between two positive, two negative, and a positive and a negative token, with "
        "embeddings initialised uniformly in ±0.1 (top) and ±1 (bottom). Data I, λ = 10. Thick lines are means of 100 "
        "pairs, thin ones single pairs.",
        "From the small initialisation all pairs part by sign at once; from the large one the same drift is buried in "
        "the spread that the pairs began with.",
        [of_recording("data-1", "pairs"), of_recording("wide", "pairs")],
        _s1,
        "Dot products during training, by initialisation",
    ),
    _figure(
        "S2",
        "Embedding dot products after training on Data I, 100 pairs of each kind. SGD, λ = 10.",
        "Pairs of one polarity lie far above zero, opposite ones below and nearer to it, and pairs with a neutral "
        "token on it.",
        [of_recording("data-1", "pairs")],
        _s2,
        "Dot products by kind of pair",
    ),
    _figure(
        "S3",
        "Polarity score of every token by planted group after training, λ = 10. Black lines are means.",
        "Positive and negative tokens end far apart with the right signs, neutral ones at zero; noise shrinks the "
        "scores and leaves the pattern.",
        [of_recording("data-1", "scores"), of_recording("data-2", "scores")],
        _scores("polarity"),
        "Polarity scores on Data I and Data II",
    ),
    _figure(
        "S4",
        "Attention score of every token by planted group after training, λ = 10. Black lines are means.",
        "Tokens of both polarities end above the neutral ones, with noise and without.",
        [of_recording("data-1", "scores"), of_recording("data-2", "scores")],
        _scores("attention"),
        "Attention scores on Data I and Data II",
    ),
    _figure(
        "S5",
        "Mean attention score by group on Data I, (a) without and (b) with a penalty of 0.001 on |VᵀW|, for the "
        "initialisation with the largest gap; right, the gap between positive and negative tokens in every run.",
        "Without the penalty one polarity gets more attention than the other; with it the curves all but meet.",
        ["widest gap", "gap courses"],
        _s5,
        "The gap that VᵀW opens, and its closing",
    ),
    _figure(
        "S6",
        "Dot products of six random pairs of tokens, one of each kind, during training on Data II.",
        "The two same-polarity pairs rise, the opposite pair falls, and the three with a neutral token stay near zero, "
        "in spite of the noise.",
        [of_recording("data-2", "pairs")],
        _s6,
        "Six pairs during training on Data II",
    ),
    _figure(
        "S7",
        "VᵀW during training on five synthetic corpora with different shares of positive texts, mean of four "
        "initialisations (left), and |VᵀW| of each run at the end (right). The paper does not print its ratios.",
        "The more skewed the data, the further VᵀW drifts, towards the larger class.",
        ["alignment courses"],
        lambda tables: dynamics.alignment_by_ratio(tables["alignment courses"]),
        "VᵀW and the class ratio",
    ),
    _figure(
        "S8",
        "Dot products of (a) embeddings and (b) affine representations by kind of pair, model with an affine input "
        "layer, Data I, SGD.",
        "The pattern of the plain model appears in both, and the affine layer makes it larger.",
        [of_recording("affine", "pairs")],
        _s8,
        "Dot products of the affine model",
    ),
    _figure(
        "S9",
        "Mean polarity (top) and attention scores (bottom) by group, model with an affine input layer and a penalty on "
        "W'ᵀV', Data I, SGD at a fixed rate.",
        "Polarity scores part by sign and both polarities gain attention, as without the layer.",
        [of_recording("affine", "tokens")],
        _trends("affine"),
        "Scores of the affine model",
    ),
    _figure(
        "S10",
        "Mean polarity (top) and attention scores (bottom) by group with additive attention, Data I, SGD at a fixed "
        "rate.",
        "Additive attention behaves alike, and more strongly: one polarity leads, both end far above the neutral "
        "tokens.",
        [of_recording("additive", "tokens")],
        _trends("additive"),
        "Scores with additive attention",
    ),
    _figure(
        "S11",
        "Embedding dot products on a synthetic corpus of three classes and neutral tokens: over training by relation "
        "of the two tokens, and at the end by their classes (neu: neutral).",
        "Two tokens of one class have large positive dot products, of different classes negative ones, and neutral "
        "tokens stay near zero.",
        [of_recording("multi", "pairs"), of_recording("multi", "tokens")],
        _s11,
        "Dot products with three classes",
    ),
    _figure(
        "S12",
        "Mean attention score of the tokens of each class, and of neutral ones, during training on a synthetic corpus "
        "of three classes.",
        "The tokens of every class gain attention, the neutral ones lose it.",
        [of_recording("multi", "tokens")],
        _s12,
        "Attention scores with three classes",
    ),
    _figure(
        "time",
        "Attention scores by group, and of the tokens that end highest and lowest in their group, during training on "
        "Data I.",
        "Attention comes late: scores part only once polarity scores are large enough to be worth attending.",
        [of_recording("data-1", "tokens")],
        lambda tables: dynamics.attention_over_time(tables[of_recording("data-1", "tokens")]),
        "Attention over training time",
    ),
)


def _order(figure: StudyFigure) -> tuple[bool, bool, int]:
    """The paper's figures, the supplement's, then ours."""
    number = figure.name.removeprefix("S")
    return not number.isdigit(), figure.name.startswith("S"), int(number) if number.isdigit() else 0


FIGURES = tuple(sorted((*ON_REAL_DATA, *ON_MADE_DATA), key=_order))
