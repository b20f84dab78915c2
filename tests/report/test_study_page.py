"""The page of a study: a training to be moved through is the only script that it lets run."""

import re
from pathlib import Path

import pandas as pd

from heedful.pipeline import Run
from heedful.report.study import StudyPage, render_study
from heedful.report.timeline import CONTENT_POLICY
from heedful.store import write_manifest
from heedful.studies.runs import Runs
from heedful.studies.sun2020.study import Request, tabulate, write
from heedful.studies.sun2020.synthetic import Recording, recipe


def page(timelines: tuple[str, ...] = ()) -> StudyPage:
    return StudyPage(
        title="a study", lead="<lead>", judged=(), tables=(), pictures=(), notices=(), facts={}, timelines=timelines
    )


def policy_of(html: str) -> str:
    found = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert found
    return found[1].replace("&#39;", "'")


def test_a_page_without_timelines_runs_nothing() -> None:
    html = render_study(page())
    assert policy_of(html) == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    assert "Attention over training time" not in html
    assert "&lt;lead&gt;" in html


def test_a_timeline_brings_the_policy_that_lets_its_script_run() -> None:
    html = render_study(page(("<figure id='one'></figure>",)))
    assert policy_of(html).endswith(f"; {CONTENT_POLICY}")
    assert "<figure id='one'></figure>" in html


def test_the_study_of_sun_and_lu_shows_the_recorded_training(tmp_path: Path) -> None:
    rows = [
        (step, f"{group}{number}", group, sign * float(step + number), float(step))
        for step in (0, 100)
        for group, sign in (("positive", 1), ("negative", -1), ("neutral", 0))
        for number in range(2)
    ]
    tokens = pd.DataFrame(rows, columns=["step", "token", "group", "polarity", "attention"])
    tokens.to_parquet(tmp_path / "flow_tokens.parquet")
    write_manifest(tmp_path, {"settings": recipe(quick=True).model_dump(mode="json")})
    recording = Recording(Run(tmp_path))
    study = tabulate(Request(figures=("time",)), Runs([]), {"data-1": [recording]}, tmp_path / "study")
    write(study)
    html = study.page.read_text(encoding="utf-8")
    assert html.count('type="range"') == 1
    assert html.count("<circle cx=") == 6
    assert CONTENT_POLICY in policy_of(html)
