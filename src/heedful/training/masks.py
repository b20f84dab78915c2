"""Dropout masks inside compiled loops: their random words, and the factors 0 or 1/(1 − p) that the words mean.

Words come from xoshiro256++ (Blackman & Vigna 2021), whose four words of state are drawn anew for every epoch from the
training's own stream.
"""

from typing import NamedTuple, no_type_check

import numpy as np
import torch
from numpy.typing import NDArray

from heedful.compiled import compiled, inlined

STATE_WORDS = 4


class Dropout(NamedTuple):
    """How a mask is drawn: each entry takes so many bits, and is dropped where their number is below `dropped`."""

    bits: int
    """1 for a half, 8 for other multiples of 1/256, else 16; 0 drops nothing and draws nothing."""
    dropped: int
    kept: float
    """What stands for one that is kept, so that the mean stays."""

    @classmethod
    def of(cls, rate: float) -> "Dropout":
        """Of a rate, which is met to 1/65,536."""
        bits = 0 if rate == 0 else 1 if rate == 0.5 else 8 if (rate * 2**8).is_integer() else 16
        dropped = min(round(rate * 2**bits), 2**bits - 1)
        return cls(bits, dropped, 2**bits / (2**bits - dropped))

    def words(self, size: int) -> int:
        """How many 64-bit words a mask of this size takes."""
        return -(-size * self.bits // 64)


def fresh_state(generator: torch.Generator) -> NDArray[np.uint64]:
    """The state of xoshiro256++, drawn from another generator."""
    drawn = torch.empty(STATE_WORDS, dtype=torch.int64).random_(-(2**63), None, generator=generator)
    return drawn.numpy().view(np.uint64)


@inlined
@no_type_check
def rotated(word, count):
    return (word << np.uint64(count)) | (word >> np.uint64(64 - count))


@compiled
@no_type_check
def draw_words(state, words):
    """Fill `words` with the next numbers of xoshiro256++, and leave the state behind them."""
    a, b, c, d = state[0], state[1], state[2], state[3]
    for i in range(len(words)):
        words[i] = rotated(a + d, 23) + a
        shifted = b << np.uint64(17)
        c ^= a
        d ^= b
        b ^= c
        a ^= d
        c ^= shifted
        d = rotated(d, 45)
    state[0], state[1], state[2], state[3] = a, b, c, d


@compiled
@no_type_check
def read_mask(words, dropout, mask):
    """The mask that some random words mean: each entry `kept` or 0."""
    zero, kept = mask.dtype.type(0), mask.dtype.type(dropout.kept)
    if dropout.bits == 1:
        halves = words.view(np.int32)
        for w in range(-(-len(mask) // 32)):
            word, entries = halves[w], mask[32 * w : 32 * w + 32]
            for s in range(len(entries)):
                entries[s] = kept * mask.dtype.type(np.int32(word >> np.int32(s)) & np.int32(1))
    elif dropout.bits == 8:
        numbers = words.view(np.uint8)
        for i in range(len(mask)):
            mask[i] = kept if numbers[i] >= dropout.dropped else zero
    else:
        pairs = words.view(np.uint16)
        for i in range(len(mask)):
            mask[i] = kept if pairs[i] >= dropout.dropped else zero
