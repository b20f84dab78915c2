"""What is said of the texts that tell."""

import pytest
import torch

from heedful.studies.telling import many_words, pair_title, pair_words
from heedful.traces import Trace

TRACE = Trace.from_arrays(
    offsets=[0, 4],
    attention_weights=[0.1, 0.6, 0.2, 0.1],
    polarity_scores=[[0, z] for z in (0.0, 4.0, -1.0, 1.0)],
    bias=[0, 0],
    units=["so", "good", "a", "film"],
)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ([0.25, 0.0, 0.0, 0.75], "all of it on “film” (0.75) and “so” (0.25)"),
        ([1.0, 0.0, 0.0, 0.0], "all of it on “so” (1.00)"),
        ([0.25, 1e-12, 0.0, 0.75 - 1e-12], "all of it on “film” (0.75) and “so” (0.25)"),
        ([0.25, 0.004, 0.0, 0.746], "nearly all of it on “film” (0.75) and “so” (0.25)"),
        ([0.25, 0.006, 0.0, 0.744], "all of it on “film” (0.74), “so” (0.25) and “good” (0.01)"),
    ],
)
def test_of_another_attention_no_word_is_named_that_gets_as_good_as_nothing(other: list[float], said: str) -> None:
    words = pair_words(TRACE, 0, torch.tensor(other, dtype=torch.float64))
    assert words == f"Attention is most on “good” (0.60); {said} gives the same output."


def test_of_how_many_texts_it_is_so() -> None:
    assert many_words(1, 30) == "It is the only one of the 30 decisions that rest on a part of their text"
    assert many_words(6, 30) == "The same is true of 6 of the 30 decisions that rest on a part of their text"


def test_attention_that_is_nearly_its_own_is_not_called_another() -> None:
    assert pair_title(0.01) == "And here the same output leaves attention nearly as it is"
    assert pair_title(0.49) == "And here another attention gives the same output"
