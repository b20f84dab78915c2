"""heedful: can you trust attention as an explanation of this text classifier, on this data?

The public names are loaded when they are first used, so that importing heedful costs nothing.
"""

import importlib
from typing import TYPE_CHECKING, Any

from heedful.version import __version__

if TYPE_CHECKING:
    from heedful.analysis.erasure import first_flips, minimum_flips, single_erasure, verify_flip
    from heedful.config import RunSettings
    from heedful.errors import HeedfulError
    from heedful.models.checkpoint import load_model, save_model
    from heedful.probes.scores import flow_terms, token_scores
    from heedful.store import Store
    from heedful.studies.audit import audit
    from heedful.text.corpus import Corpus
    from heedful.text.datasets import load_corpus
    from heedful.traces import Trace
    from heedful.tracing import trace
    from heedful.training.loop import fit

_HOMES = {
    "Corpus": "heedful.text.corpus",
    "HeedfulError": "heedful.errors",
    "RunSettings": "heedful.config",
    "Store": "heedful.store",
    "Trace": "heedful.traces",
    "audit": "heedful.studies.audit",
    "first_flips": "heedful.analysis.erasure",
    "fit": "heedful.training.loop",
    "flow_terms": "heedful.probes.scores",
    "load_corpus": "heedful.text.datasets",
    "load_model": "heedful.models.checkpoint",
    "minimum_flips": "heedful.analysis.erasure",
    "save_model": "heedful.models.checkpoint",
    "single_erasure": "heedful.analysis.erasure",
    "token_scores": "heedful.probes.scores",
    "trace": "heedful.tracing",
    "verify_flip": "heedful.analysis.erasure",
}

__all__ = ["Corpus", "HeedfulError", "RunSettings", "Store", "Trace", "__version__", "audit", "first_flips", "fit"]
__all__ += ["flow_terms", "load_corpus", "load_model", "minimum_flips", "save_model", "single_erasure"]
__all__ += ["token_scores", "trace", "verify_flip"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'heedful' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
