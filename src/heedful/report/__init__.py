"""What is shown: the page and its views. Here, values as JSON holds them."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def plain(value: Any) -> Any:
    """The value as plain data: tables as rows, numbers of numpy as numbers, what is not a number as None."""
    if hasattr(value, "to_dict"):  # a table; pandas is not imported for what holds none
        return [plain(row) for row in value.astype(object).where(value.notna(), None).to_dict("records")]
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    number = value.item() if hasattr(value, "item") else value
    return None if isinstance(number, float) and not math.isfinite(number) else number
