"""What is shipped: the wheel's files, its libraries and their licences, and that importing costs nothing."""

import ast
import re
import subprocess
import sys
import tomllib
import zipfile
from email.parser import BytesParser
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder
from packaging.utils import canonicalize_name

import heedful
from release import licences, uses
from release.check import extras_of
from tests.commands import environment

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src" / "heedful"
HEAVY = {"torch", "pandas", "numpy", "matplotlib", "scipy", "pyarrow", "pydantic", "numba", "jinja2", "rich", "typer"}

INDIRECT = {"markupsafe": "jinja2", "starlette": "fastapi"}
"""Imported, and required by a library that is required."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made by the builder that pyproject.toml names, without a network or an environment of its own."""
    (made,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path_factory.mktemp("dist")), versions=["standard"])
    return Path(made)


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        about = {name.partition(".dist-info/")[2] for name in archive.namelist()} - {""}
    of_package = (path for path in SOURCES.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    assert names == {path.relative_to(SOURCES.parent).as_posix() for path in of_package}
    assert {"heedful/py.typed", "heedful/report/templates/page.html", "heedful/web/static/main.js"} <= names
    assert about == {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}
    assert wheel.stat().st_size < 2_000_000


def test_the_wheel_is_the_same_when_it_is_built_again(wheel: Path, tmp_path: Path) -> None:
    (again,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    assert Path(again).read_bytes() == wheel.read_bytes()


def test_the_wheel_says_who_it_is(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("METADATA")]
        said = BytesParser().parsebytes(archive.read(name))
    assert (said["Name"], said["Version"], said["License-Expression"]) == ("heedful", heedful.__version__, "MIT")
    assert said["Requires-Python"] == ">=3.11"


def test_every_extra_is_tried_by_check_dist(wheel: Path) -> None:
    assert {"core", *extras_of(wheel)} == set(uses.USES)


def test_what_is_imported_is_required() -> None:
    """Of the core or of an extra; `heedful` itself and Python's own aside."""
    asked = {canonicalize_name(one.name) for part in licences.required().values() for one in part}
    homes = {name: {canonicalize_name(one) for one in given} for name, given in packages_distributions().items()}
    missing = {}
    for path in SOURCES.rglob("*.py"):
        for name in _imported(path) - sys.stdlib_module_names - {"heedful"}:
            if not {canonicalize_name(INDIRECT.get(name, name)), *homes.get(name, ())} & asked:
                missing[name] = path.name
    assert missing == {}


def _imported(path: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    names = {one.name for node in nodes if isinstance(node, ast.Import) for one in node.names}
    names |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom) and not node.level}
    return {name.partition(".")[0] for name in names}


def test_the_list_of_licences_is_whole_and_true() -> None:
    """Every library that comes with the core or an extra, in the version that is pinned, with its licence."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()[1:]
    pinned = {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines)}
    found = licences.libraries()
    assert {canonicalize_name(one.name): one.version for one in found}.items() <= pinned.items()
    assert licences.PAGE.read_text(encoding="utf-8") == licences.page(found), "call `make licences`"
    assert [one.name for one in found if "not said" in one.licence] == []
    assert {one.parts for one in found if one.name in {"torch", "numpy", "typer"}} == {("core",)}
    assert {one.name: one.parts for one in found}["gensim"] == ("word2vec",)


def test_constraints_are_within_the_declared_ranges() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()[1:]
    pinned = {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines)}
    for part in licences.required().values():
        for one in part:
            assert one.specifier.contains(pinned[canonicalize_name(one.name)]), one


def test_the_bill_of_materials_names_them_all() -> None:
    found = licences.libraries()
    bill = licences.bill(found, "1.2")
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.5")
    parts = bill["components"]
    assert isinstance(parts, list)
    assert [one["name"] for one in parts] == [one.name for one in found]
    assert {one["purl"] for one in parts if one["name"] == "Jinja2"} == {
        f"pkg:pypi/jinja2@{next(one.version for one in found if one.name == 'Jinja2')}"
    }


def test_importing_heedful_loads_nothing_heavy() -> None:
    """Its public names are loaded when they are first used; the whole costs two dozen modules, not thousands."""
    code = (
        "import sys; before = set(sys.modules); import heedful; dir(heedful)\nprint(*sorted(set(sys.modules) - before))"
    )
    command = [sys.executable, "-c", code]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True, env=environment()).stdout.split()
    assert {name.partition(".")[0] for name in loaded} & HEAVY == set()
    assert {name for name in loaded if name.startswith("heedful")} == {"heedful", "heedful.version"}
    assert len(loaded) < 60


def test_versions_of_python_are_named_where_they_are_said() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    assert named == ["3.11"]  # where the tests have run
    assert project["requires-python"] == f">={named[0]}"
