"""The public surface: few names, sorted, each importable, and nothing heavy loaded by importing the package."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import heedful
from heedful.errors import MissingExtra, load_extra

ROOT = Path(__file__).parents[1]

NAMES = [
    "AttentionClassifier",
    "Corpus",
    "Explanation",
    "HeedfulError",
    "RunSettings",
    "Store",
    "Trace",
    "TraceFolder",
    "__version__",
    "adversarial_attention",
    "audit",
    "explain",
    "faithfulness",
    "first_flips",
    "fit",
    "flow_terms",
    "in_shards",
    "load_corpus",
    "load_model",
    "minimum_flips",
    "permutation_test",
    "save_model",
    "save_shards",
    "single_erasure",
    "subject",
    "token_scores",
    "trace",
    "verify_flip",
]


def test_the_public_names_are_these() -> None:
    assert heedful.__all__ == NAMES
    assert dir(heedful) == NAMES


def test_every_public_name_is_what_it_says() -> None:
    for name in NAMES:
        found = getattr(heedful, name)
        assert name == "__version__" or found.__name__ == name


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(heedful, "attentions")


EXTRAS = {"captum", "fastapi", "gensim", "ray", "shap", "sklearn", "transformers", "uvicorn"}
"""What heedful does not bring along by itself."""


def test_importing_heedful_loads_nothing_heavy() -> None:
    heavy = EXTRAS | {"torch", "pandas", "numpy", "matplotlib"}
    code = f"import heedful, sys; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_subjects_load_no_extra_before_one_is_needed() -> None:
    code = f"import heedful, sys; heedful.subject(lambda texts: [0.5] * len(texts)); print({EXTRAS} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_installing_heedful_alone_brings_no_extra() -> None:
    """And every extra that an error tells to install is one, and brings what is missing."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    libraries = EXTRAS - {"sklearn"} | {"scikit-learn"}
    assert not {_name(one) for one in project["dependencies"]} & libraries
    extras = {name: set(map(_name, needed)) for name, needed in project["optional-dependencies"].items()}
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    named = {*re.findall(r"heedful\[([a-z0-9]+)\]", source), *re.findall(r'load_extra\("[\w.]+", "(\w+)"', source)}
    assert named == set(extras) - {"dev"}
    for name in ("transformers", "captum", "sklearn"):
        assert {"sklearn": "scikit-learn"}.get(name, name) in extras[name]


def _name(requirement: str) -> str:
    return re.split(r"[<>=\[ ]", requirement)[0]


@pytest.mark.parametrize("module", ["transformers", "captum.attr", "sklearn"])
def test_an_extra_that_is_missing_is_named(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    extra = module.partition(".")[0]
    with pytest.raises(MissingExtra, match=rf"They need {extra}, .*: pip install 'heedful\[{extra}\]'"):
        load_extra(module, extra, "They")


def test_submodules_do_not_shadow_public_functions() -> None:
    """`heedful.trace` stays the function after `heedful.tracing` and `heedful.traces` are imported."""
    code = "import heedful.studies.audit, heedful; print(heedful.trace.__module__, heedful.audit.__module__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["heedful.tracing", "heedful.studies.audit"]
