"""Each limit on what comes from elsewhere is said in its sentence, with how it is raised, and can be raised."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from heedful.config import read_mapping
from heedful.errors import ConfigError, HeedfulError
from heedful.sweep.plan import Plan
from heedful.text import tables
from heedful.text.tables import read_table


def nested(folder: Path) -> object:
    value: object = 1
    for _ in range(45):
        value = {"a": value}
    (folder / "a.json").write_text(json.dumps(value))
    return read_mapping(folder / "a.json")


def packed(folder: Path) -> object:
    (folder / "a.csv.gz").write_bytes(gzip.compress(b"text,label\n" + b"a,b\n" * 100_000))
    return read_table(folder / "a.csv.gz")


def many(_: Path) -> object:
    return Plan.of(grid={"model.score_scale": [1, 2]}, seeds=3)


@pytest.mark.parametrize(
    ("variable", "lowered", "raised", "do", "said"),
    [
        ("HEEDFUL_MOST_DEPTH", None, "400", nested, "is nested more than 40 levels deep; settings need three."),
        ("HEEDFUL_MOST_GROWTH", None, "1000", packed, "unpacks to more than 100 times its size, as texts never do."),
        ("HEEDFUL_MOST_RUNS", "5", "50", many, "The plan has 6 runs; 5 are the most. Make several plans of it."),
    ],
)
def test_a_limit_says_how_it_is_raised_and_can_be(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    lowered: str | None,
    raised: str,
    do: Callable[[Path], object],
    said: str,
) -> None:
    monkeypatch.setattr(tables, "LEAST_LIMIT", 1000)
    if lowered:
        monkeypatch.setenv(variable, lowered)
    with pytest.raises(HeedfulError) as refused:
        do(tmp_path)
    assert said in str(refused.value)
    assert str(refused.value).endswith(f"If it is meant so, raise the limit: {variable}={raised}.")
    monkeypatch.setenv(variable, raised)
    assert do(tmp_path) is not None


@pytest.mark.parametrize("given", ["0", "-1", "1e3", "٣", "9" * 5000, "x"])
def test_a_limit_that_is_no_number_is_a_sentence(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("HEEDFUL_MOST_RUNS", given)
    with pytest.raises(ConfigError, match=r"HEEDFUL_MOST_RUNS is a whole number from 1 on, not '"):
        many(Path())
