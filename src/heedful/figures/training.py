"""Pictures of a training: loss and dev accuracy by epoch."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from heedful.figures.style import BLACK, house_style, panels


def learning_curves(history: pd.DataFrame) -> Figure:
    """Loss on train (with dropout) and dev, and dev accuracy with the chosen epoch."""
    best = history[history["kept"]].iloc[0]
    dot = "o" if len(history) == 1 else ""  # a line through one point cannot be seen
    with house_style():
        figure, (losses, accuracy) = panels(2, width=4.2, height=3.0)
        losses.plot(history["epoch"], history["train_loss"], color=BLACK, marker=dot, label="train, with dropout")
        losses.plot(history["epoch"], history["dev_loss"], color=BLACK, marker=dot, linestyle="--", label="dev")
        losses.set(xlabel="epoch", ylabel="loss", title="Loss")
        losses.legend()
        accuracy.plot(history["epoch"], history["dev_accuracy"], color=BLACK)
        accuracy.plot(best["epoch"], best["dev_accuracy"], "o", color=BLACK, label=f"chosen: epoch {best['epoch']:.0f}")
        accuracy.set(xlabel="epoch", ylabel="dev accuracy", title="Dev accuracy")
        accuracy.legend()
        for axis in (losses, accuracy):
            axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure
