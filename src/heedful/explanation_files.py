"""Files of explanations: Parquet and JSON lines with one row per text, ERASER's JSON lines, CSV and LaTeX for people.

A row has `scores`, `target` (a class by name, or its number), and what is known of `text`, `units`, `starts`, `ends`
(lists, one entry per score), `class_names`, `method`, `signed`, and `seconds`, `passes` and `remark` of the
explanation as a whole, the same in each of its rows. One file may hold several explanations: `explanation` says which
one a row is of; without it the method does. Numbers come back to the last bit.

ERASER's files are those of `heedful.eraser_files`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from heedful.eraser_files import labels_of, onto, read_eraser, write_eraser
from heedful.errors import border
from heedful.explanations import Explanation, ExplanationError, class_number
from heedful.explanations_of_others import from_inseq
from heedful.files import is_file, replacing, write_table, write_text
from heedful.folding import fold
from heedful.notebook import listed, short
from heedful.subjects import Units
from heedful.text.tables import writable

Row = Mapping[str, Any]

SCHEMA = pa.schema(
    {
        "explanation": pa.int64(),
        "method": pa.string(),
        "text": pa.string(),
        "units": pa.list_(pa.string()),
        "starts": pa.list_(pa.int64()),
        "ends": pa.list_(pa.int64()),
        "scores": pa.list_(pa.float64()),
        "target": pa.string(),
        "class_names": pa.list_(pa.string()),
        "signed": pa.bool_(),
        "seconds": pa.float64(),
        "passes": pa.int64(),
        "remark": pa.string(),
    }
)

FORMATS = (".parquet", ".jsonl", ".json")
ERASER = ".eraser.jsonl"


def read_explanations(
    path: Path | str,
    units: Units | None = None,
    *,
    class_names: Sequence[str] | None = None,
    texts: Mapping[str, str] | None = None,
) -> list[Explanation]:
    """The explanations in a file: Parquet, JSON lines (heedful's or ERASER's), or one JSON object.

    units: of a reading of the same texts, into which the pieces are folded (`heedful.folding.fold`). Texts that the
        file knows are matched by what they are; of those that it does not know the order must be the same.
    class_names: of the model, in their order; what the file calls by name gets their numbers.
    texts: by what each is called (annotation_id), for ERASER's files, which hold none. Their spans become scores: 1 for
        what a span touches, 0 for the rest.

    A JSON object holds the arguments of `Explanation.of_lists`, {"scores": [[…], …], "targets": […], "class_names":
    […], "method": …, "units": […]}; or it is an output of Inseq, of which class_names are needed: what was generated
    for each text names the class.
    """
    place = Path(path)
    if place.suffix not in FORMATS:
        raise ExplanationError(f"Explanations are read from {', '.join(FORMATS)}, not from '{place.name}'.")
    if not is_file(place):
        raise ExplanationError(f"There is no file '{place}'.")
    with border(f"'{place.name}'", ExplanationError):
        if place.suffix == ".json":
            found = [_of_object(_parsed(place.read_bytes(), place.name), class_names)]
        else:
            rows = _parquet_rows(place) if place.suffix == ".parquet" else _lines(place)
            if "rationales" in rows[0]:
                return _of_eraser(rows, units, class_names, texts=texts, method=place.stem)
            found = _of_rows(rows, class_names)
    return found if units is None else [fold(matched(one, units), units) for one in found]


def write_explanations(path: Path | str, explanations: Sequence[Explanation]) -> None:
    """Write explanations by the ending of the name: .parquet or .jsonl to be read again, .csv and .tex with one row per
    unit, and .eraser.jsonl, which holds one explanation, in ERASER's form (`heedful.eraser_files`)."""
    place = Path(path)
    if not explanations:
        raise ExplanationError("There is no explanation to write; give a list with one at least.")
    if place.name.endswith(ERASER):
        if len(explanations) > 1:
            raise ExplanationError(f"ERASER's form has no names: give each of {len(explanations)} explanations a file.")
        write_eraser(place, explanations[0])
    elif place.suffix in {".csv", ".tex"}:
        write_table(place, pd.concat([_frame(one) for one in explanations], ignore_index=True))
    elif place.suffix == ".jsonl":
        write_text(place, "".join(json.dumps(row) + "\n" for row in _rows(explanations)))
    elif place.suffix == ".parquet":
        with replacing(place) as temporary:
            pq.write_table(pa.Table.from_pylist(list(_rows(explanations)), SCHEMA), temporary, compression="zstd")
    else:
        raise ExplanationError(
            f"For ERASER as {ERASER}, for papers as .tex, else explanations are written as .parquet, .jsonl or .csv, "
            f"not as '{place.name}'."
        )


def _frame(explanation: Explanation) -> pd.DataFrame:
    spans = [(None, None)] * len(explanation.scores) if explanation.spans is None else explanation.spans.tolist()
    places = pd.DataFrame({"start": [start for start, _ in spans], "end": [end for _, end in spans]})
    table = pd.concat([explanation.to_frame(), places], axis=1)
    table.insert(0, "method", explanation.method)
    return table


def _rows(explanations: Sequence[Explanation]) -> Iterator[dict[str, Any]]:
    """One row per text."""
    for number, one in enumerate(explanations):
        known = one.names is not None or (one.texts is not None and one.spans is not None)
        units = [writable(unit) for unit in one.shown] if known else None
        starts, ends = (None, None) if one.spans is None else one.spans.T.tolist()
        flat = {"units": units, "starts": starts, "ends": ends, "scores": one.scores.tolist()}
        for row, (begin, end) in enumerate(pairwise(one.offsets.tolist())):
            yield {
                "explanation": number,
                "method": one.method,
                "text": None if one.texts is None else writable(one.texts[row]),
                **{name: None if values is None else values[begin:end] for name, values in flat.items()},
                "target": one.class_names[int(one.targets[row])],
                "class_names": list(one.class_names),
                "signed": one.signed,
                "seconds": one.seconds,
                "passes": one.passes,
                "remark": one.remark,
            }


def _parquet_rows(path: Path) -> list[Row]:
    try:
        rows: list[Row] = pq.read_table(path).to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise ExplanationError(f"'{path.name}' is not a readable Parquet file: {str(error).rstrip('.')}.") from error
    return _checked_rows(rows, path)


def _lines(path: Path) -> list[Row]:
    lines = path.read_bytes().splitlines()
    rows = [_parsed(line, f"line {number} of {path.name}") for number, line in enumerate(lines, 1) if line.strip()]
    return _checked_rows(rows, path)


def _parsed(text: bytes, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ExplanationError(f"{where} is not JSON: {error}.") from error


def _checked_rows(rows: Sequence[Any], path: Path) -> list[Row]:
    if not rows:
        raise ExplanationError(f"'{path.name}' holds no explanation: there are no rows.")
    if len({isinstance(row, Mapping) and "rationales" in row for row in rows}) > 1:
        raise ExplanationError(f"'{path.name}' has rows in ERASER's form and others; give one file for each.")
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping) or not ("rationales" in row or {"scores", "target"} <= row.keys()):
            held = listed(list(row)) if isinstance(row, Mapping) else short(repr(row))
            raise ExplanationError(
                f"Row {number} of '{path.name}' (the first is 0) must have scores and target, or rationales as ERASER "
                f"has them; it has {held}."
            )
    return list(rows)


def _of_rows(rows: Sequence[Row], class_names: Sequence[str] | None) -> list[Explanation]:
    """The explanations of the rows, each with its own."""
    parts: dict[Any, list[Row]] = {}
    for row in rows:
        parts.setdefault((row.get("explanation"), row.get("method")), []).append(row)
    return [_of_part(own, class_names) for own in parts.values()]


def _of_part(rows: Sequence[Row], class_names: Sequence[str] | None) -> Explanation:
    first, targets = rows[0], [row["target"] for row in rows]
    if own := first.get("class_names"):
        targets = [own[class_number(target, own)] for target in targets]
    names = class_names or own or _named(targets)
    texts, units = _all(rows, "text"), _all(rows, "units")
    starts, ends = _all(rows, "starts"), _all(rows, "ends")
    spans = None if starts is None or ends is None else list(map(_spans, starts, ends))
    if units is not None and texts is not None and spans is not None and _shows(units, texts, spans):
        units = None
    return Explanation.of_lists(
        [_floats(row["scores"]) for row in rows],
        targets=[class_number(target, names) for target in targets],
        class_names=list(map(str, names)),
        method=str(first.get("method") or "unnamed"),
        units=units,
        texts=texts,
        spans=spans,
        **{name: first.get(name) for name in ("signed", "seconds", "passes", "remark")},
    )


def _floats(numbers: Sequence[Any]) -> list[float]:
    """Numbers, whole ones too; what is none is refused when an explanation is made."""
    return [float(number) if isinstance(number, int) else number for number in numbers]


def _all(rows: Sequence[Row], name: str) -> list[Any] | None:
    """A column that every row has; None where none has it."""
    values = [row.get(name) for row in rows]
    lacking = next((number for number, value in enumerate(values) if value is None), None)
    if lacking is not None and any(value is not None for value in values):
        raise ExplanationError(
            f"{name} must be known of all texts of an explanation or of none; text {lacking} has none."
        )
    return None if lacking is not None else values


def _spans(starts: Sequence[int], ends: Sequence[int]) -> list[tuple[int, int]]:
    if len(starts) != len(ends):
        raise ExplanationError(f"starts and ends are one of each per unit; there are {len(starts)} and {len(ends)}.")
    return [(int(start), int(end)) for start, end in zip(starts, ends, strict=True)]


def _shows(units: Sequence[Sequence[str]], texts: Sequence[str], spans: Sequence[Sequence[tuple[int, int]]]) -> bool:
    """Whether the units are what the texts have in these places."""
    return all(
        list(own) == [text[start:end] for start, end in places]
        for own, text, places in zip(units, texts, spans, strict=True)
    )


def _named(targets: Sequence[Any]) -> list[str]:
    """The classes of which nobody says how many there are: those that are targets."""
    if all(isinstance(target, str) for target in targets):
        return sorted(set(targets))
    return [str(number) for number in range(max(2, 1 + max(int(target) for target in targets)))]


def _of_object(found: Any, class_names: Sequence[str] | None) -> Explanation:
    """One JSON object: an output of Inseq, or the arguments of `Explanation.of_lists`."""
    if not isinstance(found, Mapping):
        raise ExplanationError('A .json file holds one object, {"scores": [[…], …], "targets": […], …}.')
    if "sequence_attributions" in found.get("attributes", found):
        if class_names is None:
            raise ExplanationError("An output of Inseq does not tell the classes: give class_names, in their order.")
        told = found.get("attributes", found).get("info", {}).get("generated_texts", [])
        return from_inseq(found, targets=[str(name).strip() for name in told], class_names=class_names)
    names = class_names or found.get("class_names") or _named(found.get("targets") or [])
    try:
        about = {**found, "class_names": names, "targets": [class_number(target, names) for target in found["targets"]]}
        about["scores"] = [_floats(row) for row in about["scores"]]
        return Explanation.of_lists(**{"method": "unnamed", **about})
    except (TypeError, KeyError) as error:
        raise ExplanationError(f"The object must hold scores, targets, class_names and method: {error}.") from error


def _of_eraser(
    rows: Sequence[Row],
    units: Units | None,
    class_names: Sequence[str] | None,
    *,
    texts: Mapping[str, str] | None,
    method: str,
) -> list[Explanation]:
    """One explanation, on the units of a reading where that is known."""
    labels, named = labels_of(rows)
    names = list(map(str, class_names or named))
    about: dict[str, Any] = {"targets": [class_number(label, names) for label in labels], "class_names": names}
    found = Explanation.of_lists(**read_eraser(rows, texts, units), **about, method=method)
    return [found if units is None or found.texts is None else onto(matched(found, units), units)]


def matched(found: Explanation, units: Units) -> Explanation:
    """Of an explanation that has the texts of a reading in another order, or others too, those of the reading."""
    if found.texts is None or units.texts is None or list(found.texts) == list(units.texts):
        return found
    place = {text: row for row, text in reversed(list(enumerate(found.texts)))}
    if not all(text in place for text in units.texts):
        return found  # `fold` says where the two differ
    if other := [row for row, text in enumerate(found.texts) if not _same(found, place[text], row)]:
        raise ExplanationError(
            f"'{found.method}' explains text {place[found.texts[other[0]]]} (the first is 0) again as text {other[0]}, "
            "and in another way: which is meant is not known. Give one row for each text, or one file for each class."
        )
    return found.take(torch.tensor([place[text] for text in units.texts]))


def _same(found: Explanation, row: int, other: int) -> bool:
    """Whether two texts have the same class and scores."""
    if row == other:
        return True
    one, two = (found.take(torch.tensor([number])) for number in (row, other))
    return torch.equal(one.targets, two.targets) and torch.equal(one.scores, two.scores)
