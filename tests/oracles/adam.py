"""Adam by its formula (Kingma & Ba 2015, algorithm 1), on every entry in every step."""

from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass(kw_only=True)
class LiteralAdam:
    """m ← β₁m + (1−β₁)g, v ← β₂v + (1−β₂)g², θ ← θ − rate · (m / (1−β₁ᵗ)) / (√(v / (1−β₂ᵗ)) + ε)."""

    rate: float
    step: int = 0
    first: dict[str, Tensor] = field(default_factory=dict)
    second: dict[str, Tensor] = field(default_factory=dict)

    def update(self, values: dict[str, Tensor], gradients: dict[str, Tensor]) -> dict[str, Tensor]:
        """New values; those given stay."""
        self.step += 1
        updated = {}
        for name, gradient in gradients.items():
            m = 0.9 * self.first.get(name, torch.zeros_like(gradient)) + 0.1 * gradient
            v = 0.999 * self.second.get(name, torch.zeros_like(gradient)) + 0.001 * gradient**2
            self.first[name], self.second[name] = m, v
            unbiased, square = m / (1 - 0.9**self.step), v / (1 - 0.999**self.step)
            updated[name] = values[name] - self.rate * unbiased / (square.sqrt() + 1e-8)
        return updated
