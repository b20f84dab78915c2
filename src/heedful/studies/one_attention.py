"""One attention for the whole corpus: could it put other words first, with the same outputs?

Of models whose attention is one score for each word. Looked at are training texts: the scores were learned from them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd
import torch

from heedful.analysis.determined import Watch, determined_attention
from heedful.analysis.orders import ReversedOrders, matched_pairs, reversed_orders
from heedful.analysis.tokens import NEUTRAL, NONE
from heedful.claims import Verdict, judge
from heedful.figures.erasure import Grid
from heedful.figures.manipulation import both_attentions, determined_scores
from heedful.figures.picture import Figure
from heedful.models.classifier import Classifier
from heedful.notebook import counted
from heedful.probes.reading import some_documents
from heedful.report.page import PageTable, Section
from heedful.studies.measures import InWords, in_words, two_digits
from heedful.text.corpus import Corpus, Split
from heedful.tracing import trace

EPSILON, MINIMUM_COUNT = 0.05, 10
MOST_PAIRS = 100
MOST_NUMBERS = 300_000
"""So many numbers the programs have at most: units times ordered pairs of classes. Where there are more, texts are
drawn."""

SHOWN = 12
"""Pairs that a page shows."""

TITLE = "One attention for the whole corpus"
NO_SCORES = "Not asked of this model: its attention is not one score for each word, the same in all texts."
NOTE = (
    f"Every word that occurs {MINIMUM_COUNT} times or more in these texts may have another attention score, the same "
    "in all of them; rarer words keep theirs, and polarity scores stay. Pairs are of a word that belongs to a class "
    "beyond chance and one that all classes use alike, about as frequent, where the first has the larger score. Looked "
    "for is one attention that reverses as many of them as possible, all at once (J4); “held” are pairs that provably "
    "none reverses. The table shows some of the pairs."
)

PAIR_WORDS: InWords = {
    "word of a class": ("first", str),
    "score": ("attention_first", two_digits),
    "another": ("other_first", two_digits),
    "used alike": ("second", str),
    "its score": ("attention_second", two_digits),
    "its other": ("other_second", two_digits),
    "order": ("order", str),
}

PINNED = 1.0
"""A score is pinned down if it can move by less: a factor of e in the weight."""

WORD_WORDS: InWords = {
    "word": ("token", str),
    "times": ("count", "{:,}".format),
    "score": ("attention", two_digits),
    "smallest": ("low", two_digits),
    "largest": ("high", two_digits),
}
RANGE_NOTE = (
    "The smallest and the largest attention score that a word could have in an attention that keeps all outputs, where "
    "all words that are frequent enough may change theirs with it: −inf where it could do without attention, – where "
    "nothing is proved."
)

PICTURE = Figure(
    name="one-attention",
    title="Another attention for the whole corpus",
    caption="Left the model's attention scores, right those of another attention with the outputs of all texts within "
    ".05, for the words of the pairs that were looked at. Scores too small to matter stand at the lower edge. Across: "
    "the polarity score; of three classes or more the largest less the mean of the others.",
    needs=("one-attention",),
    draw=lambda tables: both_attentions(tables["one-attention"]),
)

HERE = "this model"
VOCABULARY = Figure(
    name="determined",
    title="Between which values attention scores may lie",
    caption="Every line is a word: the attention scores that it could have while no output of a training text moves by "
    "more than .05. Words stand by group and then by their own score, the dot; a triangle at an edge is a word without "
    "a bound there. Of many words lines join only the ends that there are.",
    needs=("determined",),
    draw=lambda tables: determined_scores(
        tables["determined"].assign(model=HERE, dataset=""), Grid(models=(HERE,), datasets={"": "training texts"})
    ),
)


@dataclass(frozen=True, kw_only=True)
class CorpusAttention:
    """What one attention for the whole corpus could do; of a model that has no score for each word, why not."""

    words: str
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    """`orders`, one row per pair, and `one-attention`, one row per word of a pair."""
    verdicts: Sequence[Verdict] = ()

    def section(self) -> Section:
        """It as a part of a page."""
        if not self.tables:
            return Section(name="one-attention", title=TITLE, lead=self.words)
        pairs = self.tables["orders"]
        shown = PageTable(name="orders", cells=in_words(pairs.head(SHOWN), PAIR_WORDS), data=pairs)
        return Section(
            name="one-attention",
            title=TITLE,
            lead=self.words,
            verdicts=self.verdicts,
            tables=[shown] if len(pairs) else [],
            note=NOTE,
            pictures=[PICTURE.picture(self.tables)] if len(pairs) else [],
        )


def one_attention(model: Classifier, corpus: Corpus, tokens: pd.DataFrame, *, seed: int = 0) -> CorpusAttention:
    """Look for one attention that puts words of a class below words that all classes use alike.

    tokens: the table of `token_scores`. The seed draws pairs, and texts where there are too many.
    """
    if not has_word_scores(model):
        return CorpusAttention(words=NO_SCORES)
    some = drawn_texts(corpus.train, corpus.classes, seed)
    counts = torch.bincount(some.tokens.numbers, minlength=len(tokens))
    pairs = matched_pairs(tokens, counts, least=MINIMUM_COUNT, most=MOST_PAIRS, seed=seed)
    found = reversed_orders(
        trace(model, some), some.tokens.numbers, pairs, epsilon=EPSILON, minimum_count=MINIMUM_COUNT
    )
    tables = {"orders": _with_order(found.pairs), "one-attention": _of_pairs(found, tokens, pairs)}
    drawn = f" Of {len(corpus.train):,} training texts these were drawn." if len(some) < len(corpus.train) else ""
    words = _words(found, len(some)) + drawn
    return CorpusAttention(words=words, tables=tables, verdicts=judge(("J4",), tables))


def determined_words(
    model: Classifier,
    corpus: Corpus,
    tokens: pd.DataFrame,
    *,
    words: int,
    epsilon: float = EPSILON,
    seed: int = 0,
    watch: Watch | None = None,
) -> pd.DataFrame:
    """The smallest and the largest score of so many words that the seed draws (`determined_attention`).

    With their group (words of a class by accident have none) and `polarity`, what they push. Words that occur often
    enough in the training texts, or in a draw of these, are drawn.
    """
    some = drawn_texts(corpus.train, corpus.classes, seed)
    counts = torch.bincount(some.tokens.numbers, minlength=len(tokens))
    often = (counts >= MINIMUM_COUNT).nonzero().squeeze(1)
    drawn = often[torch.randperm(len(often), generator=torch.Generator().manual_seed(seed))[:words]]
    table = determined_attention(
        trace(model, some), some.tokens.numbers, epsilon=epsilon, minimum_count=MINIMUM_COUNT, watch=watch,
        only=drawn.sort().values.tolist(),
    )  # fmt: skip
    known = claimed_groups(tokens).iloc[table["number"]].reset_index(drop=True)
    return table.assign(group=known["group"], polarity=pushes(known))


def determined_sections(
    model: Classifier,
    corpus: Corpus,
    tokens: pd.DataFrame,
    *,
    words: int = SHOWN,
    seed: int = 0,
    watch: Watch | None = None,
) -> list[Section]:
    """What one attention for the whole corpus could do, and between which values the scores of some words may lie.

    So many words are drawn; of more than there are, all.
    """
    first = one_attention(model, corpus, tokens, seed=seed).section()
    if not has_word_scores(model):
        return [first]
    found = determined_words(model, corpus, tokens, words=words, seed=seed, watch=watch)
    shown = in_words(found.head(SHOWN), WORD_WORDS)
    second = Section(
        name="determined",
        title=VOCABULARY.title,
        lead=_determined_in_words(found),
        tables=[PageTable(name="determined", cells=shown, data=found)] if len(found) else [],
        pictures=[VOCABULARY.picture({"determined": found})] if len(found) else [],
        note=RANGE_NOTE,
    )
    return [first, second]


def _determined_in_words(found: pd.DataFrame) -> str:
    pinned, without = int((found["width"] < PINNED).sum()), int((found["low"] == -math.inf).sum())
    return (
        f"Of {counted(len(found), 'word')} that {'occurs' if len(found) == 1 else 'occur'} {MINIMUM_COUNT} times or "
        f"more the outputs of the training texts, within {EPSILON:g}, pin down {pinned:,}: the largest score is less "
        f"than {PINNED:g} above the smallest. {without:,} could do without attention."
    )


def has_word_scores(model: Classifier) -> bool:
    """Whether attention is one score for each word, whatever stands beside it."""
    settings = model.settings
    return not model.contextual and settings.attention_weights == "learned" and settings.normaliser == "softmax"


def drawn_texts(split: Split, classes: int, seed: int) -> Split:
    """The texts whose programs have at most so many numbers: all, or a draw."""
    order = torch.randperm(len(split), generator=torch.Generator().manual_seed(seed))
    sizes = (split.lengths[order] * classes * (classes - 1)).cumsum(0)
    rows = order[: max(1, int((sizes <= MOST_NUMBERS).sum()))]
    return split if len(rows) == len(split) else some_documents(split, sorted(rows.tolist()))


def _with_order(pairs: pd.DataFrame) -> pd.DataFrame:
    order = pairs["held"].map({True: "held", False: "stays"}).where(~pairs["reversed"], "reversed")
    return pairs.assign(order=order)


def _of_pairs(found: ReversedOrders, tokens: pd.DataFrame, pairs: Sequence[tuple[int, int]]) -> pd.DataFrame:
    """The words of the pairs with their groups: those of a class, and all others as neutral."""
    seconds = [second for _, second in pairs]
    table = found.tokens[found.tokens["number"].isin([number for pair in pairs for number in pair])]
    known = tokens.iloc[table["number"]].reset_index(drop=True)
    groups = known["group"].where(~table["number"].isin(seconds).to_numpy(), "neutral")
    return table.reset_index(drop=True).assign(group=groups, polarity=pushes(known))


def claimed_groups(table: pd.DataFrame) -> pd.DataFrame:
    """The table with only those tokens in the group of a class that the claims rest on."""
    if "beyond_chance" not in table:
        return table
    return table.assign(group=table["group"].where(table["beyond_chance"] | (table["group"] == NEUTRAL), NONE))


def pushes(tokens: pd.DataFrame) -> "pd.Series[float]":
    """What each word pushes: its polarity score; of three classes or more the largest less the mean of the others."""
    if "polarity" in tokens:
        return tokens["polarity"]
    scores = tokens[[name for name in tokens if str(name).startswith("polarity_")]]
    most, classes = scores.max(axis=1), len(scores.columns)
    return most - (scores.sum(axis=1) - most) / (classes - 1)


def _words(found: ReversedOrders, texts: int) -> str:
    pairs = found.pairs
    if pairs.empty:
        return "There is no pair of a word of a class and one as frequent that all classes use alike."
    held = int(pairs["held"].sum())
    return (
        f"One attention with the outputs of {counted(texts, 'training text')} within {EPSILON:g} reverses the order of "
        f"{int(pairs['reversed'].sum()):,} of {counted(len(pairs), 'pair')} of words"
        + (f"; that no attention reverses it is proven of {held:,}." if held else ".")
    )
