"""How far the outputs of a model determine its attention: the smallest and the largest score that a token could have.

One attention score per token, for all texts; polarity stays. The scores that keep every output within a tolerance ε are
those of `heedful.analysis.same_outputs`, and the extreme ones of a token are two linear programs, solved by HiGHS. A
narrow interval means that the outputs pin this token's attention down, a wide one that it could be anything. What one
attention can do to the order of many pairs of tokens at once is in `heedful.analysis.orders`.

**Scale.** A common factor of all weights changes no output. Tokens below a minimum count keep their weights, and so
set the scale: an interval is what a token's score could be while those of rare tokens stay. With rare tokens free
hardly anything is determined, because most texts hold a token that no other has, which can make up for everything.
If no token is kept, the scale is the total weight of all units of the other tokens, which stays.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from jaxtyping import Bool, Int
from torch import Tensor

from heedful.analysis.bags import Bags, bags_of, with_scores
from heedful.analysis.erasure_loops import one_thread
from heedful.analysis.same_outputs import SCALE, cone_of, least_difference
from heedful.errors import InputError
from heedful.traces import Trace

Watch = Callable[[int, int], None]


@one_thread()
def determined_attention(
    trace: Trace,
    tokens: Int[Tensor, " units"],
    *,
    epsilon: float = 0.01,
    minimum_count: int = 10,
    only: Sequence[int] | None = None,
    limit: int | None = 50,
    seconds: float = 60.0,
    watch: Watch | None = None,
) -> pd.DataFrame:
    """The smallest and the largest attention score that each token could have with the same outputs: one row per token.

    The same means that no text's probabilities move by more than ε: of two classes exactly; of more classes by a
    condition that implies it of total variation and is stronger, so that intervals are rather too narrow, and what is
    proved of them is by that condition (`heedful.analysis.same_outputs`). All tokens that are frequent enough may
    change their scores together, at will; the rarer ones keep theirs.

    trace: of a model without a contextual encoder. The texts whose outputs must stay are those of the trace: those of
        the training split are what the scores were learned from, and more texts determine more.
    tokens: the number of each unit's token, as in `corpus.train.tokens.numbers`.
    epsilon: ε, how far a probability may move; 0 keeps every output exactly.
    minimum_count: tokens that occur less often in the trace keep their scores, unless they are the one that is asked
        about. 1 lets all change; see the module for what is then the scale.
    only: the numbers of the tokens that are asked about; None takes the most frequent ones.
    limit: so many of them; None takes all. Tokens given by `only` are all taken.
    seconds: after which a linear program is given up; there are two for each token.
    watch: told how many tokens are done, of how many.

    Columns: number, token, count (how often it occurs in the trace), attention (a_e), low and high (its bounds; −inf
    and inf where there is none: it could do with less than a millionth of every text's attention, or outweigh all
    others a million times; null where nothing could be proved), width (high − low), status (proved, or which side is
    open). Every bound is attained: its weights were put into the model, and all texts stay within ε.

    >>> import heedful, torch
    >>> from heedful.analysis.determined import determined_attention
    >>> scores = {"attention_scores": [0, 0], "polarity_scores": [2, -2]}
    >>> trace = heedful.Trace.from_arrays(offsets=[0, 2], bias=[0], units=["good", "dull"], **scores)
    >>> table = determined_attention(trace, torch.tensor([0, 1]), epsilon=0.1, only=[0])
    >>> table.round(3)
       number token  count  attention    low   high  width  status
    0       0  good      1        0.0 -0.411  0.411  0.822  proved
    """
    _check_arguments(epsilon, minimum_count)
    bags = bags_of(trace, tokens)
    free = bags.occurrences >= minimum_count
    asked = _asked(bags, free, only, limit)
    cone = cone_of(bags, free, epsilon)
    rows = []
    for done, place in enumerate(asked):
        low, high = least_difference(cone, place, SCALE, seconds), least_difference(cone, SCALE, place, seconds)
        rows.append(_row(bags, place, low.difference, -high.difference))
        if watch:
            watch(done + 1, len(asked))
    columns = ["number", "token", "count", "attention", "low", "high", "width", "status"]
    return pd.DataFrame(rows, columns=columns)


@one_thread()
def extreme_trace(
    trace: Trace,
    tokens: Int[Tensor, " units"],
    token: int,
    *,
    highest: bool,
    epsilon: float = 0.01,
    minimum_count: int = 10,
    seconds: float = 60.0,
) -> Trace | None:
    """The trace with the attention scores of all tokens that give one its smallest, or largest, score.

    What is behind a number of `determined_attention`, whose arguments these are: outputs stay within ε. Where there is
    no bound the score is so far away that it counts as none. None where no scores were found that keep all outputs.
    """
    _check_arguments(epsilon, minimum_count)
    bags = bags_of(trace, tokens)
    cone = cone_of(bags, bags.occurrences >= minimum_count, epsilon)
    place = _asked(bags, cone.free, [token], None)[0]
    scores = least_difference(cone, *((SCALE, place) if highest else (place, SCALE)), seconds).scores
    return None if scores is None else with_scores(trace, tokens, bags, scores)


def _check_arguments(epsilon: float, minimum_count: int) -> None:
    if not 0 <= epsilon < 1:
        raise InputError(f"epsilon is how far a probability may move: from 0 to below 1, not {epsilon}.")
    if minimum_count < 1:
        raise InputError(f"The minimum count of a token is 1 or more, not {minimum_count}.")


def _asked(bags: Bags, free: Bool[Tensor, " tokens"], only: Sequence[int] | None, limit: int | None) -> list[int]:
    """The places of the tokens that are asked about."""
    if only is None:
        order = bags.occurrences.argsort(descending=True, stable=True)
        chosen: list[int] = order[free[order]].tolist()
        return chosen[:limit]
    places = {number: place for place, number in enumerate(bags.numbers.tolist())}
    missing = [number for number in only if number not in places]
    if missing:
        raise InputError(
            f"Token {missing[0]} has no unit with attention in this trace, so nothing says what its score could be. "
            "Ask about tokens that occur."
        )
    return [places[number] for number in only]


def _row(bags: Bags, place: int, low: float, high: float) -> tuple[object, ...]:
    sides = [name for name, bound in (("low", low), ("high", high)) if np.isnan(bound)]
    status = f"{' and '.join(sides)} open" if sides else "proved"
    about = int(bags.numbers[place]), bags.names[place], int(bags.occurrences[place]), float(bags.attention[place])
    return *about, low, high, high - low, status
