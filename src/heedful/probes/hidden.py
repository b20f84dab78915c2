"""How alike the hidden vectors of a text are: conicity (Mohankumar et al. 2020)."""

import copy

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.analysis.agreement import nullable
from heedful.models.classifier import UNITS_AT_ONCE, Classifier
from heedful.text.corpus import Split
from heedful.text.ragged import in_order, lengths_of, segment_sum, segments_of


@torch.no_grad()
def conicity(model: Classifier, split: Split) -> pd.DataFrame:
    """The mean cosine of a text's hidden vectors with their mean: near one they all say the same.

        conicity = 1/n Σ_i cos(h_i, h̄)        h̄ = 1/n Σ_j h_j        (Mohankumar et al. 2020, section 3.1)

    Where hidden vectors are nearly parallel, other weights give nearly the same document vector, and attention can say
    little. Columns: instance, units, conicity; null for a text of one unit, where it is always one, and where the mean
    is zero. A hidden vector of zeros, as convolutions make, has no direction and counts as a cosine of zero.
    """
    exact = copy.deepcopy(model).double().eval()
    parts, lengths = [], []
    for rows in in_order(split.lengths, UNITS_AT_ONCE):
        units = exact.units(exact.batch(split, rows))
        parts.append(mean_cosines(units.hidden[units.index], units.offsets).cpu())
        lengths.append(lengths_of(units.offsets).cpu())
    found, counts = torch.cat(parts), torch.cat(lengths)
    values = nullable(found.where(counts > 1, torch.nan))
    return pd.DataFrame({"instance": np.arange(len(found)), "units": counts.numpy(), "conicity": values})


def mean_cosines(hidden: Float[Tensor, "units hidden"], offsets: Int[Tensor, " bounds"]) -> Float[Tensor, " documents"]:
    """1/n Σ_i cos(h_i, h̄) of each document; not a number where h̄ is zero."""
    owners, lengths = segments_of(offsets), lengths_of(offsets)
    mean = hidden.new_zeros(len(lengths), hidden.shape[1]).index_add_(0, owners, hidden) / lengths[:, None]
    size = torch.linalg.vector_norm(mean, dim=1)
    norms = torch.linalg.vector_norm(hidden, dim=1)
    cosines = (hidden * mean[owners]).sum(1) / (norms * size[owners])
    found = segment_sum(cosines.where(norms > 0, 0), offsets) / lengths
    return found.where(size > 0, torch.nan)
