"""What other tools say of texts, from their own objects, which are read and never imported.

Each of these gives an `Explanation` of the tool's own pieces. Where the texts are known the pieces stand in them, and
what stands for nothing of the text (special tokens, padding) is left out; `heedful.folding.fold` makes words of them.
"""

import base64
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from torch import Tensor

from heedful.explanations import Explanation, ExplanationError, class_number
from heedful.folding import Spans, spans_of
from heedful.notebook import counted, listed
from heedful.traces import floats

Class = int | str | np.integer[Any]
Targets = Class | Sequence[Class] | NDArray[Any] | Int[Tensor, " instances"] | None
"""What is explained: a class for all texts or one for each, by number or by name."""

PIECE_MARKS = ("##", "▁", "Ġ")


def from_pairs(
    pairs: Sequence[Sequence[Any]],
    *,
    targets: Targets,
    class_names: Sequence[str],
    method: str,
    texts: Sequence[str] | None = None,
) -> Explanation:
    """Of each text a list of (token, score), as transformers-interpret gives (`word_attributions`).

    >>> from heedful.explanations_of_others import from_pairs
    >>> said = [[("[CLS]", 0.0), ("a", 0.25), ("du", 0.5), ("##ll", 0.25), ("[SEP]", 0.0)]]
    >>> found = from_pairs(said, targets="no", class_names=["no", "yes"], method="me", texts=["A dull"])
    >>> found.shown, found.scores.tolist()
    (['A', 'du', 'll'], [0.25, 0.5, 0.25])
    """
    try:
        rows = [[(str(token), float(score)) for token, score in row] for row in pairs]
    except (TypeError, ValueError) as error:
        raise ExplanationError(f"Each text must be a list of pairs (token, score): {error}.") from error
    tokens, scores = [[token for token, _ in row] for row in rows], [[score for _, score in row] for row in rows]
    return _made(tokens, scores, targets, class_names, method=method, texts=texts)


def from_captum(
    found: Any,
    tokens: Sequence[Sequence[str]] | None = None,
    *,
    targets: Targets = None,
    class_names: Sequence[str] | None = None,
    texts: Sequence[str] | None = None,
    method: str = "captum",
) -> Explanation:
    """Captum's attributions with the tokens of each text; or its records for pictures (`VisualizationDataRecord`).

    found: a tensor [texts, tokens] or [texts, tokens, features], features are summed; or a list of tensors, one per
        text; or a list of records, which know their tokens and what they are of (`attr_class`).
    tokens: of each text; what the tensor has beyond them is padding.
    """
    if tokens is None:
        records = _records(found)
        tokens = [list(record.raw_input_ids) for record in records]
        targets = [_class(record.attr_class) for record in records] if targets is None else targets
        found = [record.word_attributions for record in records]
    if len(found) != len(tokens):
        raise ExplanationError(
            f"Captum's attributions are of {counted(len(found), 'text')}, the tokens of {len(tokens)}."
        )
    scores = [_summed(row, len(own), number) for number, (row, own) in enumerate(zip(found, tokens, strict=True))]
    return _made(tokens, scores, targets, class_names, method=method, texts=texts)


def _records(found: Any) -> list[Any]:
    """Captum's records, one or several."""
    records = list(found) if isinstance(found, Iterable) else [found]
    if not all(hasattr(record, "word_attributions") and hasattr(record, "raw_input_ids") for record in records):
        raise ExplanationError(
            "Captum's attributions need the tokens of each text (tokens=…), or are given as VisualizationDataRecords."
        )
    return records


def _class(named: Any) -> int | str:
    """A class of a record: a number, or a name as some print it."""
    return named if isinstance(named, str) else int(named)


def _summed(row: Any, count: int, number: int) -> list[float]:
    """The scores of the tokens of one text, features summed, padding left out."""
    values = floats("Attributions", row, ExplanationError)
    values = values.squeeze(0) if values.ndim == 3 and len(values) == 1 else values
    if values.ndim not in (1, 2) or len(values) < count:
        shape = " × ".join(map(str, values.shape))
        raise ExplanationError(
            f"Text {number} has {count} tokens; its attributions must have a row for each, got {shape or 'one number'}."
        )
    return list((values.sum(1) if values.ndim == 2 else values)[:count].tolist())


def from_shap(
    found: Any,
    *,
    targets: Targets = None,
    class_names: Sequence[str] | None = None,
    texts: Sequence[str] | None = None,
    method: str = "shap",
) -> Explanation:
    """A `shap.Explanation` of texts: pieces with their spaces as `data`, of several outputs a column for each.

    targets: None takes for each text the output that its values and the base value make the largest; of one output
        the class that `output_names` names.
    class_names: None takes `output_names` of several outputs.
    texts: None takes the pieces put together, where they hold the spaces.
    """
    data, values, base = found.data, found.values, getattr(found, "base_values", None)
    if isinstance(data[0], str):
        data, values, base = [data], [values], None if base is None else [base]
    tokens = [[str(piece) for piece in row] for row in data]
    rows = [np.asarray(row, dtype=np.float64) for row in values]
    outputs = getattr(found, "output_names", None)
    names: tuple[str, ...] | None
    about: Targets
    if {row.ndim for row in rows} == {2}:
        names = tuple(map(str, class_names if class_names is not None else _list(outputs, rows[0].shape[1])))
        chosen = _largest(rows, base) if targets is None else _numbers(targets, len(rows), names)
        scores, about = [_column(row, number, names) for row, number in zip(rows, chosen, strict=True)], chosen
    elif {row.ndim for row in rows} == {1}:
        scores, names = [row.tolist() for row in rows], None if class_names is None else tuple(map(str, class_names))
        about = _list(outputs, 1)[0] if targets is None else targets
    else:
        raise ExplanationError("SHAP values of texts are one number, or one per class, for each piece of a text.")
    whole = ["".join(row) for row in tokens] if texts is None and _keep_spaces(tokens) else texts
    seconds = getattr(found, "compute_time", None)
    return _made(tokens, scores, about, names, method=method, texts=whole, seconds=seconds)


def _list(names: Any, count: int) -> list[str]:
    """Names of outputs as SHAP has them: a list, one name, or none."""
    if names is None:
        return list(map(str, range(count)))
    return [names] if isinstance(names, str) else [str(name) for name in names]


def _largest(rows: Sequence[NDArray[np.float64]], base: Any) -> list[int]:
    """The output that is the largest for each text: its base value and the sum of its values."""
    sums = np.stack([row.sum(0) for row in rows])
    bases: Any = 0.0 if base is None else np.asarray(base, dtype=np.float64)
    return [int(number) for number in (sums + bases).argmax(1)]


def _column(row: Float[np.ndarray, "pieces outputs"], number: int, names: Sequence[str]) -> list[float]:
    if row.shape[1] != len(names):
        raise ExplanationError(f"SHAP's values have {row.shape[1]} outputs; the classes are {listed(names)}.")
    return list(row[:, number].tolist())


def _keep_spaces(tokens: Sequence[Sequence[str]]) -> bool:
    """Whether pieces put together are the text: no marks of tokenizers, and spaces wherever there are several."""
    marked = any(piece.startswith(PIECE_MARKS) for row in tokens for piece in row)
    return not marked and all(any(sign.isspace() for sign in "".join(row)) or len(row) == 1 for row in tokens)


def from_ferret(found: Any, *, class_names: Sequence[str] | None = None) -> list[Explanation]:
    """Explanations of ferret (text, tokens, scores, explainer, target): one for each explainer, in order.

    class_names: None calls the classes 0, 1, … up to the largest target.
    """
    single = list(found) if isinstance(found, Iterable) else [found]
    wanted = ("text", "tokens", "scores", "explainer", "target")
    for place, one in enumerate(single):
        if missing := [name for name in wanted if not hasattr(one, name)]:
            raise ExplanationError(
                f"An explanation of ferret has {', '.join(wanted)}; number {place} lacks {missing[0]}."
            )
    names = class_names or [str(number) for number in range(max(2, 1 + max(int(one.target) for one in single)))]
    return [_of_explainer([one for one in single if one.explainer == explainer], names) for explainer in _once(single)]


def _once(found: Sequence[Any]) -> list[str]:
    return list(dict.fromkeys(one.explainer for one in found))


def _of_explainer(found: Sequence[Any], class_names: Sequence[str]) -> Explanation:
    tokens = [list(map(str, one.tokens)) for one in found]
    scores = [_summed(one.scores, len(one.tokens), place) for place, one in enumerate(found)]
    texts, targets = [one.text for one in found], [int(one.target) for one in found]
    return _made(tokens, scores, targets, class_names, method=str(found[0].explainer), texts=texts)


def from_inseq(found: Any, *, targets: Targets, class_names: Sequence[str], method: str | None = None) -> Explanation:
    """Inseq's `FeatureAttributionOutput`, or what it saves as JSON: attributions [tokens, 1], one step per text.

    Attributions over features are aggregated in Inseq first (`found.aggregate()`). Of a decoder the tokens before the
    step are explained.
    """
    sequences, notes = _part(found, "sequence_attributions"), _part(found, "info") or {}
    if not sequences:
        raise ExplanationError("An output of Inseq has sequence_attributions; there are none.")
    rows = [_step(sequence, number) for number, sequence in enumerate(sequences)]
    texts, name = notes.get("input_texts"), method or str(notes.get("attribution_method") or "inseq")
    tokens, scores = [own for own, _ in rows], [own for _, own in rows]
    return _made(tokens, scores, targets, class_names, method=name, texts=texts)


def _part(thing: Any, name: str) -> Any:
    """A part of an object, or of what was saved of it."""
    if isinstance(thing, Mapping):
        return thing.get("attributes", thing).get(name)
    return getattr(thing, name, None)


def _step(sequence: Any, number: int) -> tuple[list[str], list[float]]:
    """The tokens and scores of the one step of a text."""
    side = "source" if _part(sequence, "source_attributions") is not None else "target"
    values = _tensor(_part(sequence, f"{side}_attributions"))
    if values.ndim != 2 or values.shape[1] != 1:
        shape = " × ".join(map(str, values.shape))
        raise ExplanationError(
            f"Inseq's attributions of text {number} are {shape}; one score per token is needed, tokens × 1. "
            "Aggregate them in Inseq (found.aggregate()) and attribute one step."
        )
    tokens = [str(_part(token, "token")) for token in _part(sequence, side)]
    kept = [place for place, value in enumerate(values[:, 0]) if not np.isnan(value)]
    return [tokens[place] for place in kept], [float(values[place, 0]) for place in kept]


def _tensor(values: Any) -> NDArray[np.float64]:
    """Numbers: a tensor, lists, or the text that Inseq saves a tensor as."""
    if not isinstance(values, str):
        return np.asarray(values, dtype=np.float64)
    try:
        return np.asarray(load_tensors(base64.b64decode(values))["attribution"].double().numpy())
    except (ValueError, KeyError, SafetensorError) as error:
        raise ExplanationError(f"Attributions saved by Inseq cannot be read: {error}.") from error


def _made(
    tokens: Sequence[Sequence[str]],
    scores: Sequence[Sequence[float]],
    targets: Any,
    class_names: Sequence[str] | None,
    *,
    method: str,
    texts: Sequence[str] | None,
    seconds: float | None = None,
) -> Explanation:
    """The pieces as an explanation; where the texts are known in their places, without those that have none."""
    if class_names is None:
        raise ExplanationError(f"What {method} says does not tell the classes: give class_names, in their order.")
    names = tuple(map(str, class_names))
    about: dict[str, Any] = {
        "targets": _numbers(targets, len(tokens), names),
        "class_names": names,
        "method": method,
        "seconds": seconds,
    }
    if texts is None:
        return Explanation.of_lists(scores, units=tokens, **about)
    if len(texts) != len(tokens):
        raise ExplanationError(f"{method} explains {counted(len(tokens), 'text')}; {len(texts)} are given.")
    places = [_placed(own, text, number) for number, (own, text) in enumerate(zip(tokens, texts, strict=True))]
    kept = [[score for score, span in zip(*row, strict=True) if span] for row in zip(scores, places, strict=True)]
    return Explanation.of_lists(
        kept, texts=list(texts), spans=[[span for span in own if span] for own in places], **about
    )


def _placed(tokens: Sequence[str], text: str, number: int) -> Spans:
    try:
        return spans_of(tokens, text)
    except ExplanationError as error:
        raise ExplanationError(f"Text {number}: {error}") from None


def _numbers(targets: Targets, texts: int, names: Sequence[str]) -> list[int]:
    """The class of each text by its number."""
    if targets is None:
        raise ExplanationError("What is explained must be known: give targets, a class or one for each text.")
    plain = targets.tolist() if isinstance(targets, (np.ndarray, np.integer, Tensor)) else targets
    each = [plain] * texts if isinstance(plain, (str, int)) else list(plain)
    if len(each) != texts:
        raise ExplanationError(
            f"There are {len(each)} targets for {counted(texts, 'text')}; give one class, or one for each."
        )
    return [class_number(one, names) for one in each]
