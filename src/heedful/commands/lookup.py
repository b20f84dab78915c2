"""Runs as people name them: a directory, or the beginning of a name in the store."""

from pathlib import Path
from typing import TYPE_CHECKING

from heedful.store import Store

if TYPE_CHECKING:
    from heedful.pipeline import Run


def find_run(name: str, store: Path) -> "Run":
    """The run in that directory; where there is none, the run whose name begins so, in the store or in its folder."""
    from heedful.pipeline import Run

    place = Path(name)
    if place.is_dir():
        return Run(place)
    root = place.parent if len(place.parts) > 1 else store
    return Run(Store(root).resolve(place.name))
