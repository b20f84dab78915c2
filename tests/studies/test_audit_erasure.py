"""Erasure in an audit: medians against the minimum, by hand."""

import pandas as pd
import pytest
import torch

from heedful.claims.erasure import OF_ONE_MODEL
from heedful.studies.audit_erasure import (
    erase_attention,
    erasure_words,
    shown_table,
    summarise,
)
from heedful.traces import Trace


def flips_of(rows: dict[str, list[tuple[int, int, int | None]]]) -> pd.DataFrame:
    """A table of flips from (instance, units, erased) of each ranking."""
    table = pd.DataFrame(
        [
            {"ranking": name, "order": 0, "instance": instance, "units": units, "erased": erased}
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


def test_rankings_stand_on_the_texts_that_all_but_chance_flip() -> None:
    found = summarise(FLIPS).set_index("ranking")
    assert found["instances"].tolist() == [2, 2, 2]
    assert found["median_fraction"].to_dict() == {"attention": 0.625, "random": 1.0, "minimum": 0.375}
    assert found["over_half"].to_dict() == {"attention": 0.5, "random": 1.0, "minimum": 0.0}
    assert found["attained"].to_dict() == {"attention": 1 / 3, "random": 0.0, "minimum": 1.0}  # of three that can flip
    assert found["lead_taken"].to_dict() == {"attention": 0.5, "random": 0.25, "minimum": 1.0}
    assert found["mean_ratio"].to_dict() == {"attention": 2.0, "random": 3.0, "minimum": 1.0}
    assert found["mean_mass"].to_dict() == {"attention": 0.3125, "random": 0.75, "minimum": 0.1875}


def test_the_words_set_attention_against_the_minimum() -> None:
    assert erasure_words(FLIPS, summarise(FLIPS), "words") == (
        "Erased from the largest attention weight on, 62.5% of a text's words must go before the decision flips; "
        "provably 37.5% are enough (medians over 2 texts). Another 1 never flip along attention, and are not in these "
        "medians."
    )
    never = flips_of({"attention": [(0, 2, 1), (1, 3, None)], "minimum": [(0, 2, 1), (1, 3, None)]})
    assert erasure_words(never, summarise(never), "sentences").endswith(
        "(medians over 1 texts). 1 of 2 decisions never flip, whatever is erased."
    )


def test_nothing_to_erase_and_nothing_that_flips_are_said() -> None:
    alone = flips_of({"attention": [(0, 1, None)], "random": [(0, 1, None)], "minimum": [(0, 1, None)]})
    assert erasure_words(alone, summarise(alone), "words") == (
        "No test text has two words or more: there is nothing to erase."
    )
    firm = flips_of({"attention": [(0, 2, None)], "random": [(0, 2, None)], "minimum": [(0, 2, None)]})
    assert erasure_words(firm, summarise(firm), "words").startswith("There is no text whose decision every")
    assert shown_table(summarise(firm))["median erased"].tolist() == ["–", "–", "–"]


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
    assert all(isinstance(cell, str) for cell in shown_table(summarise(FLIPS))[column])
