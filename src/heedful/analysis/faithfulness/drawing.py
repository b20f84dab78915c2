"""Metrics that take away sets of units drawn by chance and see what the model says.

p is the probability of the class that is explained.
"""

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.analysis.faithfulness.metric import HIGHER, LOWER, NOTHING, SIZE, Answers, Case, Metric, so_many
from heedful.analysis.faithfulness.removal import Drawn, Question, drawn
from heedful.text.ragged import segment_sum

RETAINED = 0.25
"""The share of a text that soft metrics keep (or take away) on average, the same for every explanation."""

SOFT_DRAWS, SET_DRAWS = 16, 64


def retained(case: Case, share: float = RETAINED) -> Float[Tensor, " units"]:
    """Chances min(1, c a_i) of the units of each text that sum to the share of their number; a = score − smallest.

    What is left when all units above the smallest have chance one is spread evenly over the smallest ones.
    """
    units, scores = case.units, case.explanation.scores
    low, high = (torch.segment_reduce(scores, end, offsets=units.offsets)[units.segments] for end in ("min", "max"))
    own = (scores - low) / (high - low).where(high > low, 1.0)
    sure = torch.zeros_like(own, dtype=torch.bool)
    while True:
        room = share * units.lengths - segment_sum(sure.double(), units.offsets)
        rest = segment_sum(own.masked_fill(sure, 0), units.offsets)
        chances = own * (room / rest.where(rest > 0, 1.0))[units.segments]
        more = sure | (chances >= 1)
        if torch.equal(more, sure):
            break
        sure = more
    even = room / (units.lengths - segment_sum(sure.double(), units.offsets)).clamp(min=1)
    return chances.where(rest[units.segments] > 0, even[units.segments]).masked_fill(sure, 1.0)


def _soft_sets(case: Case) -> Drawn:
    return drawn(case.units, retained(case), draws=SOFT_DRAWS, seed=case.seed)


def _everything(case: Case) -> Question:
    return replace(case.top(1), sizes=case.units.lengths)


def _soft(case: Case, answers: Answers, *, kept: bool) -> Float[Tensor, " instances"]:
    """The mean over draws of the fall of p as a share of the fall without any units, or of what it leaves of that."""
    sets, empty = _soft_sets(case), case.own(answers[1], case.rows)
    most = (case.before - empty).where(case.before - empty > NOTHING, torch.nan)
    falls = (case.before[sets.rows] - case.own(answers[0], sets.rows)).clamp(min=0)
    found = (falls / most[sets.rows]).clamp(max=1)
    return expected(1 - found if kept else found, sets, case)


def expected(values: Float[Tensor, " sets"], sets: Drawn, case: Case) -> Float[Tensor, " instances"]:
    """The mean over the drawn sets of each text."""
    return values.new_zeros(len(case.units)).index_add_(0, sets.rows, sets.weights * values)


SOFT_ELSEWHERE = (
    "Zhao & Aletras drop elements of embeddings with the scores as chances; here whole units go, with chances "
    "c (score − smallest), 1 at most, whose mean is 25 % in every text for every explanation, so that larger scores "
    "buy nothing. EvalxNLP prints it as better when lower. Where p does not fall without any text there is no value. "
)


def _soft_metric(name: str, title: str, formula: str, *, kept: bool) -> Metric:
    def asks(case: Case) -> tuple[Question, ...]:
        sets = _soft_sets(case)
        return (replace(sets, gone=~sets.gone) if kept else sets, _everything(case))

    return Metric(
        name=name,
        title=title,
        formula=formula,
        source="Zhao & Aletras 2023; equal retained mass as in arXiv 2601.03089",
        direction=HIGHER,
        low=0,
        high=1,
        inflates="Clipping hides differences where any removal takes all of p's fall; the mean of few draws is noisy.",
        elsewhere=SOFT_ELSEWHERE,
        signs=SIZE,
        example=("3/5", "1/3"),
        asks=asks,
        sets=so_many(SOFT_DRAWS + 1),
        value=lambda case, answers: _soft(case, answers, kept=kept),
        chance=True,
    )


SOFT_SUFFICIENCY = _soft_metric(
    "soft_sufficiency",
    "Soft normalised sufficiency",
    "E max(0, 1 − max(0, p(x) − p(x')) / (p(x) − p(no units))), x' keeps unit i with chance q_i",
    kept=True,
)
SOFT_COMPREHENSIVENESS = _soft_metric(
    "soft_comprehensiveness",
    "Soft normalised comprehensiveness",
    "E min(1, max(0, p(x) − p(x')) / (p(x) − p(no units))), x' loses unit i with chance q_i",
    kept=False,
)


def _even_sets(case: Case) -> Drawn:
    """Every unit gone with chance ½: the same sets for every explanation."""
    halves = torch.full((len(case.units.segments),), 0.5, dtype=torch.float64)
    return drawn(case.units, halves, draws=SET_DRAWS, seed=case.seed)


def _ask_even(case: Case) -> tuple[Question, ...]:
    return (_even_sets(case),)


def _sums_and_falls(case: Case, answers: Answers, sets: Drawn) -> tuple[Tensor, Tensor]:
    """Of every set the sum of its scores, in units of the text's largest, and by how much p falls."""
    places = case.units.of_rows(sets.rows)
    owners = torch.repeat_interleave(torch.arange(len(sets.rows)), case.units.lengths[sets.rows])
    largest = torch.segment_reduce(case.explanation.scores.abs(), "max", offsets=case.units.offsets)
    own = case.explanation.scores / largest.where(largest > 0, 1.0)[case.units.segments]
    sums = own.new_zeros(len(sets.rows)).index_add_(0, owners, own[places] * sets.gone)
    return sums, case.before[sets.rows] - case.own(answers[0], sets.rows)


def _infidelity(case: Case, answers: Answers) -> Float[Tensor, " instances"]:
    sets = _even_sets(case)
    sums, falls = _sums_and_falls(case, answers, sets)
    squares, products = (expected(values, sets, case) for values in (sums**2, sums * falls))
    scale = (products / squares.where(squares > 0, 1.0)).clamp(min=0)
    return expected((scale[sets.rows] * sums - falls) ** 2, sets, case)


INFIDELITY = Metric(
    name="infidelity",
    title="Infidelity",
    formula="min over β ≥ 0 of E (β Σ_{i∈S} s_i − (p(x) − p(x without S)))², S any set of units",
    source="Yeh et al. 2019",
    direction=LOWER,
    low=0,
    high=1,
    inflates="Where p hardly moves it is small for every explanation. It asks for additive scores: interactions cost.",
    elsewhere="Yeh et al. have no β; Captum scales on request, also with a negative β, to which an explanation upside "
    "down is as good as the right way up. Without a scale attention, whose sum is one, has no chance.",
    signs=SIZE,
    example=("1/480", "2747/43520"),
    asks=_ask_even,
    sets=so_many(SET_DRAWS),
    alike=True,
    value=_infidelity,
    chance=True,
)


def _correlation(case: Case, answers: Answers) -> Float[Tensor, " instances"]:
    sets = _even_sets(case)
    apart = [values - expected(values, sets, case)[sets.rows] for values in _sums_and_falls(case, answers, sets)]
    sums, falls, both = (expected(one * other, sets, case) for one, other in ((apart[0],) * 2, (apart[1],) * 2, apart))
    known = (sums > NOTHING**2) & (falls > NOTHING**2)
    return (both / (sums * falls).where(known, 1.0).sqrt()).clamp(-1, 1).where(known, torch.nan)


CORRELATION = Metric(
    name="correlation",
    title="Faithfulness correlation",
    formula="Pearson's r of Σ_{i∈S} s_i and p(x) − p(x without S) over sets S of units",
    source="Bhatt et al. 2020",
    direction=HIGHER,
    low=-1,
    high=1,
    inflates="Scores that are all alike correlate already with how much is gone.",
    elsewhere="Bhatt et al. draw sets of one size; here every unit is in a set with chance ½ (all sets of texts of six "
    "units or fewer, 64 of longer ones). Where the scores are all zero or p never moves there is no value.",
    signs=SIZE,
    example=("11*sqrt(10)/35", "sqrt(2)/12"),
    asks=_ask_even,
    sets=so_many(SET_DRAWS),
    alike=True,
    value=_correlation,
    chance=True,
)

DRAWING = (SOFT_COMPREHENSIVENESS, SOFT_SUFFICIENCY, INFIDELITY, CORRELATION)
