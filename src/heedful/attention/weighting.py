"""From scores [… keys] to weights [… keys], where the mask is True for what may be read.

What may not be read has no weight, whatever its score is; where nothing may be read all weights are zero. The first
three sum to one; a gate and a Gaussian window do not.
"""

from collections.abc import Callable, Mapping

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.attention import normalisers
from heedful.text.ragged import offsets_of

Weigh = Callable[[Tensor, Tensor], Tensor]
"""From scores and mask to weights."""


def softmax(scores: Float[Tensor, "... keys"], mask: Bool[Tensor, "... keys"]) -> Float[Tensor, "... keys"]:
    """α_j = exp(e_j) / Σ exp(e)."""
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(~mask, lowest).softmax(-1) * mask


def sparsemax(scores: Float[Tensor, "... keys"], mask: Bool[Tensor, "... keys"]) -> Float[Tensor, "... keys"]:
    """The nearest point of the simplex: most weights are exactly zero (Martins & Astudillo 2016)."""
    return _ragged(normalisers.sparsemax, scores, mask)


def entmax15(scores: Float[Tensor, "... keys"], mask: Bool[Tensor, "... keys"]) -> Float[Tensor, "... keys"]:
    """Between softmax and sparsemax (Peters et al. 2019)."""
    return _ragged(normalisers.entmax15, scores, mask)


def gate(scores: Float[Tensor, "... keys"], mask: Bool[Tensor, "... keys"]) -> Float[Tensor, "... keys"]:
    """α_j = 1 / (1 + exp(−e_j)): each key by itself; the weights need not sum to one (Seo et al. 2017)."""
    return scores.sigmoid() * mask


def window(centre: Float[Tensor, "..."], reach: int) -> Weigh:
    """Softmax over the keys at most `reach` places from the centre (Luong et al. 2015, section 3.2: local-m).

    Places count from 0. A centre outside of the keys may leave nothing to be read.
    """

    def weigh(scores: Tensor, mask: Tensor) -> Tensor:
        return softmax(scores, mask & (_distance(scores, centre).abs() <= reach))

    return weigh


def gaussian_window(centre: Float[Tensor, "..."], reach: int) -> Weigh:
    """The window's softmax times exp(−(j − p)² / 2σ²), σ = reach / 2 (Luong et al. 2015, Eq. 10: local-p).

    As printed the product is not normalised again. The centre p is learned through the second factor alone.
    """

    def weigh(scores: Tensor, mask: Tensor) -> Tensor:
        weights = window(centre, reach)(scores, mask)
        return weights * (-2 * (_distance(scores, centre) / reach) ** 2).exp()

    return weigh


def _distance(scores: Tensor, centre: Tensor) -> Tensor:
    places = torch.arange(scores.shape[-1], dtype=scores.dtype, device=scores.device)
    return places - centre.unsqueeze(-1)


def _ragged(normalise: normalisers.Normaliser, scores: Tensor, mask: Tensor) -> Tensor:
    """A normaliser of ragged rows, on the keys of each row that may be read."""
    readable = mask.expand(scores.shape)
    offsets = offsets_of(readable.sum(-1).flatten())
    return torch.zeros_like(scores).masked_scatter(readable, normalise(scores[readable], offsets))


WEIGHINGS: Mapping[str, Weigh] = {"softmax": softmax, "sparsemax": sparsemax, "entmax15": entmax15, "gate": gate}
