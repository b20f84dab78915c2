"""The store: run directories that are finished or absent."""

from pathlib import Path
from typing import Any

from heedful.errors import StoreError
from heedful.files import read_json, replacing, write_json

FORMAT = 1
"""Raised when the layout of a run directory changes; a store of a newer format is refused."""

MANIFEST = "manifest.json"


class Store:
    """A folder of finished runs, one directory each, found by the digest that begins its name.

    A run is written under `.work/` and moved into place as a whole, its manifest last; so what has a manifest is
    finished, and what has none is not there.
    """

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)

    def find(self, digest: str) -> Path | None:
        """The directory of a finished run."""
        return next((path for path in self.root.glob(f"{digest[:12]}*") if (path / MANIFEST).is_file()), None)

    def finished(self) -> list[Path]:
        """The directories of all finished runs, by name."""
        if not self.root.is_dir():
            return []
        return sorted(path for path in self.root.iterdir() if (path / MANIFEST).is_file())

    def workplace(self, digest: str) -> Path:
        """Where an unfinished run keeps its checkpoint."""
        return self.root / ".work" / digest[:12]

    def publish(self, written: Path, name: str, manifest: dict[str, Any]) -> Path:
        """Move a written run directory into place, with its manifest; replaces a run of the same name."""
        write_json(written / MANIFEST, {"format": FORMAT, **manifest})
        target = self.root / name
        with replacing(target) as temporary:
            written.replace(temporary)
        return target


def read_manifest(run: Path) -> dict[str, Any]:
    """The manifest of a finished run, refused when it comes from a newer version."""
    manifest = read_json(run / MANIFEST)
    if not isinstance(manifest, dict) or "format" not in manifest:
        raise StoreError(f"'{run / MANIFEST}' is not the manifest of a run.")
    if manifest["format"] > FORMAT:
        raise StoreError(
            f"'{run}' was written by a newer version (format {manifest['format']}, this one reads {FORMAT}). "
            "Update heedful, or use another store."
        )
    return manifest
