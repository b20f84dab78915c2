"""Nothing is registered without a test of its own: registries on one side, what tests say they cover on the other."""

import importlib
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path

import pytest

from heedful.analysis.faithfulness import METRICS
from heedful.analysis.rankings import RANKINGS
from heedful.attention.normalisers import NORMALISERS
from heedful.attention.weighting import WEIGHINGS
from heedful.claims import CLAIMS
from heedful.explainers import EXPLAINERS
from heedful.models.layers import ATTENTIONS, ENCODERS
from heedful.studies import audit
from heedful.studies.compare import GRID
from heedful.studies.examine import CURVES
from heedful.studies.foreign_page import WORDS
from heedful.studies.one_attention import PICTURE
from heedful.studies.study import STUDIES, find_study
from heedful.zoo.members import MEMBERS
from heedful.zoo.tasks import TASKS

REGISTRIES: Mapping[str, Collection[str]] = {
    "ranking": RANKINGS,
    "metric": METRICS,
    "explainer": EXPLAINERS,
    "encoder": ENCODERS,
    "attention": ATTENTIONS,
    "normaliser": NORMALISERS,
    "weighing": WEIGHINGS,
    "mechanism": MEMBERS,
    "task": TASKS,
    "claim": CLAIMS,
    "study": STUDIES,
    "figure": [
        *(f"{study} {figure.name}" for study in STUDIES for figure in find_study(study).figures),
        *(
            f"audit {figure.name}"
            for figure in (*audit.FIGURES, audit.OVER_TIME, *audit.MANIPULATED, CURVES, PICTURE, GRID, WORDS)
        ),
    ],
}
TESTS = Path(__file__).parent


@cache
def covered() -> Mapping[str, frozenset[str]]:
    """By registry, everything that some test says it is the test of."""
    marks = [
        mark
        for path in sorted(TESTS.rglob("test_*.py"))
        if "\n@covers(" in path.read_text(encoding="utf-8")
        for test in vars(importlib.import_module(_module(path))).values()
        if isinstance(mark := getattr(test, "covered", None), dict)
    ]
    return {kind: frozenset().union(*(mark.get(kind, ()) for mark in marks)) for kind in REGISTRIES}


def _module(path: Path) -> str:
    return ".".join(path.relative_to(TESTS.parent).with_suffix("").parts)


def gaps(registered: Collection[str], tested: Collection[str]) -> list[str]:
    """What has no test, and what has one and is not there any more."""
    untested = [f"{name} has no test of its own" for name in registered if name not in tested]
    return untested + [f"{name} is covered and not registered" for name in sorted(set(tested) - set(registered))]


@pytest.mark.parametrize("kind", REGISTRIES)
def test_everything_registered_has_a_test_of_its_own(kind: str) -> None:
    assert gaps(REGISTRIES[kind], covered()[kind]) == []


def test_what_is_not_covered_and_what_is_gone_are_named() -> None:
    assert gaps(["a", "b"], {"a", "c"}) == ["b has no test of its own", "c is covered and not registered"]
