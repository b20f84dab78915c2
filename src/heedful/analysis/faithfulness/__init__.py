"""Faithfulness of explanations: metrics with cards, the suite, the ends of NAOPC, and who watches the metrics."""

from heedful.analysis.faithfulness.metrics import METRICS, cards, find_metric
from heedful.analysis.faithfulness.planted import Planted, World, plant, shapley
from heedful.analysis.faithfulness.suite import Faithfulness, faithfulness
from heedful.analysis.faithfulness.watching import diagnosticity

__all__ = ["METRICS", "Faithfulness", "Planted", "World", "cards", "diagnosticity", "faithfulness"]
__all__ += ["find_metric", "plant", "shapley"]
