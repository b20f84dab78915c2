"""Claims of Serrano & Smith 2019 about erasing attention weights, and ours about the true minimum.

S1–S6 and S9–S11 can be judged on one model, a user's own; S7, S8 and S12 compare encoders and say so where the tables
hold none. The numbers of one run are in `heedful.claims.erasure_numbers`; how they are put together over seeds and
models, in `heedful.claims.combine`.
"""

from functools import partial

from heedful.analysis.statistics import FEWEST
from heedful.claims import erasure_numbers as numbers
from heedful.claims.claim import UNTOLD, UNTOLD_FROM_CHANCE, UNTOLD_FROM_HALF, Claim, close, named
from heedful.claims.combine import DIFFERENCES, OfRun, contrast, over_runs, remarked
from heedful.claims.erasure_numbers import UPSWING

MAJORITY = 0.75  # what the paper calls the vast majority: three of four, half way from chance to always

FASTER_BY_GRADIENT = 1.6
"""With every encoder at least so many times as many instances flip sooner by gradient as by attention (5.4)."""

FASTER_SHARE = FASTER_BY_GRADIENT / (1 + FASTER_BY_GRADIENT)
"""The same as a share of the instances where the two differ."""

MOSTLY_FASTER_BY_GRADIENT = (10, 16)
"""Of the models with encoders so many flip sooner by gradient on more than half of the instances (5.4)."""

LESS_MASS = 0.25
"""By around so much or more, for most models, gradient and product erase less attention than attention does (A.3)."""

GRADIENT_TOP_FLIPS_LESS = (14, 24)
"""Of all models so many where the gradient's top unit flips less often than attention's (A.3)."""


def _few(needed: str) -> str:
    return f"There are too few texts to tell: {FEWEST} {needed}. More test texts may help."


_FEW = _few("of two units or more are needed on which the erasures differ")
_UNFLIPPED = _few("are needed whose decision flips before all is erased")
_NONE = "This compares models, and the tables do not hold those that it takes"
_MODELS = f"{_NONE}, or too few texts on which they can be compared."

_on_single = partial(Claim, table="single", sides=("texts",), silence=_FEW)
_on_flips = partial(Claim, table="flips", sides=("texts",), silence=_FEW, threshold=0.5, doubt=UNTOLD_FROM_HALF)
_on_resting = partial(Claim, table="flips", sides=("texts",), silence=_UNFLIPPED)
_without_encoder = partial(_on_flips, silence=_MODELS)
_of_encoders = partial(_on_flips, silence=_MODELS, span=DIFFERENCES, threshold=0.0, doubt=UNTOLD)

_LESS_MASS = (partial(numbers.less_mass, "gradient"), partial(numbers.less_mass, "product"))


def _beats(first: str, second: str) -> OfRun:
    return partial(numbers.wins, first, second)


CLAIMS = named(
    S1=_on_single(
        statement="The most attended unit matters more than a random other unit.",
        statistic="share of instances with ΔJS > 0",
        threshold=MAJORITY,
        estimate=over_runs(numbers.positive_divergence),
        found="erasing the most attended unit moves the output further than erasing a random other one in {:.1%} of "
        "the texts",
        yes="The most attended unit matters more than a random other one: erasing it moves the output further in "
        "{:.1%} of the texts.",
        no="The most attended unit is often not the one that matters: erasing it moves the output further than "
        "erasing a random other one in only {:.1%} of the texts (50 % is chance).",
        doubt="; that is too close to the line of 75 %, or rests on too few, to call.",
    ),
    S2=_on_single(
        statement="Where a random unit matters more than the most attended one, their attention is nearly equal.",
        statistic="P(Δα is smaller where ΔJS is negative than where it is positive)",
        threshold=0.7,  # the line of C2 above which one set clearly exceeds the other
        estimate=over_runs(numbers.smaller_difference),
        found="in {:.1%} of all pairs the text in which a random unit mattered more has the smaller gap between the "
        "two weights",
        yes="Attention errs where it is nearly undecided: {found}.",
        no="Attention errs also where it is sure: only {found} (50 % is chance).",
        doubt="; that is too close to the line of 70 %, or rests on too few texts.",
        silence=_few(f"are needed in which a random unit mattered more, and {FEWEST} in which the most attended did"),
        sides=("texts where the top unit mattered more", "texts where the random one did"),
    ),
    S3=_on_single(
        statement="Erasing the most attended unit alone flips far more decisions than erasing a random other one.",
        statistic="share of the top unit among instances where exactly one of the two erasures flips",
        threshold=2 / 3,  # two to one; in the paper's Table 2 it is 2.8 to 8.7 to one
        estimate=over_runs(numbers.top_only),
        found="when erasing one unit changes the decision, it is the most attended one in {only}{:.1%} of the cases",
        yes="{found}, not a random one.",
        no="{found}, else a random one.",
        doubt=close("two in three", "texts"),
    ),
    S4=_on_single(
        statement="Erasing the most attended unit mostly changes no decision.",
        statistic="share of decisions that stay without the most attended unit",
        threshold=MAJORITY,
        estimate=over_runs(numbers.unmoved),
        found="without the most attended unit {:.1%} of the decisions stay as they were",
        yes="One unit is not the reason: without the most attended one {:.1%} of the decisions stay as they were.",
        no="The most attended unit often decides alone: without it only {:.1%} of the decisions stay as they were.",
        doubt=close(MAJORITY, "texts"),
    ),
    S5=_on_flips(
        statement="Gradients find smaller sets of units that flip the decision than attention does.",
        statistic="share of wins over attention where counts differ: the weaker of gradient and product (with encoder)",
        estimate=over_runs(_beats("gradient", "attention"), _beats("product", "attention"), encoder=True),
        found="by gradient, alone or times attention, the decision flips with fewer units",
        yes="Attention is not the best guide: {found} in at least {:.1%} of the texts where they differ.",
        no="Gradients are no better a guide than attention: {found} in only {:.1%} of the texts where they differ.",
        unsure="{found} than by attention in {:.1%} of the texts where they differ",
    ),
    S5b=_on_flips(
        statement="In every model with an encoder the gradient wins over attention at least "
        f"{FASTER_BY_GRADIENT} times as often as it loses.",
        statistic="share of wins of gradient over attention where counts differ, in the model where it is smallest",
        threshold=FASTER_SHARE,
        estimate=remarked(
            over_runs(_beats("gradient", "attention"), every=True, encoder=True),
            partial(numbers.sooner, "gradient", "attention"),
            above=0.5,
            encoder=True,
            words="It does so in more than half of all texts in {those} of {models} models (in the paper in "
            f"{MOSTLY_FASTER_BY_GRADIENT[0]} of {MOSTLY_FASTER_BY_GRADIENT[1]}).",
        ),
        found="by gradient the decision flips with fewer units than by attention in {only}{:.1%} of the texts where "
        "the two differ, ",
        yes="{found}even in the model where it does so least: more than 1.6 to one.",
        no="{found}in the model where it does so least: less than 1.6 to one.",
        unsure="{found}in the model where it does so least",
        doubt="; that or another model is too close to 1.6 to one, or rests on too few texts, to call.",
    ),
    S6=_on_flips(
        statement="Attention finds smaller sets of units that flip the decision than chance does.",
        statistic="P(attention flips the decision with fewer units than a random order), equal numbers counting half",
        estimate=over_runs(partial(numbers.sooner_than_chance, "attention")),
        found="by attention the decision flips with fewer units than in random order in {only}{:.1%} of all "
        "comparisons",
        yes="Attention is better than chance: {found} (50 % is chance).",
        no="Attention is worse than chance: {found} (50 % is chance).",
        doubt=UNTOLD_FROM_CHANCE,
    ),
    S6b=_on_resting(
        statement="The most attended units hold more of what decides than as many random ones.",
        statistic="P(more of the decision's lead goes with the most attended units than with as many random ones), "
        "equal shares counting half",
        threshold=0.5,
        estimate=over_runs(partial(numbers.more_lead_than_chance, "attention")),
        found="a decision loses more of its lead than without as many random ones in {only}{:.1%} of all comparisons",
        yes="The most attended units hold more of what decides than chance: without them {found} (50 % is chance).",
        no="The most attended units hold less of what decides than chance: without them {found} (50 % is chance).",
        unsure="Without the most attended units {found}",
        doubt=UNTOLD_FROM_CHANCE,
    ),
    S7=_of_encoders(
        statement="Decisions flip later with a recurrent encoder than with a convolutional one.",
        statistic="mean fraction erased at the flip, on the texts that both flip: rnn minus conv",
        estimate=contrast(numbers.later_flip, ("gru", "conv")),
        found="with a recurrent encoder {:+.1%} of the units must go against a convolutional one",
        yes="A recurrent encoder spreads the evidence: {:.1%} more of the units must go than with a convolutional one.",
        no="A recurrent encoder does not spread the evidence more: {:+.1%} of the units against a convolutional one.",
    ),
    S7b=_of_encoders(
        statement="Decisions flip earliest without an encoder.",
        statistic="mean fraction erased at the flip, on the texts that both flip: conv minus no encoder",
        estimate=contrast(numbers.later_flip, ("conv", "none")),
        found="without an encoder {:+.1%} fewer units must go than with a convolutional one",
        yes="Without an encoder decisions hang on few units: {:.1%} fewer of them must go than with a convolutional "
        "one.",
        no="Without an encoder decisions do not hang on fewer units: the difference to a convolutional one is {:+.1%}.",
    ),
    S8=_without_encoder(
        statement="Without an encoder attention is on a par with the gradient.",
        statistic="share of wins of attention over gradient where counts differ (no encoder)",
        threshold=1 - FASTER_SHARE,  # below, the gradient wins as it does with every encoder of the paper
        estimate=over_runs(_beats("attention", "gradient"), encoder=False),
        found="it needs fewer units in {only}{:.1%} of the texts where they differ",
        yes="Without an encoder attention is about as good a guide as the gradient: {found}.",
        no="Even without an encoder attention is a worse guide than the gradient: {found}.",
        unsure="Without an encoder attention needs fewer units than the gradient in {:.1%} of the texts where they "
        "differ",
        doubt=close("1 to 1.6"),
    ),
    S8b=_without_encoder(
        statement="Without an encoder the product of gradient and attention is the best ranking.",
        statistic="share of wins of product where counts differ: the weaker of those over attention and gradient (no "
        "encoder)",
        estimate=over_runs(_beats("product", "attention"), _beats("product", "gradient"), encoder=False),
        found="needs fewer units than one of its factors in {only}{:.1%} of the texts where they differ",
        yes="Without an encoder the product of gradient and attention is the best guide: it needs fewer units than "
        "either in at least {:.1%} of the texts where they differ.",
        no="Without an encoder the product is not the best guide: it {found}.",
        unsure="Without an encoder the product {found}",
    ),
    **{
        name: _on_resting(
            statement=f"{title} {often} finds a smallest set of units that flips the decision.",
            statistic=f"share of instances where {by} attains the true minimum, of those where it could miss it",
            threshold=threshold,
            estimate=over_runs(partial(numbers.attained, by)),
            found="in {:.1%} of the texts",
            yes=f"{title} {often} finds a smallest explanation: {{found}} no fewer units would flip the decision.",
            no=f"{title} does not {often} find a smallest explanation: {{found}} no fewer units would flip the "
            "decision.",
            unsure=f"{title} finds a smallest explanation {{found}}",
            doubt=close(threshold, "texts"),
        )
        for name, by, title, often, threshold in (
            ("S9", "attention", "Attention", "mostly", 0.5),
            ("S9b", "gradient", "The gradient", "mostly", 0.5),
            ("S9c", "product", "The product of gradient and attention", "mostly", 0.5),
            ("S9d", "margin", "The margin against the runner-up", "nearly always", 0.9),  # always, with two classes
        )
    },
    S13=_on_resting(
        statement="The most attended units are those that the decision rests on.",
        statistic="share of the lead that a text gives to its decision, gone with the most attended units, as many as "
        "the minimum has",
        threshold=MAJORITY,
        estimate=over_runs(partial(numbers.lead_taken, "attention")),
        found="as many as are provably enough to flip it, a decision loses {only}{:.1%} of the lead that its text "
        "gives it in the mean",
        yes="Decisions rest on what is attended to: without the most attended units, {found} (one that grows counts as "
        "none lost).",
        no="Decisions rest on other units than the most attended ones: without these, {found} (one that grows counts "
        "as none lost).",
        unsure="Without the most attended units, {found}",
        doubt=close(MAJORITY, "texts"),
    ),
    S14=_on_flips(
        statement="Margins against the runner-up find smaller sets that flip the decision than attention does.",
        statistic="share of wins of margin over attention where counts differ",
        estimate=over_runs(_beats("margin", "attention")),
        found="the decision flips with fewer units than by attention in {:.1%} of the texts where they differ",
        yes="By margin, what each unit gives to the decision over the runner-up, {found}.",
        no="Margins are no better a guide than attention: by margin the decision flips with fewer units in only "
        "{:.1%} of the texts where they differ.",
        unsure="By margin {found}",
    ),
    S10=_on_single(
        statement="The top unit of gradient times attention flips more decisions alone than the most attended one, in "
        "every model.",
        statistic="share of decisions flipped by the top unit: product minus attention, where it is smallest",
        threshold=0.0,
        estimate=remarked(
            over_runs(partial(numbers.more_top_flips, "product", "attention"), every=True, within=DIFFERENCES),
            partial(numbers.more_top_flips, "attention", "gradient"),
            above=0.0,
            words="So it is in the model where the difference is smallest. The gradient's top unit flips fewer than "
            "attention's in {those} of {models} models (in the paper in "
            f"{GRADIENT_TOP_FLIPS_LESS[0]} of {GRADIENT_TOP_FLIPS_LESS[1]}).",
        ),
        found="erasing the top unit by gradient times attention flips {:+.1%} of the decisions against the most "
        "attended one",
        yes="Gradient times attention finds the deciding unit more often than attention: erasing its top unit flips "
        "{:.1%} more of the decisions.",
        no="Gradient times attention does not find the deciding unit more often than attention: the difference is "
        "{:+.1%} of the decisions.",
        doubt=UNTOLD,
        span=(-0.5, 0.5),
    ),
    S11=_on_flips(
        statement="Gradients flip decisions with about .25 less of the attention erased.",
        statistic="mean attention weight erased at the flip: attention minus gradient or product, the smaller",
        threshold=LESS_MASS - 0.05,  # which is still around it
        estimate=remarked(
            over_runs(*_LESS_MASS, within=DIFFERENCES),
            *_LESS_MASS,
            above=LESS_MASS,
            words=f"It is more than {LESS_MASS} in {{those}} of {{models}} models (in the paper in most).",
        ),
        found="gradients flip the decision with {only}{:.2f} less of the attention erased",
        yes="What decides is not where attention lies: {found}.",
        no="What decides lies largely where attention does: {found}.",
        doubt=close("the line of .2", "texts"),
        span=DIFFERENCES,
    ),
    S12=_of_encoders(
        statement="With less context the most attended unit matters at smaller differences of attention.",
        statistic=f"Δα where the median ΔJS passes {UPSWING} nats: rnn minus conv, conv minus no encoder, the smaller",
        estimate=contrast(numbers.earlier_upswing, ("gru", "conv"), ("conv", "none")),
        found="from recurrent to convolutional to no encoder the lead in attention at which the most attended unit "
        "begins to matter gets smaller by {:.2f}, at the step where it does so least; that or the other step cannot "
        "be told from none.",
        yes="The less context, the more attention means: from recurrent to convolutional to no encoder the most "
        "attended unit begins to matter at a lead in attention that is smaller by {:.2f} or more at each step.",
        no="Less context does not make attention mean more: at one of the steps from recurrent to convolutional to no "
        "encoder the lead in attention at which the most attended unit begins to matter does not get smaller ({:+.2f} "
        "smaller).",
        table="single",
        doubt="",
        silence=f"{_NONE}, or too few texts with a lead in attention that matters.",
    ),
    S12b=_of_encoders(
        statement="Without an encoder single erasures flip more decisions.",
        statistic="share of decisions that one of two single erasures flips: no encoder minus rnn or conv, the smaller",
        estimate=contrast(numbers.more_flips, ("none", "gru"), ("none", "conv")),
        found="erasing one unit flips {:+.1%} of the decisions against the encoders",
        yes="Without an encoder decisions are more brittle: erasing one unit flips {:.1%} more of them.",
        no="Without an encoder decisions are not more brittle: erasing one unit flips {:+.1%} of them against the "
        "encoders.",
        unsure="Without an encoder {found}",
        table="single",
    ),
)

COMPARING = ("S7", "S7b", "S8", "S8b", "S12", "S12b")  # claims that compare encoders, or are of models without one

OF_ONE_MODEL = tuple(claim.name for claim in CLAIMS if claim.name not in {*COMPARING, "S5b"})
"""Claims that one model can be judged by; S5b is of every model, and of one it says what S5 does."""
