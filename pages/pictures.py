"""The pictures of the concept pages, of the same text that their numbers are of."""

from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.layout_engine import ConstrainedLayoutEngine

import heedful
from heedful.analysis.erasure import erase
from heedful.analysis.rankings import ranked
from heedful.figures.style import (
    ATTENDED,
    AWAY,
    BLACK,
    BLUE,
    GREY,
    SHADE,
    SOFT,
    TOWARDS,
    house_style,
    zero_line,
)
from heedful.text import synthetic

POSITIVE = 1
TIMES = 1_000


def hand_trace() -> heedful.Trace:
    """The text of the concept pages: its attention is on "the" and "plot", and "superb" decides."""
    return heedful.Trace.from_arrays(
        offsets=[0, 7],
        attention_weights=[0.30, 0.25, 0.15, 0.05, 0.08, 0.07, 0.10],
        polarity_scores=[0.2, 0.4, 0, -9, -1, 0, 12],
        bias=[0],
        units=["the", "plot", "was", "dull", "yet", "music", "superb"],
        class_names=["negative", "positive"],
    )


def twelve_units() -> heedful.Trace:
    """A text of twelve units, all of whose 4,096 erasures can be looked at."""
    chance = np.random.default_rng(52)
    weights = chance.dirichlet(np.full(12, 2.0))
    return heedful.Trace.from_arrays(
        offsets=[0, 12], attention_weights=weights, polarity_scores=chance.normal(0.9, 2.5, 12), bias=[0]
    )


def the_trace() -> Canvas:
    """α, z and α · z of every unit, below each other."""
    trace = hand_trace()
    assert trace.units is not None
    weights, scores = trace.attention_weights.numpy(), trace.polarity_scores[:, POSITIVE].numpy()
    canvas, axes = _rows(3, height=5.0)
    places = np.arange(len(weights))
    _bars(axes[0], weights, [ATTENDED] * len(weights), "weight α", "attended to", "{:.2f}")
    _bars(axes[1], scores, _signed(scores), "polarity z", "what a word says, however little it is attended to", "{:g}")
    given = weights * scores
    _bars(axes[2], given, _signed(given), "α · z", f"what it gave: together the logit, {given.sum():.2f}", "{:+.2f}")
    axes[2].set_xticks(places, list(trace.units))
    return canvas


def erasing() -> Canvas:
    """The logit along two rankings, and where the decision flips."""
    trace = hand_trace()
    canvas, (axis,) = _rows(1, height=3.6)
    looks = {"attention": (ATTENDED, "o", "-"), "margin": (BLUE, "s", "--")}
    for by, (colour, marker, line) in looks.items():
        order = ranked(trace, by).tolist()
        logits = [float(erase(trace, 0, order[:count])[POSITIVE]) for count in range(len(order))]
        flipped = next(count for count, logit in enumerate(logits) if logit < 0)
        axis.plot(logits, color=colour, marker=marker, linestyle=line, label=f"along {by}")
        axis.annotate(
            f"flips at {flipped}",
            (flipped, logits[flipped]),
            (flipped + 0.15, logits[flipped] + (1.6 if by == "attention" else -2.2)),
            color=SOFT,
            arrowprops={"arrowstyle": "-", "color": SHADE},
        )
    zero_line(axis)
    axis.set(xlabel="units erased", ylabel="logit after erasing")
    axis.set_title("“the plot was dull yet music superb”: positive above the line")
    axis.legend()
    return canvas


def smallest_set() -> Canvas:
    """Every subset of twelve units: what is left of the sum that decides, and two ways down."""
    trace = twelve_units()
    given = (trace.attention_weights * trace.polarity_scores[:, POSITIVE]).numpy()
    kept = np.array(list(product((0, 1), repeat=len(given))))[1:]  # the bias alone decides where nothing is kept
    gone, left = len(given) - kept.sum(1), kept @ given
    canvas, (axis,) = _rows(1, height=4.2)
    shaken = gone + np.random.default_rng(0).uniform(-0.22, 0.22, len(gone))
    axis.scatter(shaken, left, s=5, color=GREY, alpha=0.4, linewidths=0, rasterized=True)
    least, along = np.argsort(-given), ranked(trace, "attention").numpy()
    looks = (("the largest α · z first", least, BLUE, "s", "--"), ("along attention", along, ATTENDED, "o", "-"))
    for name, order, colour, marker, line in looks:
        path = given.sum() - np.concatenate([[0], np.cumsum(given[order])[:-1]])
        axis.plot(path, color=colour, marker=marker, linestyle=line, label=name)
        flip = int((path < 0).argmax())
        words = f"the minimum: {flip}" if order is least else f"attention: {flip}"
        near = (flip - 1.9, path[flip] - 0.35) if order is least else (flip - 1.3, path[flip] - 0.68)
        axis.annotate(words, (flip, path[flip]), near, color=BLACK, arrowprops={"arrowstyle": "->", "color": BLACK})
    zero_line(axis)
    axis.set(xlabel="units erased, of 12", ylabel="what is left of Σ α z", ylim=(-0.85, None))
    axis.set_title("Every erasure of a text, a dot each: the decision flips below 0")
    axis.legend(loc="upper right")
    return canvas


def another_attention() -> Canvas:
    """Two attentions on the words of a text, in the order of their polarity."""
    trace = hand_trace()
    assert trace.units is not None
    own = trace.attention_weights.numpy()
    found = heedful.adversarial_attention(trace).iloc[0]
    other = np.zeros_like(own)
    other[list(found["positions"])] = list(found["weights"])
    scores = trace.polarity_scores[:, POSITIVE].numpy()
    canvas, (axis,) = _rows(1, height=3.4)
    order = np.argsort(scores, kind="stable")
    rows = ((own, ATTENDED, "", "the model's own"), (other, BLUE, "////", "another, on two words"))
    for step, (weights, colour, hatch, label) in enumerate(rows):
        spots = np.arange(len(order)) + (step - 0.5) * 0.4
        bars = axis.bar(spots, weights[order], 0.36, color=colour, hatch=hatch, edgecolor="white", label=label)
        axis.bar_label(bars, [f"{weight:.2f}" for weight in weights[order]], padding=2, fontsize=9, color=SOFT)
    axis.set_xticks(range(len(order)), [f"{trace.units[place]}\nz = {scores[place]:g}" for place in order])
    axis.grid(axis="x", visible=False)
    axis.set(ylabel="weight α", ylim=(0, 1.08))
    axis.set_title(
        f"Σ α z = {own @ scores:.2f} of both; their Jensen–Shannon divergence {found['jsd']:.2f} of at most .69"
    )
    axis.legend(loc="upper left")
    return canvas


def flow() -> Canvas:
    """The mean of every term by planted group, early in training."""
    corpus = synthetic.binary(name="small", seed=0, size=600)
    model = heedful.fit(corpus, embedding_size=16, epochs=3, batch_size=20)
    terms = heedful.flow_terms(model, corpus.train).set_index("token")
    planted = {name: group for name, group in corpus.planted.items() if name in terms.index} if corpus.planted else {}
    means = terms.loc[list(planted)].groupby(list(planted.values())).mean(numeric_only=True)
    canvas = Canvas(figsize=(7.2, 3.4), layout=ConstrainedLayoutEngine())
    left, right = canvas.subplots(1, 2)
    looks = {"positive": (TOWARDS, ""), "neutral": (GREY, ""), "negative": (AWAY, "////")}
    for axis, names, title in (
        (left, "ABC", "of the polarity: A + B + C"),
        (right, "DEF", "of the attention: D + E + F"),
    ):
        for step, (group, (colour, hatch)) in enumerate(looks.items()):
            spots = np.arange(3) + (step - 1) * 0.27
            values = TIMES * means.loc[group, list(names)].to_numpy(dtype=float)
            axis.bar(spots, values, 0.25, color=colour, hatch=hatch, edgecolor="white", label=f"{group} words")
        zero_line(axis)
        axis.set_xticks(range(3), list(names))
        axis.grid(axis="x", visible=False)
        axis.set_title(title)
    left.set_ylabel("mean rate of change × 1,000")
    left.legend(fontsize=9)
    return canvas


PICTURES: Mapping[str, Callable[[], Canvas]] = {
    "trace": the_trace,
    "erasure": erasing,
    "minimum-set": smallest_set,
    "adversary": another_attention,
    "flow-terms": flow,
}
"""What each picture is drawn by; a concept page shows the one of its name."""


@house_style()
def save(name: str, path: Path) -> None:
    """Draw a picture into an SVG file, the same bits whenever it is drawn."""
    with mpl.rc_context({"svg.hashsalt": name}):
        PICTURES[name]().savefig(path, metadata={"Date": None})


def _rows(count: int, *, height: float) -> tuple[Canvas, list[Axes]]:
    canvas = Canvas(figsize=(7.2, height), layout=ConstrainedLayoutEngine())
    return canvas, list(canvas.subplots(count, 1, squeeze=False, sharex=True).flat)


def _bars(axis: Axes, heights: np.ndarray, colours: list[str], label: str, title: str, form: str) -> None:
    places = np.arange(len(heights))
    bars = axis.bar(places, heights, 0.6, color=colours)
    for bar, colour in zip(bars, colours, strict=True):
        bar.set_hatch("////" if colour == AWAY else "")
        bar.set_edgecolor("white")
    axis.bar_label(bars, [form.format(height) for height in heights], padding=2, fontsize=9, color=SOFT)
    zero_line(axis)
    axis.margins(y=0.28)
    axis.grid(axis="x", visible=False)
    axis.set_ylabel(label)
    axis.set_title(title)


def _signed(numbers: np.ndarray) -> list[str]:
    return [TOWARDS if number >= 0 else AWAY for number in numbers]
