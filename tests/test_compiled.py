"""Loops compiled for the CPU."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, no_type_check

from numba.core.caching import IndexDataCacheFile

from heedful.compiled import compiled, keep_apart


def test_a_compiled_function_gives_the_numbers_of_the_plain_one() -> None:
    @compiled
    @no_type_check
    def total(n):
        found = 0.0
        for i in range(n):
            found += i * 0.5
        return found

    assert total(5) == 5.0


def test_without_a_folder_to_keep_them_in_loops_are_compiled_all_the_same(tmp_path: Path) -> None:
    """A file stands where numba would make its folder."""
    (tmp_path / "file").touch()
    program = (
        "import numpy; from heedful.models.kernels import find_distinct as find; print(find(numpy.array([2, 1, 2]), 4))"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "file" / "below")}
    found = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "(array([1, 2]), array([1, 0, 1]))"


def test_processes_that_compile_at_once_for_other_types_do_not_mix_up_their_code(tmp_path: Path) -> None:
    """Both look before either has written; what each of them wrote is found under its own types."""
    make: Any = IndexDataCacheFile
    one, other, later = (make(str(tmp_path), "loop", "stamp") for _ in range(3))
    for kept in (one, other):
        keep_apart(kept)
    seen = one._load_index()
    one._load_index = other._load_index = lambda: dict(seen)
    one.save("float32", "code for float32")
    other.save("float64", "code for float64")
    assert later.load("float64") == "code for float64"
    assert later.load("float32") in {None, "code for float32"}  # compiled again where the index has forgotten it
    index = {**seen, "float32": next(path.name for path in tmp_path.glob("*.nbc") if b"float32" in path.read_bytes())}
    later._save_index(index)  # the index of the first, written last
    assert later.load("float32") == "code for float32"
