"""Every claim of the papers by name, and how claims are judged."""

from collections.abc import Mapping

from heedful.claims import contextual, erasure, manipulation, neighbours, removal, scores, trainings
from heedful.claims.claim import Claim, Decision, Tables, Verdict, Verdicts, verdict_table
from heedful.errors import UnknownName

_ROOMS = (scores, trainings, erasure, manipulation, neighbours, contextual, removal)

CLAIMS: Mapping[str, Claim] = {claim.name: claim for room in _ROOMS for claim in room.CLAIMS}

SOURCES: Mapping[str, str] = {
    "C": "after Sun & Lu 2020",
    "S": "after Serrano & Smith 2019",
    "J": "after Jain & Wallace 2019",
    "W": "after Wiegreffe & Pinter 2019",
    "N1": "after Pruthi et al. 2020",
    "N2": "after Mohankumar et al. 2020",
    "N3": "after Meister et al. 2021",
    "N4": "after Liu et al. 2022",
    "X": "of vectors from elsewhere",
    "D": "of words that are taken away",
    "M": "of the model itself",
}
"""Where claims come from, by the beginning of their names."""

__all__ = [
    "CLAIMS",
    "SOURCES",
    "Claim",
    "Decision",
    "Tables",
    "Verdict",
    "Verdicts",
    "judge",
    "source",
    "verdict_table",
]


def source(name: str) -> str:
    """What a claim is called, and after whom: "claim S9b, after Serrano & Smith 2019"."""
    found = next((said for beginning, said in SOURCES.items() if name.startswith(beginning)), "")
    return f"claim {name}, {found}" if found else f"claim {name}"


def judge(names: tuple[str, ...], tables: Tables) -> Verdicts:
    """The verdicts of the named claims on these tables."""
    for name in names:
        if name not in CLAIMS:
            raise UnknownName("claim", name, CLAIMS)
    return Verdicts(CLAIMS[name].judge(tables) for name in names)
