"""Sparsemax and 1.5-entmax of one document by their definition: bisection for the threshold, in plain Python."""


def by_bisection(scores: list[float], p: float) -> list[float]:
    """α_i = max(0, (p−1) a_i − τ)^(1/(p−1)) with the τ at which they sum to one (Peters et al. 2019, Eq. 10)."""
    shifted = [(p - 1) * (score - max(scores)) for score in scores]
    low, high = -1.0, 0.0
    for _ in range(200):
        middle = (low + high) / 2
        if sum(max(0.0, x - middle) ** (1 / (p - 1)) for x in shifted) >= 1:
            low = middle
        else:
            high = middle
    return [max(0.0, x - low) ** (1 / (p - 1)) for x in shifted]
