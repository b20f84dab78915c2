"""heedful: can you trust attention as an explanation of this text classifier, on this data?

The public names are loaded when they are first used, so that importing heedful costs nothing.
"""

import importlib

from heedful.version import __version__

TYPE_CHECKING = False  # as typing has it, which takes most of the time that passes before Ctrl+C is heeded

if TYPE_CHECKING:
    from heedful.adapters import subject
    from heedful.analysis.adversary import adversarial_attention
    from heedful.analysis.erasure import first_flips, minimum_flips, single_erasure, verify_flip
    from heedful.analysis.faithfulness.suite import faithfulness
    from heedful.analysis.in_shards import in_shards
    from heedful.analysis.permutation import permutation_test
    from heedful.config import RunSettings
    from heedful.errors import HeedfulError
    from heedful.estimator import AttentionClassifier
    from heedful.explainers import explain
    from heedful.explanations import Explanation
    from heedful.models.checkpoint import load_model, save_model
    from heedful.probes.scores import flow_terms, token_scores
    from heedful.store import Store
    from heedful.studies.audit import audit
    from heedful.text.corpus import Corpus
    from heedful.text.datasets import load_corpus
    from heedful.trace_folders import TraceFolder, save_shards
    from heedful.traces import Trace
    from heedful.tracing import trace
    from heedful.training.loop import fit

_HOMES = {
    "AttentionClassifier": "heedful.estimator",
    "Corpus": "heedful.text.corpus",
    "Explanation": "heedful.explanations",
    "HeedfulError": "heedful.errors",
    "RunSettings": "heedful.config",
    "Store": "heedful.store",
    "Trace": "heedful.traces",
    "TraceFolder": "heedful.trace_folders",
    "adversarial_attention": "heedful.analysis.adversary",
    "audit": "heedful.studies.audit",
    "explain": "heedful.explainers",
    "faithfulness": "heedful.analysis.faithfulness.suite",
    "first_flips": "heedful.analysis.erasure",
    "fit": "heedful.training.loop",
    "flow_terms": "heedful.probes.scores",
    "in_shards": "heedful.analysis.in_shards",
    "load_corpus": "heedful.text.datasets",
    "load_model": "heedful.models.checkpoint",
    "minimum_flips": "heedful.analysis.erasure",
    "permutation_test": "heedful.analysis.permutation",
    "save_model": "heedful.models.checkpoint",
    "save_shards": "heedful.trace_folders",
    "single_erasure": "heedful.analysis.erasure",
    "subject": "heedful.adapters",
    "token_scores": "heedful.probes.scores",
    "trace": "heedful.tracing",
    "verify_flip": "heedful.analysis.erasure",
}

__all__ = ["AttentionClassifier", "Corpus", "Explanation", "HeedfulError", "RunSettings", "Store", "Trace"]
__all__ += ["TraceFolder", "__version__", "adversarial_attention", "audit", "explain", "faithfulness"]
__all__ += ["first_flips", "fit", "flow_terms", "in_shards", "load_corpus", "load_model", "minimum_flips"]
__all__ += ["permutation_test", "save_model", "save_shards", "single_erasure", "subject", "token_scores", "trace"]
__all__ += ["verify_flip"]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'heedful' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
