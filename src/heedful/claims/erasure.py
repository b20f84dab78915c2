"""Claims of Serrano & Smith 2019 about erasing attention weights, and ours about the true minimum.

S1–S6 and S9–S11 can be judged on one model, a user's own; S7, S8 and S12 are of models by name (HANrnn, HANconv,
HANnoenc, FLANrnn, …) and say so where the tables hold none. The numbers of one run are in
`heedful.claims.erasure_estimates`; how they are put together over seeds and models, in
`heedful.claims.erasure_together`.
"""

from heedful.claims.erasure_estimates import (
    UPSWING,
    attained,
    earlier_upswing,
    later_flip,
    lead_taken,
    less_mass,
    more_flips,
    more_lead_than_chance,
    more_top_flips,
    positive_divergence,
    smaller_difference,
    sooner,
    sooner_than_chance,
    top_only,
    unmoved,
    wins,
)
from heedful.claims.erasure_together import DIFFERENCES, contrast, over_runs, remarked
from heedful.claims.kinds import FEWEST, Claim

MAJORITY = 0.75
"""What the paper calls the vast majority: three of four, half way from chance to always."""

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

_FEW = (
    f"There are too few texts to tell: {FEWEST} of two units or more are needed on which the erasures differ. More "
    "test texts may help."
)
_UNFLIPPED = (
    f"There are too few texts to tell: {FEWEST} are needed whose decision flips before all is erased. More test texts "
    "may help."
)
_NONE = "This compares models, and the tables do not hold those that it takes"
_MODELS = f"{_NONE}, or too few texts on which they can be compared."

CLAIMS = (
    Claim(
        name="S1",
        statement="The most attended unit matters more than a random other unit.",
        statistic="share of instances with ΔJS > 0",
        threshold=MAJORITY,
        needs=("single",),
        estimate=over_runs("single", positive_divergence),
        words={
            "yes": "The most attended unit matters more than a random other one: erasing it moves the output "
            "further in {found.value:.1%} of the texts.",
            "no": "The most attended unit is often not the one that matters: erasing it moves the output "
            "further than erasing a random other one in only {found.value:.1%} of the texts (50 % is chance).",
            "not shown": "Erasing the most attended unit moves the output further than erasing a random other one in "
            "{found.value:.1%} of the texts; that is too close to the line of 75 %, or rests on too few, to call.",
        },
        silence=_FEW,
        sides=("texts",),
    ),
    Claim(
        name="S2",
        statement="Where a random unit matters more than the most attended one, their attention is nearly equal.",
        statistic="P(Δα is smaller where ΔJS is negative than where it is positive)",
        threshold=0.7,  # the line of C2 above which one set clearly exceeds the other
        needs=("single",),
        estimate=over_runs("single", smaller_difference),
        words={
            "yes": "Attention errs where it is nearly undecided: in {found.value:.1%} of all pairs the text in which "
            "a random unit mattered more has the smaller gap between the two weights.",
            "no": "Attention errs also where it is sure: only in {found.value:.1%} of all pairs the text in "
            "which a random unit mattered more has the smaller gap between the two weights (50 % is chance).",
            "not shown": "In {found.value:.1%} of all pairs the text in which a random unit mattered more has the "
            "smaller gap between the two weights; that is too close to the line of 70 %, or rests on too few texts.",
        },
        silence=f"There are too few texts to tell: {FEWEST} are needed in which a random unit mattered more, and "
        f"{FEWEST} in which the most attended did. More test texts may help.",
        sides=("texts where the top unit mattered more", "texts where the random one did"),
    ),
    Claim(
        name="S3",
        statement="Erasing the most attended unit alone flips far more decisions than erasing a random other one.",
        statistic="share of the top unit among instances where exactly one of the two erasures flips",
        threshold=2 / 3,  # two to one; in the paper's Table 2 it is 2.8 to 8.7 to one
        needs=("single",),
        estimate=over_runs("single", top_only),
        words={
            "yes": "When erasing one unit changes the decision, it is the most attended one in {found.value:.1%} of "
            "the cases, not a random one.",
            "no": "When erasing one unit changes the decision, it is the most attended one in only "
            "{found.value:.1%} of the cases, else a random one.",
            "not shown": "When erasing one unit changes the decision, it is the most attended one in "
            "{found.value:.1%} of the cases; that is too close to two in three, or rests on too few texts, to call.",
        },
        silence=_FEW,
        sides=("texts",),
    ),
    Claim(
        name="S4",
        statement="Erasing the most attended unit mostly changes no decision.",
        statistic="share of decisions that stay without the most attended unit",
        threshold=MAJORITY,
        needs=("single",),
        estimate=over_runs("single", unmoved),
        words={
            "yes": "One unit is not the reason: without the most attended one {found.value:.1%} of the decisions "
            "stay as they were.",
            "no": "The most attended unit often decides alone: without it only {found.value:.1%} of the "
            "decisions stay as they were.",
            "not shown": "Without the most attended unit {found.value:.1%} of the decisions stay as they were; that is "
            "too close to the line of 75 %, or rests on too few texts, to call.",
        },
        silence=_FEW,
        sides=("texts",),
    ),
    Claim(
        name="S5",
        statement="Gradients find smaller sets of units that flip the decision than attention does.",
        statistic="share of wins over attention where counts differ: the weaker of gradient and product (with encoder)",
        threshold=0.5,  # more wins than losses
        needs=("flips",),
        estimate=over_runs("flips", wins("gradient", "attention"), wins("product", "attention"), encoder=True),
        words={
            "yes": "Attention is not the best guide: by gradient, alone or times attention, the decision flips with "
            "fewer units in at least {found.value:.1%} of the texts where they differ.",
            "no": "Gradients are no better a guide than attention: by gradient, alone or times attention, "
            "the decision flips with fewer units in only {found.value:.1%} of the texts where they differ.",
            "not shown": "By gradient, alone or times attention, the decision flips with fewer units than by attention "
            "in {found.value:.1%} of the texts where they differ; that cannot be told from half, or rests on too few.",
        },
        silence=_FEW,
        sides=("texts",),
    ),
    Claim(
        name="S5b",
        statement="In every model with an encoder the gradient wins over attention at least "
        f"{FASTER_BY_GRADIENT} times as often as it loses.",
        statistic="share of wins of gradient over attention where counts differ, in the model where it is smallest",
        threshold=FASTER_SHARE,
        needs=("flips",),
        estimate=remarked(
            over_runs("flips", wins("gradient", "attention"), every=True, encoder=True),
            "flips",
            sooner("gradient", "attention"),
            above=0.5,
            encoder=True,
            words="It does so in more than half of all texts in {those} of {models} models (in the paper in "
            f"{MOSTLY_FASTER_BY_GRADIENT[0]} of {MOSTLY_FASTER_BY_GRADIENT[1]}).",
        ),
        words={
            "yes": "By gradient the decision flips with fewer units than by attention in {found.value:.1%} of the "
            "texts where the two differ, even in the model where it does so least: more than 1.6 to one.{found.remark}",
            "no": "By gradient the decision flips with fewer units than by attention in only "
            "{found.value:.1%} of the texts where the two differ, in the model where it does so least: less than 1.6 "
            "to one.{found.remark}",
            "not shown": "By gradient the decision flips with fewer units than by attention in {found.value:.1%} of "
            "the texts where the two differ, in the model where it does so least; that or another model is too close "
            "to 1.6 to one, or rests on too few texts, to call.{found.remark}",
        },
        silence=_FEW,
        sides=("texts",),
    ),
    Claim(
        name="S6",
        statement="Attention finds smaller sets of units that flip the decision than chance does.",
        statistic="P(attention flips the decision with fewer units than a random order), equal numbers counting half",
        threshold=0.5,
        needs=("flips",),
        estimate=over_runs("flips", sooner_than_chance("attention")),
        words={
            "yes": "Attention is better than chance: by attention the decision flips with fewer units than in "
            "random order in {found.value:.1%} of all comparisons (50 % is chance).",
            "no": "Attention is worse than chance: by attention the decision flips with fewer units than in random "
            "order in only {found.value:.1%} of all comparisons (50 % is chance).",
            "not shown": "By attention the decision flips with fewer units than in random order in {found.value:.1%} "
            "of all comparisons; that cannot be told from chance, 50 %.",
        },
        silence=_FEW,
        sides=("texts",),
    ),
    Claim(
        name="S6b",
        statement="The most attended units hold more of what decides than as many random ones.",
        statistic="P(more of the decision's lead goes with the most attended units than with as many random ones), "
        "equal shares counting half",
        threshold=0.5,
        needs=("flips",),
        estimate=over_runs("flips", more_lead_than_chance("attention")),
        words={
            "yes": "The most attended units hold more of what decides than chance: without them a decision loses more "
            "of its lead than without as many random ones in {found.value:.1%} of all comparisons (50 % is chance).",
            "no": "The most attended units hold less of what decides than chance: without them a decision loses more "
            "of its lead than without as many random ones in only {found.value:.1%} of all comparisons (50 % is "
            "chance).",
            "not shown": "Without the most attended units a decision loses more of its lead than without as many "
            "random ones in {found.value:.1%} of all comparisons; that cannot be told from chance, 50 %.",
        },
        silence=_UNFLIPPED,
        sides=("texts",),
    ),
    Claim(
        name="S7",
        statement="Decisions flip later with a recurrent encoder than with a convolutional one.",
        statistic="mean fraction erased at the flip, on the texts that both flip: rnn minus conv",
        threshold=0.0,
        needs=("flips",),
        estimate=contrast("flips", later_flip, ("rnn", "conv")),
        words={
            "yes": "A recurrent encoder spreads the evidence: {found.value:.1%} more of the units must go than with "
            "a convolutional one.",
            "no": "A recurrent encoder does not spread the evidence more: {found.value:+.1%} of the units "
            "against a convolutional one.",
            "not shown": "With a recurrent encoder {found.value:+.1%} of the units must go against a convolutional "
            "one; that cannot be told from none.",
        },
        silence=_MODELS,
        sides=("texts",),
        span=DIFFERENCES,
    ),
    Claim(
        name="S7b",
        statement="Decisions flip earliest without an encoder.",
        statistic="mean fraction erased at the flip, on the texts that both flip: conv minus no encoder",
        threshold=0.0,
        needs=("flips",),
        estimate=contrast("flips", later_flip, ("conv", "noenc")),
        words={
            "yes": "Without an encoder decisions hang on few units: {found.value:.1%} fewer of them must go than "
            "with a convolutional one.",
            "no": "Without an encoder decisions do not hang on fewer units: the difference to a "
            "convolutional one is {found.value:+.1%}.",
            "not shown": "Without an encoder {found.value:+.1%} fewer units must go than with a convolutional one; "
            "that cannot be told from none.",
        },
        silence=_MODELS,
        sides=("texts",),
        span=DIFFERENCES,
    ),
    Claim(
        name="S8",
        statement="Without an encoder attention is on a par with the gradient.",
        statistic="share of wins of attention over gradient where counts differ (no encoder)",
        threshold=1 - FASTER_SHARE,  # below, the gradient wins as it does with every encoder of the paper
        needs=("flips",),
        estimate=over_runs("flips", wins("attention", "gradient"), encoder=False),
        words={
            "yes": "Without an encoder attention is about as good a guide as the gradient: it needs fewer units in "
            "{found.value:.1%} of the texts where they differ.",
            "no": "Even without an encoder attention is a worse guide than the gradient: it needs fewer "
            "units in only {found.value:.1%} of the texts where they differ.",
            "not shown": "Without an encoder attention needs fewer units than the gradient in {found.value:.1%} of "
            "the texts where they differ; that is too close to 1 to 1.6 to call.",
        },
        silence=_MODELS,
        sides=("texts",),
    ),
    Claim(
        name="S8b",
        statement="Without an encoder the product of gradient and attention is the best ranking.",
        statistic="share of wins of product where counts differ: the weaker of those over attention and gradient "
        "(no encoder)",
        threshold=0.5,
        needs=("flips",),
        estimate=over_runs("flips", wins("product", "attention"), wins("product", "gradient"), encoder=False),
        words={
            "yes": "Without an encoder the product of gradient and attention is the best guide: it needs fewer units "
            "than either in at least {found.value:.1%} of the texts where they differ.",
            "no": "Without an encoder the product is not the best guide: it needs fewer units than one of "
            "its factors in only {found.value:.1%} of the texts where they differ.",
            "not shown": "Without an encoder the product needs fewer units than one of its factors in "
            "{found.value:.1%} of the texts where they differ; that cannot be told from half, or rests on too few.",
        },
        silence=_MODELS,
        sides=("texts",),
    ),
    *(
        Claim(
            name=name,
            statement=f"{title} {often} finds a smallest set of units that flips the decision.",
            statistic=f"share of instances where {by} attains the true minimum, of those where it could miss it",
            threshold=threshold,
            needs=("flips",),
            estimate=over_runs("flips", attained(by)),
            words={
                "yes": f"{title} {often} finds a smallest explanation: in {{found.value:.1%}} of the texts no fewer "
                "units would flip the decision.",
                "no": f"{title} does not {often} find a smallest explanation: in {{found.value:.1%}} of the "
                "texts no fewer units would flip the decision.",
                "not shown": f"{title} finds a smallest explanation in {{found.value:.1%}} of the texts; that is too "
                f"close to the line of {threshold:.0%}, or rests on too few texts, to call.",
            },
            silence=_UNFLIPPED,
            sides=("texts",),
        )
        for name, by, title, often, threshold in (
            ("S9", "attention", "Attention", "mostly", 0.5),
            ("S9b", "gradient", "The gradient", "mostly", 0.5),
            ("S9c", "product", "The product of gradient and attention", "mostly", 0.5),
            ("S9d", "margin", "The margin against the runner-up", "nearly always", 0.9),  # always, with two classes
        )
    ),
    Claim(
        name="S13",
        statement="The most attended units are those that the decision rests on.",
        statistic="share of the lead that a text gives to its decision, gone with the most attended units, as many as "
        "the minimum has",
        threshold=MAJORITY,
        needs=("flips",),
        estimate=over_runs("flips", lead_taken("attention")),
        words={
            "yes": "Decisions rest on what is attended to: without the most attended units, as many as are provably "
            "enough to flip it, a decision loses {found.value:.1%} of the lead that its text gives it in the mean (one "
            "that grows counts as none lost).",
            "no": "Decisions rest on other units than the most attended ones: without these, as many as are provably "
            "enough to flip it, a decision loses only {found.value:.1%} of the lead that its text gives it in the mean "
            "(one that grows counts as none lost).",
            "not shown": "Without the most attended units, as many as are provably enough to flip it, a decision loses "
            "{found.value:.1%} of the lead that its text gives it in the mean; that is too close to the line of 75 %, "
            "or rests on too few texts, to call.",
        },
        silence=_UNFLIPPED,
        sides=("texts",),
    ),
    Claim(
        name="S14",
        statement="Margins against the runner-up find smaller sets that flip the decision than attention does.",
        statistic="share of wins of margin over attention where counts differ",
        threshold=0.5,
        needs=("flips",),
        estimate=over_runs("flips", wins("margin", "attention")),
        words={
            "yes": "By margin, what each unit gives to the decision over the runner-up, the decision flips with fewer "
            "units than by attention in {found.value:.1%} of the texts where they differ.",
            "no": "Margins are no better a guide than attention: by margin the decision flips with fewer units in only "
            "{found.value:.1%} of the texts where they differ.",
            "not shown": "By margin the decision flips with fewer units than by attention in {found.value:.1%} of the "
            "texts where they differ; that cannot be told from half, or rests on too few.",
        },
        silence=_FEW,
        sides=("texts",),
    ),
    Claim(
        name="S10",
        statement="The top unit of gradient times attention flips more decisions alone than the most attended one, in "
        "every model.",
        statistic="share of decisions flipped by the top unit: product minus attention, where it is smallest",
        threshold=0.0,
        needs=("single",),
        estimate=remarked(
            over_runs("single", more_top_flips("product", "attention"), every=True, within=DIFFERENCES),
            "single",
            more_top_flips("attention", "gradient"),
            above=0.0,
            words="So it is in the model where the difference is smallest. The gradient's top unit flips fewer than "
            "attention's in {those} of {models} models (in the paper in "
            f"{GRADIENT_TOP_FLIPS_LESS[0]} of {GRADIENT_TOP_FLIPS_LESS[1]}).",
        ),
        words={
            "yes": "Gradient times attention finds the deciding unit more often than attention: erasing its top "
            "unit flips {found.value:.1%} more of the decisions.{found.remark}",
            "no": "Gradient times attention does not find the deciding unit more often than attention: the "
            "difference is {found.value:+.1%} of the decisions.{found.remark}",
            "not shown": "Erasing the top unit by gradient times attention flips {found.value:+.1%} of the decisions "
            "against the most attended one; that cannot be told from none.{found.remark}",
        },
        silence=_FEW,
        sides=("texts",),
        span=(-0.5, 0.5),
    ),
    Claim(
        name="S11",
        statement="Gradients flip decisions with about .25 less of the attention erased.",
        statistic="mean attention weight erased at the flip: attention minus gradient or product, the smaller",
        threshold=LESS_MASS - 0.05,  # which is still around it
        needs=("flips",),
        estimate=remarked(
            over_runs("flips", less_mass("gradient"), less_mass("product"), within=DIFFERENCES),
            "flips",
            less_mass("gradient"),
            less_mass("product"),
            above=LESS_MASS,
            words=f"It is more than {LESS_MASS} in {{those}} of {{models}} models (in the paper in most).",
        ),
        words={
            "yes": "What decides is not where attention lies: gradients flip the decision with {found.value:.2f} "
            "less of the attention erased.{found.remark}",
            "no": "What decides lies largely where attention does: gradients flip the decision with only "
            "{found.value:.2f} less of the attention erased.{found.remark}",
            "not shown": "Gradients flip the decision with {found.value:.2f} less of the attention erased; that is too "
            "close to the line of .2, or rests on too few texts, to call.{found.remark}",
        },
        silence=_FEW,
        sides=("texts",),
        span=DIFFERENCES,
    ),
    Claim(
        name="S12",
        statement="With less context the most attended unit matters at smaller differences of attention.",
        statistic=f"Δα where the median ΔJS passes {UPSWING} nats: rnn minus conv, conv minus no encoder, the smaller",
        threshold=0.0,
        needs=("single",),
        estimate=contrast("single", earlier_upswing, ("rnn", "conv"), ("conv", "noenc")),
        words={
            "yes": "The less context, the more attention means: from recurrent to convolutional to no encoder the "
            "most attended unit begins to matter at a lead in attention that is smaller by {found.value:.2f} or more "
            "at each step.",
            "no": "Less context does not make attention mean more: at one of the steps from recurrent to "
            "convolutional to no encoder the lead in attention at which the most attended unit begins to matter does "
            "not get smaller ({found.value:+.2f} smaller).",
            "not shown": "From recurrent to convolutional to no encoder the lead in attention at which the most "
            "attended unit begins to matter gets smaller by {found.value:.2f}, at the step where it does so least; "
            "that or the other step cannot be told from none.",
        },
        silence=f"{_NONE}, or too few texts with a lead in attention that matters.",
        sides=("texts",),
        span=DIFFERENCES,
    ),
    Claim(
        name="S12b",
        statement="Without an encoder single erasures flip more decisions.",
        statistic="share of decisions that one of two single erasures flips: no encoder minus rnn or conv, the smaller",
        threshold=0.0,
        needs=("single",),
        estimate=contrast("single", more_flips, ("noenc", "rnn"), ("noenc", "conv")),
        words={
            "yes": "Without an encoder decisions are more brittle: erasing one unit flips {found.value:.1%} more of "
            "them.",
            "no": "Without an encoder decisions are not more brittle: erasing one unit flips "
            "{found.value:+.1%} of them against the encoders.",
            "not shown": "Without an encoder erasing one unit flips {found.value:+.1%} of the decisions against the "
            "encoders; that cannot be told from none.",
        },
        silence=_MODELS,
        sides=("texts",),
        span=DIFFERENCES,
    ),
)

COMPARING = ("S7", "S7b", "S8", "S8b", "S12", "S12b")
"""Claims that are of models by name."""

OF_ONE_MODEL = tuple(claim.name for claim in CLAIMS if claim.name not in {*COMPARING, "S5b"})
"""Claims that one model can be judged by; S5b is of every model, and of one it says what S5 does."""
