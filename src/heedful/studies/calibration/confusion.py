"""How often the answer, or a claim behind it, is not the truth: tables of what `heedful.studies.calibration.judge` saw.

A yes is wrong where the truth is not yes, a no where it is not no. "Not shown" is held against the answer where the
truth is clear: not near a line, and about something that there is (`heedful.studies.calibration.case.Truth`).
"""

from collections.abc import Iterable

import pandas as pd

from heedful.studies.calibration.judge import Calibration

COUNTS = (
    "worlds", "yes", "no", "not_yes", "wrong_yes", "not_no", "wrong_no", "wrong_near", "clear", "not_shown", "near",
    "moot",
)  # fmt: skip


def confusion(cases: pd.DataFrame, by: Iterable[str] = ("question", "texts")) -> pd.DataFrame:
    """One row for each value of these columns: how many worlds, what was said, what was wrong, and what that is of.

    `wrong_yes` is of the worlds `not_yes`, whose truth is not yes, `wrong_no` of those `not_no`, and `not_shown` of
    those `clear`; `wrong_near` are those of the wrong ones whose truth lies near a line.
    """
    return pd.DataFrame(
        [
            {**dict(zip(by, key if isinstance(key, tuple) else (key,), strict=True)), **_counts(rows)}
            for key, rows in cases.groupby(list(by), sort=False)
        ]
    )


def _counts(rows: pd.DataFrame) -> dict[str, int]:
    silent, clear = rows["answer"] == "not shown", ~rows["near"] & ~rows["moot"]
    wrong = ~silent & (rows["answer"] != rows["truth"])
    found = (
        len(rows),
        (rows["answer"] == "yes").sum(),
        (rows["answer"] == "no").sum(),
        (rows["truth"] != "yes").sum(),
        (wrong & (rows["answer"] == "yes")).sum(),
        (rows["truth"] != "no").sum(),
        (wrong & (rows["answer"] == "no")).sum(),
        (wrong & rows["near"]).sum(),
        clear.sum(),
        (clear & silent).sum(),
        rows["near"].sum(),
        rows["moot"].sum(),
    )
    return {name: int(count) for name, count in zip(COUNTS, found, strict=True)}


def shown_confusion(table: pd.DataFrame) -> pd.DataFrame:
    """The table with cells as words: counts, what they are of, and the share."""
    shown = table[[column for column in table if column not in COUNTS] + ["worlds", "yes", "no"]].copy()
    shown["wrong yes"] = _shares(table, "wrong_yes", "not_yes")
    shown["wrong no"] = _shares(table, "wrong_no", "not_no")
    shown["wrong near"] = table["wrong_near"]
    shown["not shown"] = _shares(table, "not_shown", "clear")
    return shown.assign(near=table["near"], moot=table["moot"])


def _shares(table: pd.DataFrame, part: str, whole: str) -> list[str]:
    pairs = zip(table[part], table[whole], strict=True)
    return [f"{some}/{all_of} ({some / all_of:.1%})" if all_of else "–" for some, all_of in pairs]


def wrong(cases: pd.DataFrame) -> pd.DataFrame:
    """The rows whose answer is yes or no, and not the truth."""
    return cases[(cases["answer"] != "not shown") & (cases["answer"] != cases["truth"])]


def calibration_tables(planted: Calibration, trained: Calibration | None = None) -> dict[str, pd.DataFrame]:
    """Every table of a calibration by name: cases, how often each is wrong, and the wrong ones themselves."""
    tables = {
        "cases": planted.answers,
        "claims": planted.claims,
        "confusion": confusion(planted.answers),
        "confusion-of-claims": confusion(planted.claims, ("claim", "texts")),
        "confusion-by-kind": confusion(planted.answers, ("question", "kind")),
        "confusion-by-classes": confusion(planted.answers, ("question", "classes")),
        "wrong": wrong(planted.answers),
    }
    if trained is None:
        return tables
    return tables | {
        "trained-cases": trained.answers,
        "trained-claims": trained.claims,
        "trained-confusion": confusion(trained.answers, ("question", "kind", "texts")),
        "trained-confusion-of-claims": confusion(trained.claims, ("claim", "kind")),
        "trained-wrong": wrong(trained.answers),
    }
