"""The lines that claims are judged by, as they are documented: a verdict is worth no more than its line."""

import pytest

from heedful.claims import CLAIMS
from heedful.claims.manipulation import BARELY, FAR, PEAKED, WEAK

SHARE, SIGNED = (0.0, 1.0), (-1.0, 1.0)

LINES: dict[str, tuple[float, tuple[float, float]]] = {
    "M1": (0.0, SIGNED),
    **dict.fromkeys(("C1", "C9b", "X1", "X1b", "D1"), (0.8, SHARE)),
    **dict.fromkeys(("C2", "C2b", "C8", "C8b", "C8c", "C3", "C9", "C5", "C7", "X2", "X2b", "X3", "D2"), (0.7, SHARE)),
    "C4": (0.02, (-0.1, 0.5)),
    "C4b": (-0.01, (-0.1, 0.1)),
    "C4c": (0.98, SHARE),
    "C11": (1.0, (0.0, 3.0)),
    "C11b": (0.0, SIGNED),
    "C12": (0.0, (-0.5, 0.5)),
    "C6": (0.0, (-5.0, 5.0)),
    **dict.fromkeys(("C10", "C14", "S9d", "N1"), (0.9, SHARE)),
    "C13": (0.0, (0.0, 500.0)),
    **dict.fromkeys(("S1", "S4", "S13", "D3"), (0.75, SHARE)),
    "S2": (0.7, SHARE),
    "S3": (2 / 3, SHARE),
    **dict.fromkeys(("S5", "S6", "S6b", "S8b", "S9", "S9b", "S9c", "S14", "J1", "J3", "J3b", "J4", "D4"), (0.5, SHARE)),
    "S5b": (8 / 13, SHARE),  # 1.6 times as many
    "S8": (5 / 13, SHARE),
    "S10": (0.0, (-0.5, 0.5)),
    "S11": (0.2, SIGNED),
    **dict.fromkeys(("S7", "S7b", "S12", "S12b", "W2", "W3", "N2", "N2b", "N2c"), (0.0, SIGNED)),
    **dict.fromkeys(("X4", "X4b", "X5", "X5b", "X6", "X7", "X8"), (0.0, SIGNED)),
    "J2": (0.25, SHARE),
    **dict.fromkeys(("W1", "N1b"), (-0.02, SIGNED)),
    "N1c": (0.02, SIGNED),
    "N3": (-0.05, SIGNED),
    "N4": (0.1, SHARE),
    "D5": (0.0, (-0.5, 0.5)),
}


def test_every_claim_has_the_line_that_is_documented() -> None:
    assert {name: claim.span for name, claim in CLAIMS.items()} == {name: span for name, (_, span) in LINES.items()}
    assert {name: claim.threshold for name, claim in CLAIMS.items()} == pytest.approx(
        {name: line for name, (line, _) in LINES.items()}
    )


def test_what_is_far_peaked_weak_and_hardly_moved() -> None:
    """Three quarters of log 2, the most that a divergence of Jensen and Shannon can be."""
    assert pytest.approx(0.519860) == FAR
    assert (PEAKED, BARELY, WEAK) == (0.5, 0.1, 0.5)
