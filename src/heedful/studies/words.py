"""Numbers of a run as people read them."""

import unicodedata
from collections.abc import Mapping
from typing import Any


def printable(text: str) -> str:
    """The text with a space for each character that steers a terminal: escapes, controls, changes of direction."""
    return "".join(
        " " if unicodedata.category(letter) in {"Cc", "Cf"} and letter != "\u200d" else letter for letter in text
    )


def accuracy_words(metrics: Mapping[str, Any]) -> str:
    """Test accuracy in per cent with its interval."""
    low, high = 100 * metrics["test_accuracy_low"], 100 * metrics["test_accuracy_high"]
    return f"{100 * metrics['test_accuracy']:.1f} % [{low:.1f}, {high:.1f}]"
