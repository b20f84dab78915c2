"""Corpora whose truth is known: planted polarity tokens among neutral ones (Sun & Lu 2020, supplement C).

An instance is ten distinct neutral words and two distinct words of its class, in random order. The words are readable
English, so that a report on a made corpus reads like one on a found corpus.
"""

from collections.abc import Sequence
from importlib import resources
from typing import Any

import numpy as np

from heedful.errors import DataError
from heedful.text.corpus import Corpus, Labelled, build_corpus
from heedful.text.tokenize import Tokenizer

NEUTRAL_PER_TEXT = 10
POLAR_PER_TEXT = 2
TRAIN_SIZE = 12_000
HELD_OUT_SIZE = 1_200
DESCRIBED = "synthetic:"  # how the description of a made corpus begins; what follows is `key=value`, divided by commas
WHOLE, SHARES = ("classes", "size", "seed"), ("noise", "positive_share")  # the keys: whole numbers and shares
Words = list[str]


def words(name: str) -> Words:
    """One of the word lists: positive, negative, neutral."""
    return _read(name).split()


def topics() -> dict[str, Words]:
    """Words that are typical of one topic, for corpora of several classes."""
    return {name: listed.split() for name, listed in (line.split(":") for line in _read("topics").splitlines())}


def _read(name: str) -> str:
    return (resources.files("heedful.text") / "words" / f"{name}.txt").read_text(encoding="utf-8")


def described(text: str, seed: int, *, name: str | None = None) -> Corpus:
    """The corpus that a text such as `synthetic:classes=3,noise=0.05` describes; Data I without keys.

    Keys are those of `binary` and `multi`; the seed is the given one unless the text has its own. It is called by the
    text where it has no name.
    """
    parts = [part for part in text.removeprefix(DESCRIBED).split(",") if part]
    given: dict[str, Any] = {"name": name or text, "seed": seed, **dict(_setting(text, part) for part in parts)}
    classes = given.pop("classes", 2)
    if classes == 2:
        return binary(**given)
    if "positive_share" in given:
        raise DataError(f"A positive share is of two classes; '{text}' has {classes}, which are equally large.")
    return multi(classes=classes, **given)


def _setting(text: str, part: str) -> tuple[str, Any]:
    key, _, value = (piece.strip() for piece in part.partition("="))
    if key in WHOLE and value.isdecimal():
        return key, int(value)
    if key in SHARES and value.replace(".", "", 1).isdecimal():
        return key, float(value)
    raise DataError(
        f"'{part}' of '{text}' is not one of {', '.join((*WHOLE, *SHARES))} with a number, such as "
        f"{DESCRIBED}classes=3,noise=0.05."
    )


def binary(*, name: str, seed: int, noise: float = 0.0, positive_share: float = 0.5, size: int = TRAIN_SIZE) -> Corpus:
    """Data I; with `noise`, the share of texts whose polarity words are of the wrong class, Data II; or skewed."""
    groups = {"negative": words("negative"), "positive": words("positive")}
    shares = [1 - positive_share, positive_share]
    return _plant(name=name, groups=groups, shares=shares, noise=noise, seed=seed, size=size)


def multi(*, name: str, seed: int, classes: int = 3, noise: float = 0.0, size: int = TRAIN_SIZE) -> Corpus:
    """K classes, each with words of its own topic, and neutral words."""
    known = topics()
    if not 3 <= classes <= len(known):
        raise DataError(f"A synthetic corpus of several classes has 3 to {len(known)} of them, not {classes}.")
    groups = {topic: known[topic] for topic in list(known)[:classes]}
    return _plant(name=name, groups=groups, shares=[1 / classes] * classes, noise=noise, seed=seed, size=size)


def _plant(*, name: str, groups: dict[str, Words], shares: list[float], noise: float, seed: int, size: int) -> Corpus:
    if not 0 <= noise < 1 or not all(0 < share < 1 for share in shares):
        raise DataError(f"Noise lies in [0, 1) and class shares in (0, 1), not {noise} and {shares}.")
    rng, neutral = np.random.default_rng(seed), words("neutral")
    sizes = {"train": size, "dev": HELD_OUT_SIZE, "test": HELD_OUT_SIZE}
    splits = {split: _draw(rng, [*groups.values()], neutral, shares, noise, count) for split, count in sizes.items()}
    planted = dict.fromkeys(neutral, "neutral") | {word: group for group, own in groups.items() for word in own}
    cut = Tokenizer("whitespace")
    return build_corpus(name=name, splits=splits, class_names=list(groups), tokenizer=cut, planted=planted)


def _draw(
    rng: np.random.Generator, groups: list[Words], neutral: Words, shares: Sequence[float], noise: float, count: int
) -> Labelled:
    """Exactly as many instances of each class as the shares say, in random order."""
    labels = np.searchsorted(np.round(np.cumsum(shares) * count).astype(int), np.arange(count), side="right")
    rng.shuffle(labels)
    return [_text(rng, groups, neutral, label, noise) for label in labels.tolist()], labels.tolist()


def _text(rng: np.random.Generator, groups: list[Words], neutral: Words, label: int, noise: float) -> str:
    source = label
    if noise and rng.random() < noise:
        source = (label + int(rng.integers(1, len(groups)))) % len(groups)
    polar = rng.choice(len(groups[source]), POLAR_PER_TEXT, replace=False)
    plain = rng.choice(len(neutral), NEUTRAL_PER_TEXT, replace=False)
    chosen = [*(groups[source][i] for i in polar), *(neutral[i] for i in plain)]
    return " ".join(chosen[i] for i in rng.permutation(len(chosen)))
