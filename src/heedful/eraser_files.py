"""Explanations in ERASER's form (DeYoung et al. 2020, the format of its evaluation): one JSON object per text.

`annotation_id`; `rationales` of one document with `soft_rationale_predictions`, a score for each token between white
space, or `hard_rationale_predictions`, spans [start_token, end_token) of them; `classification`. The files hold no
texts: a text is found by its annotation_id, unless a row has its `text`, which is more than ERASER asks for.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from heedful.explanations import Explanation, ExplanationError
from heedful.files import write_text
from heedful.folding import fold
from heedful.notebook import counted, short
from heedful.subjects import Units
from heedful.text.tokenize import Tokenizer, Vocabulary

Row = Mapping[str, Any]

ID, SOFT, HARD = "annotation_id", "soft_rationale_predictions", "hard_rationale_predictions"


def read_eraser(rows: Sequence[Row], texts: Mapping[str, str] | None, units: Units | None) -> dict[str, Any]:
    """The arguments of `Explanation.of_lists` but for classes and method: soft scores, or 1 in spans and 0 elsewhere.

    texts: by annotation_id. units: of a reading, whose texts are meant in their order where nothing else names them.
    """
    own, soft = _texts(rows, texts, units), _soft(rows)
    if own is None:
        if not soft:
            raise ExplanationError("Row 0 has spans and no scores: how long its text is, only a reading tells.")
        return {"scores": [_scores(_rationale(row, place)[SOFT], place) for place, row in enumerate(rows)]}
    tokens = between_spaces(own)
    assert tokens.spans is not None
    scores = [
        (_of_soft if soft else _of_spans)(_rationale(row, place), place, length)
        for place, (row, length) in enumerate(zip(rows, tokens.lengths.tolist(), strict=True))
    ]
    places = [tuple(place) for place in tokens.spans.tolist()]
    spans = [places[begin:end] for begin, end in pairwise(tokens.offsets.tolist())]
    return {"scores": scores, "texts": own, "spans": spans}


def onto(found: Explanation, units: Units) -> Explanation:
    """Scores of tokens between white space on the units of a reading; of spans a unit has 1 if a span touches it."""
    told = fold(found, units)
    return told.with_scores((told.scores > 0).double()) if only_spans(found) else told


def only_spans(found: Explanation) -> bool:
    """Whether an explanation has no degrees: its scores are 0 and 1."""
    return bool(((found.scores == 0) | (found.scores == 1)).all())


def _texts(rows: Sequence[Row], texts: Mapping[str, str] | None, units: Units | None) -> list[str] | None:
    """The text of each row: its own, or that of its id, or that in its place; None where nothing tells."""
    if all(isinstance(row.get("text"), str) for row in rows):
        return [row["text"] for row in rows]
    if texts is not None:
        unknown = [str(row.get(ID)) for row in rows if str(row.get(ID)) not in texts]
        if unknown:
            raise ExplanationError(
                f"Of {counted(len(rows), 'row')} {len(unknown):,} have an {ID} that no text of the data has, such as "
                f"'{short(unknown[0])}'; the data have '{short(next(iter(texts), ''))}' and {max(0, len(texts) - 1):,} "
                "more. Are they of the same data?"
            )
        return [texts[str(row[ID])] for row in rows]
    if units is None or units.texts is None:
        return None
    if len(units.texts) != len(rows):
        raise ExplanationError(f"ERASER's file is of {counted(len(rows), 'text')}, the reading of {len(units.texts)}.")
    return list(units.texts)


def _soft(rows: Sequence[Row]) -> bool:
    """Whether there are scores, of all rows or of none."""
    known = [bool(_rationale(row, place).get(SOFT)) for place, row in enumerate(rows)]
    if any(known) and not all(known):
        raise ExplanationError(
            f"Row {known.index(False)} has no {SOFT} and others have; they must be there for all texts or for none."
        )
    return all(known)


def _rationale(row: Row, place: int) -> Row:
    """The rationale of the one document of a row."""
    given = row.get("rationales")
    told = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else []
    if len(told) != 1 or not isinstance(told[0], Mapping):
        raise ExplanationError(f"Row {place} must have the rationale of one document; it has {len(told)}.")
    found: Row = told[0]
    return found


def _scores(given: Any, place: int) -> list[float]:
    if not isinstance(given, Sequence) or isinstance(given, str) or not all(isinstance(n, (int, float)) for n in given):
        raise ExplanationError(f"Row {place} must have numbers as {SOFT}; it has {short(repr(given))}.")
    return [float(number) for number in given]


def _of_soft(rationale: Row, place: int, length: int) -> list[float]:
    found = _scores(rationale[SOFT], place)
    if len(found) != length:
        raise ExplanationError(
            f"Row {place} has {counted(len(found), 'score')}; its text has {counted(length, 'token')} between white "
            "space. Is this the explanation of this text?"
        )
    return found


def _of_spans(rationale: Row, place: int, length: int) -> list[float]:
    """1 for each token in a span, 0 for the others."""
    found = [0.0] * length
    for span in rationale.get(HARD) or ():
        try:
            start, end = int(span["start_token"]), int(span["end_token"])
        except (KeyError, TypeError, ValueError) as error:
            raise ExplanationError(
                f"Row {place} must have spans {{start_token, end_token}}; one is {short(repr(span))}."
            ) from error
        if not 0 <= start <= end <= length:
            raise ExplanationError(
                f"Row {place} has a span [{start}, {end}); its text has {counted(length, 'token')} between white "
                "space. Is this the explanation of this text?"
            )
        found[start:end] = [1.0] * (end - start)
    return found


def labels_of(rows: Sequence[Row]) -> tuple[list[Any], list[str]]:
    """Which class each row explains, and all classes that are named, sorted."""
    labels = [row.get("classification") for row in rows]
    if None in labels:
        raise ExplanationError(
            f"Row {labels.index(None)} has no classification: which class is explained must be known."
        )
    named = [row.get("classification_scores") or {} for row in rows]
    return labels, sorted({str(name) for label, own in zip(labels, named, strict=True) for name in (label, *own)})


def between_spaces(texts: Sequence[str]) -> Units:
    """The tokens of ERASER: what stands between white space."""
    found = Tokenizer(mode="whitespace", lowercase=False).encode(list(texts), Vocabulary.of(()))
    return Units(offsets=found.offsets, texts=texts, spans=found.spans.long())


def write_eraser(path: Path | str, explanation: Explanation, ids: Sequence[str] | None = None) -> None:
    """Write one explanation as ERASER's JSON lines, a soft score for each token between white space.

    Units are folded into these tokens where the texts are known; otherwise they are the tokens.
    ids: what each text is called; None: its number.
    """
    names = [str(number) for number in range(len(explanation))] if ids is None else list(ids)
    if len(names) != len(explanation):
        raise ExplanationError(f"There are {len(explanation)} texts and {len(names)} ids; one for each is needed.")
    told = explanation if explanation.texts is None else fold(explanation, between_spaces(explanation.texts))
    rows = [
        {
            ID: name,
            "rationales": [{"docid": name, HARD: [], SOFT: told.scores[begin:end].tolist()}],
            "classification": told.class_names[int(told.targets[row])],
        }
        for row, (name, (begin, end)) in enumerate(zip(names, pairwise(told.offsets.tolist()), strict=True))
    ]
    write_text(Path(path), "".join(json.dumps(row) + "\n" for row in rows))
