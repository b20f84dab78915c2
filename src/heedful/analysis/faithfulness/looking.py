"""Metrics that look at an explanation and never at the model: its shape, other explanations, what people say, cost."""

from itertools import pairwise

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.analysis.agreement import agree, tops_of
from heedful.analysis.faithfulness.metric import (
    HIGHER,
    LOWER,
    MAGNITUDE,
    NEITHER,
    ORDER,
    SIZE,
    Answers,
    Case,
    Metric,
)
from heedful.analysis.rankings import sorted_units
from heedful.errors import InputError
from heedful.text.ragged import segment_sum

NOISES = 8
TOP = 0.2
OVERLAP = 0.5
"""Two stretches of units are the same when they share at least half of what either has."""

BLIND = "It never sees the model: a useless explanation can have any value of it."


def _under_noise(case: Case, noise: int) -> Float[Tensor, " units"]:
    """The scores of the same units under the noise of a number."""
    assert case.again is not None
    found = case.again(noise)
    if not torch.equal(found.offsets, case.units.offsets):
        raise InputError(f"What again= gives for '{case.explanation.method}' must explain the same units of its texts.")
    return found.scores


def _sensitivity(case: Case, _: Answers) -> Float[Tensor, " instances"]:
    scores = case.explanation.scores
    apart = [case.total((_under_noise(case, noise) - scores) ** 2) for noise in range(NOISES)]
    size = case.total(scores**2)
    return (torch.stack(apart).amax(0) / size.where(size > 0, torch.nan)).sqrt()


SENSITIVITY = Metric(
    name="sensitivity",
    title="Sensitivity to noise",
    formula="max over eight noises of ‖s' − s‖ / ‖s‖, s' the scores under a small noise",
    source="Yeh et al. 2019",
    direction=LOWER,
    low=0,
    high=None,
    inflates="A constant explanation has none. A larger noise gives larger values.",
    elsewhere="Captum and Quantus add noise of one size to every number of the input. `heedful.explainers.noise` moves "
    "the vector of each token by 5 % of its length, and no word becomes another; any other `again` has its own noise.",
    signs=SIZE,
    example=("1/sqrt(5)", "sqrt(2)/6"),
    value=_sensitivity,
    needs=("again",),
)


def _gini(case: Case, _: Answers) -> Float[Tensor, " instances"]:
    sizes, offsets, counts = case.explanation.scores.abs(), case.units.offsets, case.units.lengths
    rising = sizes[sorted_units(sizes, offsets, reverse=True)]
    ranks = torch.arange(len(sizes)) - offsets[case.units.segments] + 1
    total = counts * case.total(sizes)
    return case.total((2 * ranks - counts[case.units.segments] - 1) * rising) / total.where(total > 0, torch.nan)


GINI = Metric(
    name="gini",
    title="Complexity: Gini index",
    formula="Σ_i (2i − L − 1) |s|_(i) / (L Σ |s|), |s|_(i) in rising order: 0 all alike, 1 − 1/L all on one unit",
    source="Hurley & Rickard 2009; Chalasani et al. 2020",
    direction=NEITHER,
    low=0,
    high=1,
    inflates=BLIND,
    elsewhere="Quantus calls it sparseness. An explanation of zeros has no value.",
    signs=MAGNITUDE,
    example=("7/12", "7/20"),
    value=_gini,
)


def _entropy(case: Case, _: Answers) -> Float[Tensor, " instances"]:
    sizes = case.explanation.scores.abs()
    total = case.total(sizes)
    shares = sizes / total.where(total > 0, torch.nan)[case.units.segments]
    return case.total(-torch.xlogy(shares, shares))


ENTROPY = Metric(
    name="entropy",
    title="Complexity: entropy",
    formula="−Σ_i w_i log w_i, w = |s| / Σ |s|",
    source="Bhatt et al. 2020",
    direction=NEITHER,
    low=0,
    high=None,
    inflates=f"{BLIND} It grows with the length of the text.",
    elsewhere="Quantus calls it complexity. An explanation of zeros has no value.",
    signs=MAGNITUDE,
    example=("log(3)-2/3*log(2)", "log(20)/2-3/10*log(3)"),
    value=_entropy,
)


def _with_others(case: Case, name: str) -> Float[Tensor, " instances"]:
    """The mean over the other explanations of how far this one agrees with them."""
    own, offsets = case.explanation.scores, case.units.offsets
    return torch.stack([getattr(agree(own, other.scores, offsets, k=TOP), name) for other in case.others]).mean(0)


AGREEMENT_INFLATES = f"{BLIND} Explanations that share a fault agree; two that differ may both be true to the model."

AGREEMENT_TAU = Metric(
    name="agreement_tau",
    title="Agreement with the other explanations, Kendall's τ",
    formula="the mean over the other explanations of τ-b over the units of the text",
    source="Jain & Wallace 2019; not a measure of quality: Neely et al. 2021",
    direction=NEITHER,
    low=-1,
    high=1,
    inflates=AGREEMENT_INFLATES,
    elsewhere="Often reported as faithfulness, which it is not. Where one has equal scores only there is no value.",
    signs=ORDER,
    example=("-1/5", "-1/5"),
    value=lambda case, _: _with_others(case, "tau"),
    needs=("others",),
)

AGREEMENT_TOP = Metric(
    name="agreement_top",
    title="Agreement with the other explanations, top 20 %",
    formula="the mean over the other explanations of the share of common units among the top 20 %, rounded up",
    source="Krishna et al. 2022 (feature agreement)",
    direction=NEITHER,
    low=0,
    high=1,
    inflates=f"{AGREEMENT_INFLATES} By chance it is the share itself.",
    elsewhere="OpenXAI takes a fixed number of units.",
    signs=ORDER,
    example=("0", "0"),
    value=lambda case, _: _with_others(case, "top_share"),
    needs=("others",),
)


def _marks(case: Case) -> tuple[Bool[Tensor, " units"], Float[Tensor, " instances"]]:
    """What people marked, and how many units that are; not a number where they marked none."""
    assert case.rationales is not None
    counts = segment_sum(case.rationales.double(), case.units.offsets)
    return case.rationales, counts.where(counts > 0, torch.nan)


def base_rate(case: Case) -> float:
    """The mean share of marked units over the texts that have any: what the area is by chance, nearly."""
    _, counts = _marks(case)
    return float((counts / case.units.lengths).nanmean())


def _auprc(case: Case, _: Answers) -> Float[Tensor, " instances"]:
    marks, counts = _marks(case)
    precisions = torch.zeros_like(case.explanation.scores)
    for begin, end in pairwise(case.units.offsets.tolist()):
        own, wanted = case.explanation.scores[begin:end], marks[begin:end]
        above = own[None] >= own[wanted][:, None]
        precisions[begin:end][wanted] = (above & wanted).sum(1) / above.sum(1).double()
    return case.total(precisions) / counts


PLAUSIBLE = (
    "It says whether people agree with the explanation, not whether the model does: a faithful explanation of a wrong "
    "model is not plausible. Print the base rate beside it."
)

AUPRC = Metric(
    name="auprc",
    title="Plausibility: area under precision and recall",
    formula="the mean over marked units i of the share of marked ones among those with score ≥ s_i",
    source="DeYoung et al. 2020 (ERASER)",
    direction=HIGHER,
    low=0,
    high=1,
    inflates=f"{PLAUSIBLE} By chance it is about the share of marked units.",
    elsewhere="This is average precision; what ERASER's scorer and ferret print as AUPRC joins the points by straight "
    "lines. Texts without a mark have no value.",
    signs=ORDER,
    example=("3/4", "1"),
    value=_auprc,
    needs=("rationales",),
)


def _chosen(case: Case) -> Bool[Tensor, " units"]:
    """The first units of each text, as large a share of it as people mark on average, rounded up."""
    share = base_rate(case)
    sizes = case.units.lengths if not share < 1 else tops_of(case.units.lengths, share)
    return case.explanation.places < sizes[case.units.segments]


def _token_f1(case: Case, _: Answers) -> Float[Tensor, " instances"]:
    marks, counts = _marks(case)
    chosen = _chosen(case)
    return 2 * case.total((chosen & marks).double()) / (case.total(chosen.double()) + counts)


TOKEN_F1 = Metric(
    name="token_f1",
    title="Plausibility: F1 of units",
    formula="2 |chosen and marked| / (|chosen| + |marked|); chosen: the average marked share of the text, rounded up",
    source="DeYoung et al. 2020 (ERASER)",
    direction=HIGHER,
    low=0,
    high=1,
    inflates=PLAUSIBLE,
    elsewhere="ERASER chooses as many units as a corpus has marked ones on average, ferret a number that the caller "
    "gives; here it is the average share.",
    signs=ORDER,
    example=("1/2", "1"),
    value=_token_f1,
    needs=("rationales",),
)


def _stretches(marks: Bool[Tensor, " units"]) -> list[range]:
    """Where marked units stand without a gap."""
    edges = torch.diff(torch.cat([marks.new_zeros(1), marks, marks.new_zeros(1)]).long()).nonzero().squeeze(1).tolist()
    return [range(begin, end) for begin, end in zip(edges[::2], edges[1::2], strict=True)]


def _overlap(one: range, other: range) -> float:
    common = max(0, min(one.stop, other.stop) - max(one.start, other.start))
    return common / (len(one) + len(other) - common)


def _iou_f1(case: Case, _: Answers) -> Float[Tensor, " instances"]:
    marks, counts = _marks(case)
    chosen, found = _chosen(case), counts.clone()
    for row in counts.isfinite().nonzero().squeeze(1).tolist():
        own = slice(int(case.units.offsets[row]), int(case.units.offsets[row + 1]))
        said, wanted = _stretches(chosen[own]), _stretches(marks[own])
        hits = sum(max(_overlap(one, other) for other in wanted) >= OVERLAP for one in said)
        found[row] = min(1.0, 2 * hits / (len(said) + len(wanted)))
    return found


IOU_F1 = Metric(
    name="iou_f1",
    title="Plausibility: F1 of stretches",
    formula="F1 of the stretches of chosen units; one is right if it shares half of their union with a marked stretch",
    source="DeYoung et al. 2020 (ERASER)",
    direction=HIGHER,
    low=0,
    high=1,
    inflates=PLAUSIBLE,
    elsewhere="ferret gives the overlap of the two sets of units of a text as it is. ERASER's macro value is the F1 of "
    "mean precision and mean recall; here it is the mean F1 over texts.",
    signs=ORDER,
    example=("0", "1"),
    value=_iou_f1,
    needs=("rationales",),
)


def _each(case: Case, total: int | float | None) -> Float[Tensor, " instances"]:
    assert total is not None
    return torch.full((len(case.units),), total / len(case.units), dtype=torch.float64)


SECONDS = Metric(
    name="seconds",
    title="Cost: seconds",
    formula="seconds per explained text",
    source="Chan et al. 2022",
    direction=LOWER,
    low=0,
    high=None,
    inflates="It depends on the machine and on what else runs on it.",
    elsewhere="In no library.",
    signs="Scores do not count.",
    example=("1/2", "1/4"),
    value=lambda case, _: _each(case, case.explanation.seconds),
    needs=("seconds",),
)

PASSES = Metric(
    name="passes",
    title="Cost: passes",
    formula="texts that the model read, changed ones too, per explained text",
    source="Chan et al. 2022",
    direction=LOWER,
    low=0,
    high=None,
    inflates="Passes with gradients cost more than those without.",
    elsewhere="In no library.",
    signs="Scores do not count.",
    example=("5", "1"),
    value=lambda case, _: _each(case, case.explanation.passes),
    needs=("passes",),
)

LOOKING = (
    SENSITIVITY,
    GINI,
    ENTROPY,
    AGREEMENT_TAU,
    AGREEMENT_TOP,
    AUPRC,
    TOKEN_F1,
    IOU_F1,
    SECONDS,
    PASSES,
)
