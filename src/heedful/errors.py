"""Errors a user can mend. Each is a sentence: what was expected, what came, what to do."""

import difflib
import importlib
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import ModuleType


class HeedfulError(Exception):
    """Base of every error that heedful raises on purpose: a sentence on what was expected, what came, what to do.

    Those about something given (data, settings, arrays, names) are also a ValueError.

    >>> import heedful
    >>> try:
    ...     heedful.Trace.from_arrays(offsets=[1, 2], attention_scores=[0], polarity_scores=[5], bias=[0])
    ... except heedful.HeedfulError as error:
    ...     print(error)
    offsets must start with 0, not 1.
    """


class InputError(HeedfulError, ValueError):
    """Something the user gave cannot be used."""


class DataError(InputError):
    """A file, a table or a corpus that cannot be used."""


class ConfigError(InputError):
    """A setting that cannot be used."""


class TraceError(InputError):
    """Arrays that do not make a trace."""


class UnknownName(InputError):
    """A name that no registry holds; says which names there are and which is nearest."""

    def __init__(self, kind: str, name: object, known: Iterable[str]) -> None:
        names = sorted(known)
        near = difflib.get_close_matches(str(name), names, n=1)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        super().__init__(f"There is no {kind} '{name}'.{hint} Known: {', '.join(names)}.")


class CheckpointError(HeedfulError):
    """A model file that cannot be loaded."""


class StoreError(HeedfulError):
    """A run directory that cannot be read or written."""


class StoreBusy(StoreError):
    """A run that another process is computing at this moment."""


class MissingExtra(HeedfulError):
    """A library that heedful does not bring along by itself."""


@contextmanager
def border(what: str, kind: type[HeedfulError], remedy: str = "") -> Iterator[None]:
    """Something from elsewhere is read by a library inside: whatever goes wrong there is a sentence that names it."""
    try:
        yield
    except HeedfulError:
        raise
    except Exception as error:
        raise kind(f"{what} cannot be read: {reason(error)}.{remedy and ' '}{remedy}") from error


def reason(error: BaseException) -> str:
    """What a library said, to stand inside a sentence: on one line, not too long, without the last period."""
    said = textwrap.shorten(str(error), 200, placeholder=" …") or type(error).__name__
    return said.encode("utf-8", "replace").decode().rstrip(".")


def load_extra(module: str, extra: str, what: str) -> ModuleType:
    """A library of an extra; where it is missing, how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = module.split(".")[0]
        raise MissingExtra(
            f"{what} need {name}, which cannot be imported here ({error}): pip install 'heedful[{extra}]'."
        ) from error
