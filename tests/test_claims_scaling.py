"""Claims about λ and about other models, on tables made by hand."""

import numpy as np
import pandas as pd
import pytest

from heedful.analysis.decisions import pooling_agreement
from heedful.analysis.separation import clarity, group_measures, separation
from heedful.claims import CLAIMS, Decision, judge
from heedful.claims.combine import accuracy_difference, mean_column
from heedful.claims.trainings import weakest_variant
from heedful.traces import Trace
from tests.covering import covers


def row(scale: float, seed: int = 0, model: str = "DP", **changes: float | None) -> dict[str, object]:
    """A run in which everything is as the paper has it, unless it is changed."""
    usual: dict[str, float | None] = {
        "test_accuracy": 0.6 if scale <= 1 else 0.82,
        "alignment": -3.0,
        "separation": 0.9,
        "signs": 0.98,
        "parting": 0.1,
        "magnitude": 9.0 if scale >= 100 else 6.0,
        "asymmetry": -0.3,
        "pooling": 0.995 if scale >= 100 else None,
        "local_separation": 0.8 if model == "DP-L" else None,
        "local_signs": 0.95 if model == "DP-L" else None,
        "clarity": 0.1 if model == "DP-L" else None,
    }
    values = usual | changes
    bounded = {
        f"{name}{end}": None if value is None else value + shift
        for name, value in values.items()
        if name != "alignment"
        for end, shift in (("_low", -0.01), ("", 0.0), ("_high", 0.01))
    }
    said = {"model": model, "scale": scale, "seed": seed, "classes": 2, "alignment": values["alignment"]}
    encoder = {"DP-L": "lstm", "DP-A": "affine"}.get(model, "none")
    return {**said, "attention": "additive" if model == "AD" else "dot", "encoder": encoder, **bounded}


def study(**changes: float | None) -> pd.DataFrame:
    """DP at four λ and the other models at λ = 10, three seeds that differ a little."""
    scales = [(scale, "DP") for scale in (1.0, 10.0, 100.0, 10000.0)]
    models = [(10.0, model) for model in ("DP-L", "DP-A", "AD")]
    rows = [row(scale, seed, model, **changes) for scale, model in scales + models for seed in range(3)]
    table = pd.DataFrame(rows)
    return table.assign(test_accuracy=table["test_accuracy"] + 0.001 * table["seed"] * (table["scale"] > 1))


def decision(claim: str, table: pd.DataFrame) -> Decision:
    return judge((claim,), {"scaling": table})[0].decision


SCALING = ("C3", "C4", "C4b", "C4c", "C9", "C9b", "C11", "C11b", "C12")


@covers(claim=SCALING)
@pytest.mark.parametrize("claim", SCALING)
def test_the_papers_pattern_makes_every_claim_hold(claim: str) -> None:
    assert decision(claim, study()) == "yes"


@pytest.mark.parametrize(
    ("claim", "changes"),
    [
        ("C3", {"parting": 0.9}),
        ("C4", {"test_accuracy": 0.8}),
        ("C4c", {"pooling": 0.9}),
        ("C9", {"local_separation": 0.5}),
        ("C9b", {"signs": 0.6}),
        ("C11b", {"asymmetry": 0.3}),
        ("C12", {"clarity": -0.2}),
    ],
)
def test_the_opposite_pattern_refutes_it(claim: str, changes: dict[str, float]) -> None:
    assert decision(claim, study(**changes)) == "no"


def test_a_very_large_scale_that_is_better_refutes_c4b() -> None:
    table = study()
    table.loc[table["scale"] == 10000.0, "test_accuracy"] += 0.1
    assert decision("C4b", table) == "no"


def test_smaller_polarity_at_large_scale_refutes_c11() -> None:
    table = study()
    for end in ("", "_low", "_high"):
        table.loc[table["scale"] == 100.0, f"magnitude{end}"] /= 3
    assert decision("C11", table) == "no"


@pytest.mark.parametrize("claim", SCALING)
def test_without_runs_nothing_is_decided_and_the_words_say_why(claim: str) -> None:
    (verdict,) = judge((claim,), {"scaling": study().query("scale == 5")})
    assert verdict.decision == "not shown"
    assert verdict.words == CLAIMS[claim].silence


def test_the_side_of_the_alignment_counts() -> None:
    mirrored = study(alignment=3.0, parting=0.9)
    (verdict,) = judge(("C3",), {"scaling": mirrored})
    assert verdict.estimate is not None
    assert verdict.estimate.value == pytest.approx(0.9)


def test_seeds_are_averaged_before_the_interval_is_drawn() -> None:
    table = pd.DataFrame([row(100.0, seed, parting=value) for seed in (0, 1) for value in (0.2, 0.4)])
    found = mean_column(table, "parting")
    assert found is not None
    assert found.value == pytest.approx(0.3)
    assert [found.low, found.high] == pytest.approx([0.29, 0.31])  # seeds agree: only tokens vary
    assert found.count == 4


def test_one_seed_has_the_interval_of_two_shares_of_test_texts() -> None:
    first, second = (pd.DataFrame([row(scale)]) for scale in (10.0, 1.0))
    found = accuracy_difference(first, second)
    assert found is not None
    assert found.value == pytest.approx(0.22)
    assert found.high - found.value == pytest.approx(0.01 * np.sqrt(2))


def test_plain_attention_is_a_variant_only_with_several_classes() -> None:
    table = pd.DataFrame([row(10.0, model="DP", separation=0.1), row(10.0, model="AD", separation=0.8)])
    two = weakest_variant("separation", table)
    three = weakest_variant("separation", table.assign(classes=3))
    assert two is not None
    assert three is not None
    assert [two.value, three.value] == pytest.approx([0.8, 0.1])


def test_clarity_is_the_difference_of_two_separations() -> None:
    rng = np.random.default_rng(2)
    whole = pd.DataFrame({"group": ["positive"] * 20 + ["neutral"] * 20, "attention": rng.normal(size=40)})
    part = whole.assign(attention=rng.normal(size=40))
    one, other, found = separation(whole), separation(part), clarity(whole, part)
    assert found is not None
    assert found.value == pytest.approx(one.value - other.value)


def test_pooling_agreement_by_hand() -> None:
    """Text one: the mean says class 1, attention class 0. Text two: both say class 1."""
    trace = Trace.from_arrays(
        offsets=[0, 2, 4],
        polarity_scores=[[0.0, -1.0], [0.0, 3.0], [0.0, 1.0], [0.0, 1.0]],
        attention_weights=[0.9, 0.1, 0.5, 0.5],
        bias=[0.0, 0.0],
    )
    assert pooling_agreement(trace).value == 0.5


def test_pooling_is_the_mean_and_not_the_sum_of_the_units() -> None:
    """The mean leads by 1 and the bias by 1½ the other way; the sum of two units would lead by 2."""
    trace = Trace.from_arrays(
        offsets=[0, 2, 3], polarity_scores=[[0.0, 1.0]] * 3, attention_weights=[0.5, 0.5, 1.0], bias=[1.5, 0.0]
    )
    assert pooling_agreement(trace).value == 1.0


def test_the_measures_of_groups_by_hand() -> None:
    """Mean polarities 4 and −1: (4 − 1) / (4 + 1) is for the positive, the other way round for the negative words."""
    table = pd.DataFrame(
        {
            "group": ["positive", "positive", "negative", "negative", "neutral"],
            "polarity": [3.0, 5.0, -0.5, -1.5, 7.0],
            "attention": [4.0, 2.0, 3.0, 1.0, 0.0],
        }
    )
    found = {name: one and one.value for name, one in group_measures(table).items()}
    assert found == {"separation": 1.0, "signs": 1.0, "parting": 0.75, "magnitude": 2.5, "asymmetry": 0.6}
    other = table.assign(
        polarity=-table["polarity"],
        group=table["group"].map({"positive": "negative", "negative": "positive", "neutral": "neutral"}),
    )
    found = {name: one and one.value for name, one in group_measures(other).items()}
    assert found == {"separation": 1.0, "signs": 1.0, "parting": 0.25, "magnitude": 2.5, "asymmetry": -0.6}


def test_what_is_mirrored_has_its_bounds_the_other_way_round() -> None:
    """−.3 in [−.5, −.25] is .3 in [.25, .5] on the other side; .1 in [0, .4] about a half is .9 in [.6, 1]."""
    table = pd.DataFrame([row(1.0, asymmetry=-0.3, parting=0.1)])
    ends = {"asymmetry_low": -0.5, "asymmetry_high": -0.25, "parting_low": 0.0, "parting_high": 0.4}
    for claim, expected in (("C11b", (0.25, 0.3, 0.5)), ("C3", (0.6, 0.9, 1.0))):
        (verdict,) = judge((claim,), {"scaling": table.assign(**ends, scale=1.0 if claim == "C11b" else 100.0)})
        found = verdict.estimate
        assert found is not None
        assert (found.low, found.value, found.high) == pytest.approx(expected)


def test_scales_on_the_ends_of_a_range_belong_to_it() -> None:
    """Small is 0 to 1, moderate 10 to 50, large from 100 on, very large from 1,000 on; what lies between is none."""
    scales = (0.1, 1.0, 1.5, 9.0, 10.0, 50.0, 51.0, 99.0, 100.0, 999.0, 1000.0, 5000.0)
    table = pd.DataFrame(
        [
            row(at, test_accuracy=0.03 * n, parting=0.05 * n, alignment=1.0, pooling=0.04 * n)
            for n, at in enumerate(scales)
        ]
    )

    def value(claim: str) -> float | None:
        found = judge((claim,), {"scaling": table})[0].estimate
        return None if found is None else found.value

    assert value("C4") == pytest.approx(0.03 * (4.5 - 0.5))
    assert value("C4b") == pytest.approx(0.03 * (4.5 - 10.5))
    assert value("C3") == pytest.approx(0.05 * 9.5)
    assert value("C4c") == pytest.approx(0.04 * 10.5)
