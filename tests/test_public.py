"""The public surface: few names, sorted, each importable, and nothing heavy loaded by importing the package."""

import subprocess
import sys

import heedful

NAMES = [
    "AttentionClassifier",
    "Corpus",
    "Explanation",
    "HeedfulError",
    "RunSettings",
    "Store",
    "Trace",
    "__version__",
    "adversarial_attention",
    "audit",
    "explain",
    "faithfulness",
    "first_flips",
    "fit",
    "flow_terms",
    "load_corpus",
    "load_model",
    "minimum_flips",
    "permutation_test",
    "save_model",
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


def test_submodules_do_not_shadow_public_functions() -> None:
    """`heedful.trace` stays the function after `heedful.tracing` and `heedful.traces` are imported."""
    code = "import heedful.studies.audit, heedful; print(heedful.trace.__module__, heedful.audit.__module__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["heedful.tracing", "heedful.studies.audit"]
