"""`python -m release.check dist/heedful-….whl`: the wheel in clean environments, as a stranger installs it.

The core is installed alone, and everything is run in an empty folder by an isolated Python, so that nothing of the
repository can be found. Then each extra: without it its use must end in a sentence that says how to get it, with it
(installed into an environment of its own above that of the core) the use must work. Environments are removed.
"""

import argparse
import os
import shutil
import subprocess
import sys
import zipfile
from email.parser import BytesParser
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).parent
NOT_TRIED = {"dev"}  # the extras of those who work on heedful


def extras_of(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        said = BytesParser().parsebytes(archive.read(name))
    return [str(extra) for extra in said.get_all("Provides-Extra", ()) if extra not in NOT_TRIED]


def make_environment(place: Path, python: str, above: Path | None = None) -> Path:
    """The Python of a new environment, which sees what is installed in the one below it."""
    subprocess.run([python, "-m", "venv", place], check=True)
    if above is not None:
        (packages,) = place.glob("lib/python*/site-packages")
        (below,) = above.parents[1].glob("lib/python*/site-packages")
        (packages / "below.pth").write_text(f"{below}\n", encoding="utf-8")
    return place / "bin" / "python"


def install(python: Path, what: str, constraints: Path | None) -> None:
    bounds = ["--constraint", str(constraints)] if constraints else []
    subprocess.run([python, "-m", "pip", "install", "--quiet", *bounds, what], check=True)


def use(python: Path, name: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """In an empty folder, by a Python that sees its own packages alone."""
    folder.mkdir()
    script = shutil.copy(HERE / "uses.py", folder / "uses.py")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "HEEDFUL"))}
    command = [str(python), "-I", script, name, str(folder)]
    return subprocess.run(command, cwd=folder, env=clean, capture_output=True, text=True, timeout=1800)


def check(wheel: Path, python: str, constraints: Path | None, wanted: list[str]) -> None:
    known = extras_of(wheel)
    with TemporaryDirectory(prefix="heedful-") as folder:
        place = Path(folder)
        core = make_environment(place / "core", python)
        install(core, str(wheel), constraints)
        _expect(use(core, "core", place / "core-use"), "core")
        for name in wanted or known:
            without = use(core, name, place / f"without-{name}")
            if without.returncode != 1 or f"heedful[{name}]" not in without.stderr:
                sys.exit(
                    f"without {name}: ended with {without.returncode}, and said: {without.stderr or without.stdout}"
                )
            own = make_environment(place / name, python, above=core)
            install(own, f"{wheel}[{name}]", constraints)
            _expect(use(own, name, place / f"{name}-use"), name)
            shutil.rmtree(place / name)


def _expect(ended: "subprocess.CompletedProcess[str]", name: str) -> None:
    if ended.returncode:
        sys.exit(f"{name}: {ended.stderr or ended.stdout}")
    print(f"{name:13} {ended.stdout.strip()}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--python", default=sys.executable, help="of the environments")
    parser.add_argument("--constraints", type=Path, default=None, help="exact versions, for pip")
    parser.add_argument("--extra", action="append", default=[], help="only these; default: all")
    given = parser.parse_args()
    check(given.wheel.resolve(), given.python, given.constraints and given.constraints.resolve(), given.extra)
