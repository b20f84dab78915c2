"""Erasure in an audit: medians against the minimum, by hand."""

import pandas as pd
import pytest
import torch

from heedful.claims.erasure import OF_ONE_MODEL
from heedful.studies.erase import erase_trace
from heedful.studies.examine import (
    DECISION_WORDS,
    RESTING_WORDS,
    by_decision,
    erase_attention,
    erasure_words,
    summarise,
)
from heedful.studies.measures import in_words
from heedful.traces import Trace


def flips_of(rows: dict[str, list[tuple[int, int, int | None]]]) -> pd.DataFrame:
    """A table of flips from (instance, units, erased) of each ranking."""
    table = pd.DataFrame(
        [
            {"ranking": name, "order": 0, "instance": instance, "decision": 0, "units": units, "erased": erased}
            for name, entries in rows.items()
            for instance, units, erased in entries
        ]
    ).astype({"erased": "Int64"})
    fraction = table["erased"].astype("Float64") / table["units"]
    lead = table["ranking"].map({"attention": 0.5, "random": 0.25}).fillna(1.0)
    return table.assign(fraction=fraction.astype(float), mass=fraction.astype(float) / 2, lead_taken=lead)


FLIPS = flips_of(
    {
        "attention": [(0, 4, 2), (1, 4, 3), (2, 1, None), (3, 4, None)],
        "random": [(0, 4, None), (1, 4, 4), (2, 1, None), (3, 4, 2)],
        "minimum": [(0, 4, 2), (1, 4, 1), (2, 1, None), (3, 4, 1)],
    }
)


def test_rankings_stand_on_the_texts_that_rest_on_a_part_and_never_is_everything() -> None:
    """Attention never flips the last text: all four of its units count as erased, four times the minimum."""
    found = summarise(FLIPS).set_index("ranking")
    assert found["instances"].tolist() == [3, 3, 3]
    assert found["median_fraction"].to_dict() == {"attention": 0.75, "random": 1.0, "minimum": 0.25}
    assert found["over_half"].to_dict() == {"attention": 2 / 3, "random": 2 / 3, "minimum": 0.0}
    assert found["attained"].to_dict() == {"attention": 1 / 3, "random": 0.0, "minimum": 1.0}
    assert found["lead_taken"].to_dict() == {"attention": 0.5, "random": 0.25, "minimum": 1.0}
    assert found["mean_ratio"].to_dict() == {"attention": (1 + 3 + 4) / 3, "random": (2 + 4 + 2) / 3, "minimum": 1.0}
    assert found["mean_mass"]["attention"] == pytest.approx((0.25 + 0.375 + 1.0) / 3)


def test_the_words_set_attention_against_the_minimum() -> None:
    assert erasure_words(FLIPS, summarise(FLIPS), "words") == (
        "Erased from the largest attention weight on, 75.0% of a text's words must go before the decision flips; "
        "provably 25.0% are enough (medians over 3 texts). Along attention 1 of these flip only when everything is "
        "erased, or never."
    )
    never = flips_of({"attention": [(0, 2, 1), (1, 3, None)], "minimum": [(0, 2, 1), (1, 3, None)]})
    assert erasure_words(never, summarise(never), "sentences").endswith(
        "(medians over 1 text). 1 other decision can be flipped by nothing less than all."
    )


def test_nothing_to_erase_and_nothing_that_flips_are_said() -> None:
    alone = flips_of({"attention": [(0, 1, None)], "random": [(0, 1, None)], "minimum": [(0, 1, None)]})
    assert erasure_words(alone, summarise(alone), "words") == (
        "No test text has two words or more: there is nothing to erase."
    )
    firm = flips_of({"attention": [(0, 2, None)], "random": [(0, 2, None)], "minimum": [(0, 2, None)]})
    assert erasure_words(firm, summarise(firm), "words").startswith("No decision rests on a part of its words")
    assert in_words(summarise(firm), RESTING_WORDS)["median erased"].tolist() == ["–", "–", "–"]


def test_decisions_for_each_class_have_a_line_of_their_own() -> None:
    """Twenty texts decided for a rest on the attended unit, twenty for b on another, five for b on nothing."""
    parts = {"attention": [1] * 20 + [3] * 20 + [None] * 5, "random": [2] * 40 + [None] * 5}
    counts = {**parts, "minimum": [1] * 40 + [None] * 5}
    flips = flips_of({name: [(n, 4, erased) for n, erased in enumerate(rows)] for name, rows in counts.items()})
    attended = (flips["instance"] < 20).where(flips["instance"] < 40).astype(float)
    chance = pd.Series(0.5, index=flips.index).where(flips["instance"] < 40)
    flips = flips.assign(
        decision=(flips["instance"] >= 20).astype(int),
        lead_taken=attended.where(flips["ranking"] != "random", chance),
    )
    found = by_decision(flips, ("a", "b", "never decided for")).set_index("decision")
    assert found["texts"].to_dict() == {"a": 20, "b": 25}
    assert found["resting"].to_dict() == {"a": 20, "b": 20}
    assert found["found"].to_dict() == {"a": "yes", "b": "no"}
    assert found["beats_chance"].to_dict() == {"a": 1.0, "b": 0.0}
    assert found["lead_taken"].to_dict() == {"a": 1.0, "b": 0.0}
    assert found["median_fraction"].to_dict() == {"a": 0.25, "b": 0.75}
    assert set(by_decision(flips, ("a", "b"), learned=False)["found"]) == {"not shown"}
    assert in_words(by_decision(flips, ("a", "b")), DECISION_WORDS).iloc[1].tolist() == [
        "b", "25", "20", "75.0%", "25.0%", "0.0%", "0.0%", "no"
    ]  # fmt: skip


def mirrored(trace: Trace) -> Trace:
    """The same trace with the names of its classes exchanged."""
    return Trace.from_arrays(
        offsets=trace.offsets,
        attention_scores=trace.attention_scores,
        polarity_scores=trace.polarity_scores.flip(1),
        bias=trace.bias.flip(0),
        labels=None if trace.labels is None else 1 - trace.labels,
    )


def test_renaming_the_classes_changes_no_verdict_of_a_model_without_bias() -> None:
    """Everything erased is 0 : 0 there, and the tie goes to the first class, whichever that is."""
    draw = torch.Generator().manual_seed(0)
    lengths = torch.randint(2, 9, (200,), generator=draw)
    units = int(lengths.sum())
    polarity = torch.randn(units, 2, generator=draw, dtype=torch.float64) + torch.tensor([0.3, 0.0])
    trace = Trace.from_arrays(
        offsets=torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)]),
        attention_scores=torch.randn(units, generator=draw, dtype=torch.float64),
        polarity_scores=polarity,
        bias=[0.0, 0.0],
        labels=torch.randint(0, 2, (200,), generator=draw),
    )
    one, other = erase_attention(trace), erase_attention(mirrored(trace))
    forced = one.tables["flips"]["erased"].isna().sum(), other.tables["flips"]["erased"].isna().sum()
    assert forced[0] != forced[1]  # the tables differ
    for first, second in zip(one.verdicts, other.verdicts, strict=True):
        assert (first.claim, first.decision, first.evidence) == (second.claim, second.decision, second.evidence)
        assert (first.estimate is None) == (second.estimate is None)
        if first.estimate and second.estimate:
            bounds = [(found.value, found.low, found.high) for found in (first.estimate, second.estimate)]
            assert bounds[0] == pytest.approx(bounds[1], abs=1e-12, nan_ok=True)
    pd.testing.assert_frame_equal(one.resting, other.resting)
    assert one.words == other.words


def trace_of(instances: int) -> Trace:
    """Instance t has t + 1 units whose polarity says which they are."""
    lengths = torch.arange(1, instances + 1)
    units = int(lengths.sum())
    numbers = torch.arange(units).double()
    return Trace.from_arrays(
        offsets=torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)]),
        attention_scores=numbers / 10,
        polarity_scores=torch.stack([torch.zeros(units, dtype=torch.float64), numbers], 1),
        bias=[0.0, -0.5],
        labels=lengths % 2,
        units=[str(number) for number in range(units)],
    )


def test_an_erasure_is_of_all_texts_and_has_its_verdicts() -> None:
    found = erase_attention(trace_of(40), unit="sentences")
    assert {verdict.claim for verdict in found.verdicts} == set(OF_ONE_MODEL)
    assert set(found.tables) == {"single", "flips"}
    assert found.tables["flips"]["instance"].nunique() == 40
    assert "of a text's sentences" in found.words or "its sentences" in found.words


@pytest.mark.parametrize(
    "column", ["median erased", "over half", "weight erased", "is minimal", "× minimum", "lead gone"]
)
def test_shown_cells_are_words(column: str) -> None:
    assert all(isinstance(cell, str) for cell in in_words(summarise(FLIPS), RESTING_WORDS)[column])


def test_of_a_model_that_learned_nothing_audit_and_erase_say_the_same_of_every_class() -> None:
    """Labels by the toss of a coin: whatever erasure shows, it is not said that attention finds what decided."""
    draw = torch.Generator().manual_seed(3)
    units = torch.randn(400, 2, generator=draw, dtype=torch.float64)
    trace = Trace.from_arrays(
        offsets=torch.arange(101) * 4,
        attention_scores=units[:, 0].abs(),
        polarity_scores=units,
        bias=[0.0, 0.0],
        labels=torch.randint(0, 2, (100,), generator=draw),
    )
    audited, erased = erase_attention(trace).decisions, erase_trace(trace).tables()["decisions"]
    pd.testing.assert_frame_equal(audited, erased)
    assert set(audited["found"]) == {"not shown"}
