"""A training to be moved through by hand: one fragment that needs nothing else."""

import json
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

from heedful.errors import InputError
from heedful.report.timeline import MOMENTS, POINTS, timeline


def course(tokens: int = 3, moments: int = 3, *, name: str = "word") -> pd.DataFrame:
    """Tokens whose attention grows with the time, at their own speed."""
    rows = [
        (float(moment), f"{name}{token}", "positive" if token % 2 else "neutral", float(token), token * moment)
        for moment in range(moments)
        for token in range(tokens)
    ]
    return pd.DataFrame(rows, columns=["time", "token", "group", "polarity", "attention"])


def data_of(fragment: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json">(.*?)</script>', fragment, re.DOTALL)
    assert found
    data: dict[str, Any] = json.loads(found[1])
    return data


def test_the_points_stand_where_the_last_moment_puts_them() -> None:
    fragment = timeline(course(), name="one", title="a training")
    data = data_of(fragment)
    shown = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', fragment)
    assert [float(x) for x, _ in shown] == data["x"][-1]
    assert [float(y) for _, y in shown] == data["y"][-1]
    assert data["times"] == ["0", "1", "2"]


def test_larger_scores_stand_further_right_and_higher() -> None:
    data = data_of(timeline(course(), name="one", title="a training"))
    assert data["x"][0] == sorted(data["x"][0])
    assert np.diff([moment[2] for moment in data["y"]]).max() < 0  # a screen counts downwards
    assert len({moment[0] for moment in data["y"]}) == 1  # this token does not move


def test_moments_and_tokens_are_thinned_and_both_ends_stay() -> None:
    data = data_of(timeline(course(400, 150), name="one", title="long"))
    assert len(data["times"]) == MOMENTS
    assert (data["times"][0], data["times"][-1]) == ("0", "149")
    assert len(data["x"][0]) == 2 * POINTS


def test_fifteen_classes_are_told_apart_by_colour_and_by_disc_or_ring() -> None:
    table = course(15).assign(group=lambda rows: rows["token"])
    fragment = timeline(table, name="one", title="many")
    assert len(set(re.findall(r'<circle cx="[\d.]+" cy="[\d.]+" (r=.*?)><title>', fragment))) == 15
    assert len(set(re.findall(r'<span style="color:(.*?)</span>', fragment))) == 15


def test_words_cannot_run_code() -> None:
    fragment = timeline(course(name="</script><script>alert(1)</script>"), name="one", title="<b>")
    assert fragment.count("<script") == 2
    assert "alert(1)</title>" not in fragment
    assert "&lt;b&gt;" in fragment


def test_no_address_is_in_it() -> None:
    assert "//" not in timeline(course(), name="one", title="a training")


@pytest.mark.parametrize("name", ["", "1st", 'a"b', "a b"])
def test_a_name_must_be_fit_for_a_page(name: str) -> None:
    with pytest.raises(InputError, match="A timeline is named by a letter"):
        timeline(course(), name=name, title="")


def test_an_empty_table_is_refused() -> None:
    with pytest.raises(InputError, match="at least one moment"):
        timeline(course().head(0), name="one", title="")


def test_a_single_moment_of_equal_scores_is_shown() -> None:
    assert timeline(course(1, 1), name="one", title="still").count("<circle") == 1
