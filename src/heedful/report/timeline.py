"""A training to be moved through by hand: tokens as points, a slider for the time. One fragment, no other file.

The fragment shows the last moment where scripts do not run. All its numbers stand in it; the script moves the points.
"""

import json
import re
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from html import escape

import numpy as np
import pandas as pd

from heedful.analysis.statistics import Numbers
from heedful.errors import InputError
from heedful.figures.style import Look, group_looks

WIDTH, HEIGHT = 640.0, 400.0
LEFT, RIGHT, TOP, BOTTOM = 56.0, 16.0, 14.0, 44.0
MOMENTS = 60
"""At most so many moments are kept, evenly spaced."""

POINTS = 80
"""At most so many tokens of a group are shown, evenly spaced in the order of their last attention score."""


def timeline(table: pd.DataFrame, *, name: str, title: str, x: str = "polarity", y: str = "attention") -> str:
    """An HTML fragment in which a slider moves tokens through their training.

    `table` has the columns time, token, group and the two scores; `name` sets the fragment apart from others on a page.
    """
    if table.empty:
        raise InputError("A timeline needs at least one moment; the table has no rows.")
    if not re.fullmatch(r"[A-Za-z][\w-]*", name):
        raise InputError(f"A timeline is named by a letter and then letters, digits and dashes, not '{name}'.")
    shown = _thin(table, y)
    times = np.sort(shown["time"].unique())
    courses = [shown.pivot(index="time", columns="token", values=column).sort_index() for column in (x, y)]
    groups = shown.drop_duplicates("token").set_index("token")["group"].loc[courses[0].columns]
    xs, ys = (course.to_numpy(dtype=np.float64) for course in courses)
    frames = [_scaled(xs, LEFT, WIDTH - RIGHT), _scaled(ys, HEIGHT - BOTTOM, TOP)]
    points = _points(
        frames[0][-1].tolist(), frames[1][-1].tolist(), [str(token) for token in groups.index], [str(g) for g in groups]
    )
    data = {
        "times": [f"{time:.0f}" for time in times],
        "x": frames[0].round(1).tolist(),
        "y": frames[1].round(1).tolist(),
    }
    return _FRAGMENT.format(
        name=name,
        title=escape(title),
        width=WIDTH,
        height=HEIGHT,
        axes=_axes(xs, ys, x, y),
        points=points,
        legend=_legend([str(group) for group in groups]),
        last=len(times) - 1,
        end=data["times"][-1],
        script=SCRIPT,
        data=json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"),
    )


def _thin(table: pd.DataFrame, order: str) -> pd.DataFrame:
    """Few enough moments and tokens for a page; tokens of no group are left out."""
    times = np.sort(table["time"].unique())
    kept = times[_spread(len(times), MOMENTS)]
    last = table[(table["time"] == times[-1]) & (table["group"] != "none")].sort_values(order)
    tokens = [token for _, rows in last.groupby("group") for token in rows["token"].iloc[_spread(len(rows), POINTS)]]
    return table[table["time"].isin(kept) & table["token"].isin(tokens)]


def _spread(count: int, most: int) -> np.typing.NDArray[np.int64]:
    """At most so many of `count` places, evenly spaced, the last always among them."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.int64))


def _scaled(values: Numbers, low: float, high: float) -> Numbers:
    """Values as places on the screen, the same for all moments."""
    least, span = _range(values)
    return np.asarray(low + (values - least) / span * (high - low), dtype=np.float64)


def _range(values: Numbers) -> tuple[float, float]:
    least, most = float(np.nanmin(values)), float(np.nanmax(values))
    margin = 0.04 * (most - least) or 1.0
    return least - margin, most - least + 2 * margin


def _points(xs: Sequence[float], ys: Sequence[float], tokens: Sequence[str], groups: Sequence[str]) -> str:
    looks = group_looks(sorted(set(groups)))
    return "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" {_paint(looks[group])}>'
        f"<title>{escape(token)} ({escape(group)})</title></circle>"
        for x, y, token, group in zip(xs, ys, tokens, groups, strict=True)
    )


def _paint(look: Look) -> str:
    """A disc, or, of further groups with its colour, a ring and a disc with a dark rim."""
    filled = f'fill="{look.colour}" fill-opacity=".7"'
    ring = f'fill="{look.colour}" fill-opacity="0" stroke="{look.colour}" stroke-width="1.6"'
    return (filled, ring, f'{filled} stroke="#000" stroke-width="1.2"')[look.turn % 3]


def _key(look: Look) -> str:
    """What stands for a point of the group in the legend."""
    return f'<span style="color:{look.colour}">{"●○◉"[look.turn % 3]}</span>'


def _axes(xs: Numbers, ys: Numbers, x: str, y: str) -> str:
    """Ticks at round numbers, lines at zero, and what the axes mean."""
    parts = []
    for tick in _ticks(xs):
        place = float(_place(tick, xs, LEFT, WIDTH - RIGHT))
        parts.append(_line(place, TOP, place, HEIGHT - BOTTOM, strong=tick == 0))
        parts.append(f'<text x="{place:.1f}" y="{HEIGHT - BOTTOM + 16:g}" text-anchor="middle">{tick:g}</text>')
    for tick in _ticks(ys):
        place = float(_place(tick, ys, HEIGHT - BOTTOM, TOP))
        parts.append(_line(LEFT, place, WIDTH - RIGHT, place, strong=tick == 0))
        parts.append(f'<text x="{LEFT - 6:g}" y="{place + 4:.1f}" text-anchor="end">{tick:g}</text>')
    middle = f"{(TOP + HEIGHT - BOTTOM) / 2:g}"
    parts.append(f'<text x="{WIDTH / 2:g}" y="{HEIGHT - 8:g}" text-anchor="middle">{escape(x)} score</text>')
    parts.append(
        f'<text x="14" y="{middle}" text-anchor="middle" transform="rotate(-90 14 {middle})">{escape(y)} score</text>'
    )
    return "".join(parts)


def _place(value: float, values: Numbers, low: float, high: float) -> float:
    least, span = _range(values)
    return low + (value - least) / span * (high - low)


def _line(x1: float, y1: float, x2: float, y2: float, *, strong: bool) -> str:
    colour = "#9a9a9a" if strong else "#e6e6e6"
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def _ticks(values: Numbers) -> list[float]:
    """Three to seven round numbers within the range."""
    least, span = _range(values)
    rough = span / 5
    unit = 10 ** np.floor(np.log10(rough))
    step = float(unit * min((1, 2, 5, 10), key=lambda factor: abs(factor * unit - rough)))
    first = int(np.ceil(least / step))
    return [round(number * step, 10) for number in range(first, int(np.floor((least + span) / step)) + 1)]


def _legend(groups: Sequence[str]) -> str:
    present = sorted(set(groups))
    looks = group_looks(present)
    return " ".join(
        f'<span style="display:inline-block;max-width:100%;overflow-wrap:anywhere;margin-right:1em">'
        f"{_key(looks[group])} {escape(group)}</span>"
        for group in present
    )


_FRAGMENT = """\
<figure class="timeline" id="{name}">
<figcaption>{title}</figcaption>
<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{title}"
 style="width:100%;max-width:{width:g}px;font:11px sans-serif">
<g>{axes}</g><g class="points">{points}</g></svg>
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

CONTENT_POLICY = f"script-src 'sha256-{b64encode(sha256(SCRIPT.encode()).digest()).decode()}'"
"""What a page adds to its Content-Security-Policy for its timelines."""
