"""Claims about one trained model: that there is anything to explain, and what the words of Sun & Lu 2020 get in it.

M1, ours, comes before all others: the model has learned something. The others are about token scores and weights.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from heedful.analysis.separation import matched_separation, right_signs, separation
from heedful.analysis.statistics import FEWEST, Estimate, mean_of_shares, share, too_few
from heedful.claims.claim import Claim, named
from heedful.traces import Trace

LEARNED = "M1"
DEALS = 2000  # so often decisions are dealt out at random to see what chance does
SURE = 0.99  # the level of M1's interval: everything else is said only of models that have learned something
SMALLEST_LIFT = 1e-12
RIGHT = 0.8  # four words in five: what a model uses need not follow the data in every word to be sound

ALL_RIGHT = 16
"""So many words must there be, all pushing towards their own class, for the interval of C1 to lie above that."""

BOTH = ("polar tokens", "neutral tokens")  # the sides of every comparison of groups
MATCHED = ("polar tokens", "tokens that all classes use alike")  # the sides of comparisons at equal frequency


def outcomes(trace: Trace) -> pd.DataFrame:
    """Per distinct text its class, and the one that the model decides for."""
    assert trace.labels is not None
    both = {"label": trace.labels[trace.distinct], "decision": trace.predictions[trace.distinct]}
    return pd.DataFrame({name: classes.numpy(force=True) for name, classes in both.items()})


def has_learned(trace: Trace) -> bool:
    """Whether the model of a trace is shown to have learned something; without labels there is no telling otherwise."""
    return trace.labels is None or shows_learning(outcomes(trace))


def shows_learning(outcomes: pd.DataFrame) -> bool:
    """The same by the outcomes of distinct texts."""
    return CLAIMS[0].judge({"outcomes": outcomes}).decision == "yes"


def better_than_guessing(rows: pd.DataFrame) -> Estimate:
    """Balanced accuracy, the mean over classes of the share of their texts that are right, less 1/K.

    Whoever does not look at the texts gets 1/K at most in the mean, however skewed the classes are: always the same
    class gets all texts of one class right and none of the others. The interval is the wider of that of the shares and
    that of chance: what decisions dealt out to the texts anew get, whatever the classes and how rare they are.
    """
    hits = pd.Series(rows["label"] == rows["decision"]).groupby(rows["label"]).agg(["sum", "size"])
    found = mean_of_shares(hits["sum"].tolist(), hits["size"].tolist(), level=SURE)
    guessed = 1 / len(hits)
    value = found.value - guessed
    least, most = np.quantile(_by_chance(rows), [(1 - SURE) / 2, (1 + SURE) / 2])
    return replace(
        found,
        value=value,
        low=max(-guessed, min(found.low - guessed, value - float(most))),
        high=min(1 - guessed, max(found.high - guessed, value - float(least))),
        over=f"them at the {SURE:.0%} level",
    )


def _by_chance(rows: pd.DataFrame) -> np.ndarray:
    """The number that the same decisions would get if they were dealt out to the texts at random, many times."""
    labels, decisions = pd.factorize(rows["label"])[0], rows["decision"].to_numpy()
    names, sizes = np.asarray(pd.unique(rows["label"])), np.bincount(labels)
    rng = np.random.default_rng(0)
    dealt = (names[labels] == rng.permutation(decisions) for _ in range(DEALS))
    hits = (np.bincount(labels, weights=right, minlength=len(sizes)) for right in dealt)
    return np.array([float((some / sizes).mean() - 1 / len(sizes)) for some in hits])


def _sign_share(tokens: pd.DataFrame) -> Estimate:
    signs = right_signs(tokens)
    return share(int(signs.sum()), len(signs)) if len(signs) else too_few(0)


def _matched_lifts(weights: pd.DataFrame) -> Estimate:
    """Of the logarithms: what is freed from frequency is a factor of an even share."""
    return matched_separation(weights.assign(lift=np.log(weights["lift"].clip(lower=SMALLEST_LIFT))), "lift")


_FEW_WORDS = (
    f"There are too few words to tell: {FEWEST} are needed that clearly belong to a class and {FEWEST} that {{}}. More "
    "texts may help, or fewer classes."
)
_FEW_MATCHED = _FEW_WORDS.format("all classes use alike, of about the same frequency")
_FEW = _FEW_WORDS.format("clearly belong to none")
_FEW_TEXTS = f"There are too few test texts to tell whether the model has learned anything: {FEWEST} are needed."

_on_outcomes = partial(Claim, table="outcomes", sides=("texts",), least=FEWEST, span=(-1.0, 1.0), silence=_FEW_TEXTS)
_on_tokens = partial(Claim, table="tokens", sides=BOTH, least=FEWEST, silence=_FEW, threshold=0.7)
_on_weights = partial(_on_tokens, table="weights")

CLAIMS = named(
    M1=_on_outcomes(
        statement="The model tells the classes apart better than guessing does.",
        statistic="balanced test accuracy (the mean of the classes' own) less 1/K, the most that guessing gets",
        threshold=0.0,
        estimate=better_than_guessing,
        found="the share of a class's texts that the model gets right is",
        yes="There is something to explain: {found} {:.2f} above that of guessing, in the mean over classes.",
        no="There is nothing to explain: {found} below that of guessing ({:+.2f} in the mean over classes).",
        unsure="It is not shown that there is anything to explain: {found} {:+.2f} against guessing, in the mean over "
        "classes, which cannot be told from none.",
        doubt="",
    ),
    C1=_on_tokens(
        statement="The polarity score of a token has the sign of its group.",
        statistic="share of polar tokens with the right sign",
        threshold=RIGHT,
        estimate=_sign_share,
        found="{only}{:.1%} of the clearly polar words push towards their own class",
        yes="What the model uses follows the data: {found}.",
        no="What the model uses does not follow the data: {found}.",
        doubt="; that is too close to the line of 80 %, or rests on too few words, to call (it takes "
        f"{ALL_RIGHT} that all do).",
        sides=BOTH[:1],
    ),
    C2=_on_tokens(
        statement="Polarity tokens have larger attention scores than neutral tokens.",
        statistic="AUC of attention scores, polar against neutral tokens",
        estimate=separation,
        found="a polar word has a larger attention score than a neutral one in {only}{:.1%} of all pairs",
        yes="Attention singles out the words that matter: {found}.",
        no="Attention does not single out the words that matter: {found} (50 % is chance).",
    ),
    C2b=_on_tokens(
        statement="At equal frequency, polarity tokens have larger attention scores than tokens that all classes use "
        "alike.",
        statistic="AUC of attention scores, polar against evenly used tokens, within strata of frequency",
        estimate=matched_separation,
        found="among words of about the same frequency, a polar one has a larger attention score than one that all "
        "classes use alike in {only}{:.1%} of all pairs",
        yes="It is not how frequent they are: a polar word has a larger attention score than a word of about the same "
        "frequency that all classes use alike in {:.1%} of all pairs.",
        no="{found} (50 % is chance).",
        silence=_FEW_MATCHED,
        sides=MATCHED,
    ),
    C8=_on_weights(
        statement="Polarity tokens get larger attention weights on test text.",
        statistic="AUC of mean test attention weights, polar against neutral tokens",
        estimate=partial(separation, column="weight"),
        found="a polar word gets more weight than a neutral one in {only}{:.1%} of all pairs",
        yes="On unseen text the weights show it too: {found}.",
        no="On unseen text the weights do not show it: {found} (50 % is chance). Weights are small where texts are "
        "long, whatever attention does; C8b leaves the length out.",
        unsure="On unseen text {found}",
    ),
    C8b=_on_weights(
        statement="Against an even share of a test text's attention, polarity tokens get more than neutral tokens.",
        statistic="AUC of mean test attention over an even share (α · n), polar against neutral tokens",
        estimate=partial(separation, column="lift"),
        found="than a neutral one in {only}{:.1%} of all pairs",
        yes="On unseen text attention goes to these words, however long the text is: a polar word gets more of an "
        "even share {found}.",
        no="On unseen text attention does not go to these words: a polar word gets more of an even share {found} (50 % "
        "is chance).",
        unsure="On unseen text a polar word gets more of an even share of attention {found}",
    ),
    C8c=_on_weights(
        statement="At equal frequency, polarity tokens get more of an even share of a test text's attention than "
        "tokens that all classes use alike.",
        statistic="AUC of mean test attention over an even share (α · n), polar against evenly used tokens, within "
        "strata of frequency",
        estimate=_matched_lifts,
        found="than a word of about the same frequency that all classes use alike in {only}{:.1%} of all pairs",
        yes="On unseen text attention goes to these words, however long the text and however frequent the word is: a "
        "polar word gets more of an even share {found}.",
        no="On unseen text attention does not go to these words: a polar word gets more of an even share {found} (50 % "
        "is chance).",
        unsure="On unseen text a polar word gets more of an even share of attention {found}",
        silence=_FEW_MATCHED,
        sides=MATCHED,
    ),
)
