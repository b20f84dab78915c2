"""What Jain & Wallace 2019, Attention is not Explanation, and Wiegreffe & Pinter 2019 print; plain data."""

from collections.abc import Mapping

AGREEMENT: Mapping[tuple[str, str], float] = {
    ("sst", "average+dot"): 0.35,
    ("sst", "average+tanh"): 0.61,
    ("sst", "lstm+dot"): 0.07,
    ("sst", "lstm+tanh"): 0.35,
}
"""Mean Kendall τ of attention with the gradient, by data set and model."""

NAMES: Mapping[str, str] = {"sst": "SST", "imdb": "IMDB", "20news-1": "20News", "agnews": "AG News"}
"""What the paper calls its data sets, by the names they have here."""
