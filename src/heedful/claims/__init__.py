"""Every claim of the papers by name, and how claims are judged."""

from collections.abc import Mapping

from heedful.claims import contextual, erasure, manipulation, neighbours, removal, scores, trainings
from heedful.claims.claim import Claim, Decision, Tables, Verdict, Verdicts, verdict_table
from heedful.errors import UnknownName

_ROOMS = (scores, trainings, erasure, manipulation, neighbours, contextual, removal)

CLAIMS: Mapping[str, Claim] = {claim.name: claim for room in _ROOMS for claim in room.CLAIMS}

__all__ = ["CLAIMS", "Claim", "Decision", "Tables", "Verdict", "Verdicts", "judge", "verdict_table"]


def judge(names: tuple[str, ...], tables: Tables) -> Verdicts:
    """The verdicts of the named claims on these tables."""
    for name in names:
        if name not in CLAIMS:
            raise UnknownName("claim", name, CLAIMS)
    return Verdicts(CLAIMS[name].judge(tables) for name in names)
