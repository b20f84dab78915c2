"""Explanations that files bring to a comparison: of which texts they are, and of which of them they can be compared."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from heedful.eraser_files import only_spans
from heedful.errors import DataError
from heedful.explanation_files import read_explanations
from heedful.explanations import Explanation
from heedful.notebook import counted, short
from heedful.subjects import Reading, Subject
from heedful.trace_folders import TraceFolder
from heedful.traces import Trace


def of_trace(file: Path, trace: Trace | TraceFolder) -> list[Explanation]:
    """The explanations of a file, which are of all instances of a trace in their order."""
    found = read_explanations(file, class_names=trace.class_names)
    for one in found:
        if len(one) != len(trace):
            raise DataError(
                f"'{file.name}' explains {counted(len(one), 'text')}, the trace has {counted(len(trace), 'instance')}: "
                "explain all of them, in their order."
            )
    return found


def of_file(file: Path, model: Subject, named: Mapping[str, str] | None) -> list[Explanation]:
    """The explanations of a file, which must say of which texts they are."""
    found = read_explanations(file, class_names=model.class_names, texts=named)
    if any(one.texts is None for one in found):
        raise DataError(
            f"'{file.name}' does not say of which texts it is. Its rows need a `text`; ERASER's files are matched by "
            "annotation_id with the column of that name (or docid, id) in a file of data, which there is not."
        )
    return found


def texts_of(found: Sequence[Explanation]) -> list[str]:
    """The texts that files of explanations are of, which must be the same in all of them, in whatever order."""
    known = list(dict.fromkeys(found[0].texts or ()))
    for one in found[1:]:
        if other := set(known) ^ set(one.texts or ()):
            raise DataError(
                f"The files of explanations must be of the same texts; {counted(len(other), 'text')} of '"
                f"{found[0].method}' or '{one.method}' are not in the other, such as '{short(min(other))}'."
            )
    return known


def of_one_class(reading: Reading, found: Sequence[Explanation], model: Subject) -> tuple[Reading, list[str]]:
    """The texts of which all files explain the class that the model decides for, and what must be said of them."""
    texts, decisions = list(reading.units.texts or ()), reading.decisions.tolist()
    about = [dict(zip(one.texts or (), one.targets.tolist(), strict=True)) for one in found]
    kept = [text for text, own in zip(texts, decisions, strict=True) if all(one[text] == own for one in about)]
    said = [f"The {counted(len(kept), 'text')} are those of the files of explanations."]
    if len(kept) == len(texts):
        return reading, said
    if not kept:
        raise DataError(
            f"The files explain another class than {model.name} decides for in all of their {len(texts):,} texts: are "
            "they explanations of this model?"
        )
    gone = counted(len(texts) - len(kept), "text")
    return model.read(kept), [*said, f"Of {gone} more they explain another class than the model decides for."]


def flat_said(given: Sequence[Explanation]) -> list[str]:
    """What must be said of explanations without degrees."""
    return [
        f"'{one.method}' has spans and no degrees: units in a span have the score 1, others 0, and of equal ones the "
        "first comes first."
        for one in given
        if only_spans(one)
    ]
