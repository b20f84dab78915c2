"""Runs as people name them: a directory, or the beginning of a name in the store."""

from pathlib import Path
from typing import TYPE_CHECKING

from heedful.errors import StoreError
from heedful.store import MANIFEST, Store

if TYPE_CHECKING:
    from heedful.pipeline import Run


def find_run(name: str, store: Path) -> "Run":
    """The run in that directory; where there is none, the run whose name begins so, in the store or in its folder."""
    from heedful.pipeline import Run

    place = Path(name)
    if (place / MANIFEST).is_file():
        return Run(place)
    if name in {"", "."} or (place.is_absolute() and place.is_dir()):
        raise StoreError(
            f"'{name}' is not a run: there is no {MANIFEST} in it. Give the directory of a run, or the beginning of "
            "its name in the store (`heedful runs list`)."
        )
    root = place.parent if len(place.parts) > 1 else store
    return Run(Store(root).resolve(place.name))
