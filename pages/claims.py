"""Every claim as a card: what it states, by which number it is judged, what is said then, and where it is asked."""

import re
from collections.abc import Iterator

from heedful.claims import CLAIMS, SOURCES, Claim
from heedful.claims.erasure import OF_ONE_MODEL
from heedful.claims.removal import FOREIGN
from heedful.claims.scores import LEARNED
from heedful.config import ModelSettings
from heedful.studies.advice import scaling_claims
from heedful.studies.attack import CLAIMS as OF_OTHER_WEIGHTS
from heedful.studies.examine import ON_REMOVED_WORDS, ON_WORDS
from heedful.studies.study import STUDIES, find_study
from pages.plain import plain

AUDIT = {
    LEARNED,
    *ON_WORDS,
    *OF_ONE_MODEL,
    *(claim for claims in OF_OTHER_WEIGHTS.values() for claim in claims),
    "J2",
    "J4",
    *scaling_claims(ModelSettings(), 2),
    *scaling_claims(ModelSettings(encoder="lstm"), 2),
}
"""What an audit judges, where the model and the data allow it."""

AUDIT_OF_ONES_OWN = {LEARNED, *ON_REMOVED_WORDS, *FOREIGN, "D5"} - {"C8b"}
"""What an audit of a model of one's own judges; with a trace also what any audit says of texts."""

PREFACE = """# Claims

Every verdict that heedful gives is of one of these sentences. A claim has a number that is computed from a table, and a
line: with the whole interval above the line it is **yes**, with all of it below **no**, otherwise **not shown**. Where
there are fewer observations than it needs on any side it is *not shown*, and the words say what is missing.

“…” stands for the number in what is said. How a verdict becomes an answer, and how often it is wrong where the truth is
known: [answer.md](answer.md). In Python they are `heedful.claims.CLAIMS`.
"""


def claim_page() -> str:
    """All cards as Markdown: docs/claims.md."""
    return "\n".join([PREFACE, *(line for beginning, words in SOURCES.items() for line in _room(beginning, words))])


def _room(beginning: str, words: str) -> Iterator[str]:
    """The claims of one source."""
    yield f"## {words[0].upper()}{words[1:]}\n"
    for claim in CLAIMS.values():
        if claim.name.startswith(beginning):
            yield _card(claim)


def _card(claim: Claim) -> str:
    least = f", {claim.least} or more of each" if claim.least > 1 else ""
    rows: dict[str, str] = {
        "number": plain(claim.statistic),
        "line": f"{claim.threshold:.3g}".replace("-", "−"),
        "rests on": " and ".join(claim.sides) + least,
        **{decision: said(words, decision) for decision, words in claim.words.items()},
        "asked by": ", ".join(asked_by(claim.name)),
    }
    lines = [f"- **{name}**: {text}" for name, text in rows.items()]
    return "\n".join([f"### {claim.name}\n", f"{plain(claim.statement)}\n", *lines, ""])


def said(words: str, decision: str) -> str:
    """What is said of a decision, without the number."""
    return plain(re.sub(r"\{:[^}]*\}", "…", words.replace("{only}", "only " if decision == "no" else "")))


def asked_by(name: str) -> Iterator[str]:
    """The commands that judge it."""
    if name in AUDIT:
        yield "`heedful audit`"
    if name in AUDIT_OF_ONES_OWN:
        yield "`heedful audit --model`"
    for study in STUDIES:
        if name in find_study(study).claims:
            yield f"`heedful reproduce {study}`"
