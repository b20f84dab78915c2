"""How often the answer, or a claim behind it, is not the truth: tables of what `heedful.studies.calibration.judge` saw.

A yes is wrong where the truth is not yes, a no where it is not no. "Not shown" is held against the answer where the
truth is clear: not near a line, and about something that there is (`heedful.studies.calibration.case.Truth`).
"""

from collections.abc import Iterable

import pandas as pd

COUNTS = ("worlds", "not_yes", "wrong_yes", "not_no", "wrong_no", "wrong_near", "clear", "not_shown", "near", "moot")


def confusion(cases: pd.DataFrame, by: Iterable[str] = ("question", "texts")) -> pd.DataFrame:
    """One row for each value of these columns: how many worlds, what was wrong, and what that is of.

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
    keys = [column for column in table if column not in COUNTS]
    return table[keys].assign(
        worlds=table["worlds"],
        **{
            "wrong yes": _shares(table, "wrong_yes", "not_yes"),
            "wrong no": _shares(table, "wrong_no", "not_no"),
            "of these near": table["wrong_near"],
            "not shown": _shares(table, "not_shown", "clear"),
            "near": table["near"],
            "moot": table["moot"],
        },
    )


def _shares(table: pd.DataFrame, part: str, whole: str) -> list[str]:
    pairs = zip(table[part], table[whole], strict=True)
    return [f"{some} of {all_of} ({some / all_of:.1%})" if all_of else "–" for some, all_of in pairs]


def wrong(cases: pd.DataFrame) -> pd.DataFrame:
    """The rows whose answer is yes or no, and not the truth."""
    return cases[(cases["answer"] != "not shown") & (cases["answer"] != cases["truth"])]
