"""Tokens per second, with character offsets, on texts like reviews."""

import time

import numpy as np

from heedful.text.synthetic import words
from heedful.text.tokenize import MODES, Tokenizer

TEXTS = 6000


def sample_texts() -> list[str]:
    rng = np.random.default_rng(0)
    listed = np.array(words("neutral") + words("positive") + words("negative"))
    return [
        " ".join(listed[rng.integers(0, len(listed), 200)]).capitalize().replace(" a", ", a") + "."
        for _ in range(TEXTS)
    ]


def rows() -> list[dict[str, str]]:
    texts = sample_texts()
    found = []
    for mode in MODES:
        tokenizer = Tokenizer(mode)
        vocabulary = tokenizer.vocabulary(texts)
        begun = time.perf_counter()
        count = len(tokenizer.encode(texts, vocabulary).numbers)
        seconds = time.perf_counter() - begun
        found.append({"what": mode, "tokens": f"{count:,}", "million tokens/s": f"{count / seconds / 1e6:.2f}"})
    return found
