"""A training to be moved through by hand: tokens as points, a slider for the time.

It shows the last moment where scripts do not run. All its numbers stand in it; the script moves the points.
"""

import json
import re
from collections.abc import Sequence
from html import escape

import numpy as np
import pandas as pd

from heedful.analysis.statistics import Numbers
from heedful.errors import InputError
from heedful.figures.style import Look
from heedful.figures.tokens import looks_of

WIDTH, HEIGHT = 640.0, 400.0
LEFT, RIGHT, TOP, BOTTOM = 56.0, 16.0, 14.0, 44.0
ACROSS, UP = (LEFT, WIDTH - RIGHT), (HEIGHT - BOTTOM, TOP)
"""Where the axes of a timeline begin and end."""

MOMENTS = 60  # at most so many moments are kept, evenly spaced
POINTS = 80  # at most so many tokens of a group are shown, evenly spaced in the order of their last attention score


def timeline(table: pd.DataFrame, *, name: str, title: str, x: str = "polarity", y: str = "attention") -> str:
    """An HTML fragment in which a slider moves tokens through their training.

    `table` has the columns time, token, group and the two scores; `name` sets the fragment apart from others on a page.
    """
    if table.empty:
        raise InputError("A timeline needs at least one moment; the table has no rows.")
    if not re.fullmatch(r"[A-Za-z][\w-]*", name):
        raise InputError(f"A timeline is named by a letter and then letters, digits and dashes, not '{name}'.")
    shown = _thin(table, y)
    courses = [shown.pivot(index="time", columns="token", values=column).sort_index() for column in (x, y)]
    groups = shown.drop_duplicates("token").set_index("token")["group"].loc[courses[0].columns].astype(str)
    xs, ys = (course.to_numpy(dtype=np.float64) for course in courses)
    across, up = _scaled(xs, xs, *ACROSS), _scaled(ys, ys, *UP)
    times = [f"{time:.0f}" for time in courses[0].index]
    data = {"times": times, "x": across.round(1).tolist(), "y": up.round(1).tolist()}
    looks = {group: look for group, look in looks_of(table).items() if group in set(groups)}
    return _FRAGMENT.format(
        name=name,
        title=escape(title),
        width=WIDTH,
        height=HEIGHT,
        axes=_axes(xs, ys, x, y),
        points="".join(map(_point, across[-1], up[-1], map(str, groups.index), groups, groups.map(looks))),
        legend=" ".join(
            _LEGEND.format(look.colour, "●○◉"[look.turn % 3], escape(group)) for group, look in sorted(looks.items())
        ),
        last=len(times) - 1,
        end=times[-1],
        script=SCRIPT,
        data=json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"),
    )


def _thin(table: pd.DataFrame, order: str) -> pd.DataFrame:
    """Few enough moments and tokens for a page; tokens of no group are left out."""
    times = np.sort(table["time"].unique())
    kept = times[_spread(len(times), MOMENTS)]
    last = table[(table["time"] == times[-1]) & (table["group"] != "none")].sort_values(order)
    tokens = [
        token
        for _, rows in last.groupby("group", observed=True)
        for token in rows["token"].iloc[_spread(len(rows), POINTS)]
    ]
    return table[table["time"].isin(kept) & table["token"].isin(tokens)]


def _spread(count: int, most: int) -> np.typing.NDArray[np.int64]:
    """At most so many of `count` places, evenly spaced, the last always among them."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.int64))


def _range(values: Numbers) -> tuple[float, float]:
    least, most = float(np.nanmin(values)), float(np.nanmax(values))
    margin = 0.04 * (most - least) or 1.0
    return least - margin, most - least + 2 * margin


def _scaled(some: Numbers, values: Numbers, low: float, high: float) -> Numbers:
    """Some values as places on the screen, by the range of all, the same for all moments."""
    least, span = _range(values)
    return np.asarray(low + (some - least) / span * (high - low), dtype=np.float64)


def _point(x: float, y: float, token: str, group: str, look: Look) -> str:
    """A disc, or, of further groups with its colour, a ring and a disc with a dark rim."""
    filled = f'fill="{look.colour}" fill-opacity=".7"'
    ring = f'fill="{look.colour}" fill-opacity="0" stroke="{look.colour}" stroke-width="1.6"'
    paint = (filled, ring, f'{filled} stroke="#000" stroke-width="1.2"')[look.turn % 3]
    title = f"<title>{escape(token)} ({escape(group)})</title>"
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" {paint}>{title}</circle>'


def _axes(xs: Numbers, ys: Numbers, x: str, y: str) -> str:
    """Ticks at round numbers, lines at zero, and what the axes mean."""
    parts = []
    for tick, place in _ticks(xs, *ACROSS):
        parts.append(_line(place, TOP, place, HEIGHT - BOTTOM, strong=tick == 0))
        parts.append(f'<text x="{place:.1f}" y="{HEIGHT - BOTTOM + 16:g}" text-anchor="middle">{tick:g}</text>')
    for tick, place in _ticks(ys, *UP):
        parts.append(_line(LEFT, place, WIDTH - RIGHT, place, strong=tick == 0))
        parts.append(f'<text x="{LEFT - 6:g}" y="{place + 4:.1f}" text-anchor="end">{tick:g}</text>')
    middle = f"{(TOP + HEIGHT - BOTTOM) / 2:g}"
    turned = (
        f'<text x="14" y="{middle}" text-anchor="middle" transform="rotate(-90 14 {middle})">{escape(y)} score</text>'
    )
    parts.append(f'<text x="{WIDTH / 2:g}" y="{HEIGHT - 8:g}" text-anchor="middle">{escape(x)} score</text>')
    return "".join([*parts, turned])


def _line(x1: float, y1: float, x2: float, y2: float, *, strong: bool) -> str:
    colour = "#9a9a9a" if strong else "#e6e6e6"
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def _ticks(values: Numbers, low: float, high: float) -> Sequence[tuple[float, float]]:
    """Three to seven round numbers within the range, and where they stand on the screen."""
    least, span = _range(values)
    rough = span / 5
    unit = 10 ** np.floor(np.log10(rough))
    step = float(unit * min((1, 2, 5, 10), key=lambda factor: abs(factor * unit - rough)))
    numbers = range(int(np.ceil(least / step)), int(np.floor((least + span) / step)) + 1)
    ticks = np.array([round(number * step, 10) for number in numbers], dtype=np.float64)
    return list(zip(ticks.tolist(), _scaled(ticks, values, low, high).tolist(), strict=True))


_LEGEND = (
    '<span style="display:inline-block;max-width:100%;overflow-wrap:anywhere;margin-right:1em">'
    '<span style="color:{}">{}</span> {}</span>'
)

_FRAGMENT = """\
<figure class="timeline" id="{name}">
<figcaption>{title}</figcaption>
<div class="wide moving"><svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{title}"
 style="width:100%;max-width:{width:g}px;font:11px sans-serif">
<g>{axes}</g><g class="points">{points}</g></svg></div>
<div>{legend}</div>
<div style="display:flex;gap:.6em;align-items:center;max-width:{width:g}px">
<button type="button" aria-label="play the training">▶</button>
<input type="range" min="0" max="{last}" value="{last}" step="1" style="flex:1" aria-label="training time">
<output style="min-width:6em">epoch {end}</output></div>
<script type="application/json">{data}</script>
<script>{script}</script>
</figure>
"""

SCRIPT = """
(() => {
  const root = document.currentScript.parentElement;
  const data = JSON.parse(root.querySelector('script[type="application/json"]').textContent);
  const points = root.querySelectorAll(".points circle");
  const slider = root.querySelector("input"), output = root.querySelector("output");
  const play = root.querySelector("button");
  let timer = null;
  const show = () => {
    const moment = Number(slider.value);
    points.forEach((point, k) => {
      point.setAttribute("cx", data.x[moment][k]);
      point.setAttribute("cy", data.y[moment][k]);
    });
    output.textContent = "epoch " + data.times[moment];
  };
  const stop = () => { clearInterval(timer); timer = null; play.textContent = "▶"; };
  const step = () => {
    if (Number(slider.value) >= data.times.length - 1) return stop();
    slider.value = Number(slider.value) + 1;
    show();
  };
  slider.addEventListener("input", () => { stop(); show(); });
  play.addEventListener("click", () => {
    if (timer) return stop();
    if (Number(slider.value) >= data.times.length - 1) slider.value = 0;
    play.textContent = "❚❚";
    timer = setInterval(step, 100);
    show();
  });
})();
"""
"""The same for every timeline, so that a page can allow this script and no other."""
