"""Conicity by hand, and beside a loop over the hidden vectors of a model."""

from typing import Any

import numpy as np
import pytest
import torch

from heedful.probes.hidden import conicity, mean_cosines
from tests.probes.test_reading import as_split, documents
from tests.probes.test_saliency import a_model, make_copy


def test_conicity_by_hand() -> None:
    """Right angles: h̄ = (½, ½), both cosines 1/√2. Parallel: 1. Opposite: no mean direction. With a zero: half."""
    hidden = torch.tensor([[1, 0], [0, 1], [2, 0], [5, 0], [1, 1], [-1, -1], [3, 4], [0, 0]], dtype=torch.float64)
    found = mean_cosines(hidden, torch.tensor([0, 2, 4, 6, 8]))
    np.testing.assert_allclose(found, [0.5**0.5, 1.0, np.nan, 0.5], rtol=1e-15)


@pytest.mark.parametrize(("structure", "encoder"), [("flat", "none"), ("flat", "lstm"), ("hierarchical", "gru")])
def test_conicity_is_the_mean_cosine_of_a_loop(structure: str, encoder: str) -> None:
    model, split = a_model(encoder, structure=structure), as_split(documents(10, seed=3))
    table, double = conicity(model, split), make_copy(model)
    assert list(table) == ["instance", "units", "conicity"]
    for instance in range(10):
        units: Any = double.units(split.batch(torch.tensor([instance]), sentences=True))
        vectors = [row.detach().numpy() for row in units.hidden[units.index]]
        mean = np.mean(vectors, 0)
        cosines = [v @ mean / np.sqrt((v @ v) * (mean @ mean)) for v in vectors]
        assert table["units"].tolist()[instance] == len(vectors)
        assert table["conicity"].isna().tolist()[instance] == (len(vectors) == 1)
        if len(vectors) > 1:
            assert float(table["conicity"].tolist()[instance]) == pytest.approx(np.mean(cosines), abs=1e-12)
