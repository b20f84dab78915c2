"""Every claim of the papers by name, and how claims are judged."""

from collections.abc import Mapping

import pandas as pd

from heedful.claims import contextual, erasure, manipulation, neighbours, removal, scores, trainings
from heedful.claims.claim import Claim, Decision, Tables, Verdict
from heedful.errors import UnknownName

_ROOMS = (scores, trainings, erasure, manipulation, neighbours, contextual, removal)

CLAIMS: Mapping[str, Claim] = {claim.name: claim for room in _ROOMS for claim in room.CLAIMS}

__all__ = ["CLAIMS", "Claim", "Decision", "Tables", "Verdict", "judge", "verdict_table"]


def judge(names: tuple[str, ...], tables: Tables) -> list[Verdict]:
    """The verdicts of the named claims on these tables."""
    for name in names:
        if name not in CLAIMS:
            raise UnknownName("claim", name, CLAIMS)
    return [CLAIMS[name].judge(tables) for name in names]


def verdict_table(verdicts: list[Verdict]) -> pd.DataFrame:
    return pd.DataFrame([verdict.row() for verdict in verdicts])
