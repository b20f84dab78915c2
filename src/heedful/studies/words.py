"""Numbers of a run as people read them."""

from collections.abc import Mapping
from typing import Any


def accuracy_words(metrics: Mapping[str, Any]) -> str:
    """Test accuracy in per cent with its interval."""
    low, high = 100 * metrics["test_accuracy_low"], 100 * metrics["test_accuracy_high"]
    return f"{100 * metrics['test_accuracy']:.1f} % [{low:.1f}, {high:.1f}]"
