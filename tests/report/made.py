"""A page with every part, made by hand: numbers that can be looked for, names that would like to run code."""

import pandas as pd
import torch

from heedful.analysis.statistics import Estimate
from heedful.claims import Verdict
from heedful.claims.answer import answer
from heedful.figures.erasure import flip_curves
from heedful.figures.picture import Figure
from heedful.report.instances import Instances, Trait
from heedful.report.page import Judged, Page, PageTable, Section, verdicts_section
from heedful.report.strips import shadings_of
from heedful.report.timeline import timeline
from heedful.report.vocabulary import Vocabulary
from heedful.traces import Trace

SCRIPT, IMAGE = "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>'
CLASSES = ("sad", f"glad {SCRIPT}")

TOKENS = pd.DataFrame(
    {
        "token": ["good", "bad", "the", SCRIPT, 'a,"b"'],
        "group": ["positive", "negative", "neutral", "none", "none"],
        "count_sad": [1, 8, 50, 1, 0],
        "count_glad": [9, 1, 49, 0, 1],
        "polarity": [2.0, -3.0, 0.125, 0.5, -0.5],
        "attention": [1.5, 1.25, -1.0, 0.0, 0.25],
    }
)

TEXTS = ("A good 😀 film", "the bad the", f"{SCRIPT} good", "the the")
SPANS = [[[0, 1], [2, 6], [7, 8], [9, 13]], [[0, 3], [4, 7], [8, 11]], [[0, 25], [26, 30]], [[0, 3], [4, 7]]]
LABELS = torch.tensor([1, 0, 0, 0])
TRACE = Trace.from_arrays(
    offsets=[0, 4, 7, 9, 11],
    attention_weights=[0.125, 0.5, 0.25, 0.125, 0.25, 0.5, 0.25, 0.75, 0.25, 0.5, 0.5],
    polarity_scores=[[0, z] for z in (0.0, 4.0, -1.0, 1.0, 0.0, -4.0, 0.0, 2.0, 1.0, -1.0, 1.0)],
    bias=[0, 0],
    labels=LABELS,
    class_names=list(CLASSES),
)
INSTANCES = Instances(
    texts=TEXTS,
    offsets=TRACE.offsets,
    spans=torch.tensor([span for text in SPANS for span in text]),
    shadings=shadings_of(TRACE),
    marks=torch.tensor([False, True, False, False, False, True, False, True, True, False, False]),
    predicted=TRACE.predictions,
    probability=TRACE.probabilities.amax(1),
    labels=TRACE.labels,
    class_names=CLASSES,
    traits=[
        Trait(name="wrongly decided", words="the decision is not the label", where=TRACE.predictions != LABELS),
        Trait(name=f"one {SCRIPT}", words="one is enough", where=torch.tensor([True, True, False, False])),
    ],
    needed={"attention": [1, 1, 2, None], "gradient": [1, 1, 2, None]},
)

CURVES = pd.DataFrame({"ranking": ["attention"] * 3, "fraction": [0.0, 0.5, 1.0], "flipped": [0.0, 0.25, 0.5]})
PICTURE = Figure(
    name="curves", title="Curves", caption="See.", needs=("curves",), draw=lambda tables: flip_curves(tables["curves"])
).picture({"curves": CURVES})
MOMENTS = pd.DataFrame(
    [(float(time), token, "positive", 1.0 * time, 2.0 * time) for time in (1, 2) for token in ("good", "fine")],
    columns=["time", "token", "group", "polarity", "attention"],
)
RANKS = PageTable(
    name="ranks",
    title="Ranks",
    cells=pd.DataFrame({"ranking": ["attention", "gradient", SCRIPT], "share": ["9.5%", "10.0%", "–"]}),
    data=pd.DataFrame({"ranking": ["attention", "gradient", SCRIPT], "share": [0.095, 0.1, None]}),
)


def verdict(claim: str, value: float) -> Verdict:
    """Yes above one half."""
    return Verdict(
        claim=claim,
        statement=f"Says {claim}.",
        decision="yes" if value > 0.5 else "no",
        statistic="share",
        estimate=Estimate(value=value, low=value - 0.1, high=value + 0.1, count=99),
        threshold=0.5,
        words=f"Found {value}.",
        sides=("texts",),
    )


def made_page(tokens: pd.DataFrame = TOKENS, instances: Instances = INSTANCES) -> Page:
    verdicts = [verdict("S6b", 0.75), verdict("S13", 0.25), verdict("S1", 0.75)]
    return Page(
        title=f"made {SCRIPT}: can you trust attention?",
        headline=f"In part {SCRIPT}.",
        answer=answer(verdicts, scope="Of one `--seed`."),
        worth="Test accuracy 75.0 %.",
        unit="words",
        opening=[instances.example(0, "Here attention is right", "So is one.")],
        sections=[
            Section(
                name="erasure", title="Erase attention", verdicts=verdicts, question="decision", tables=[RANKS],
                pictures=[PICTURE], lead="Erased.", note="A note.",
            ),
            Section(name="examples", title="Test texts", instances=instances, texts=[instances.example(1, "surest")]),
            Section(
                name="figures", title="The whole vocabulary",
                vocabulary=Vocabulary(table=tokens, classes=CLASSES[1:]),
            ),
            Section(
                name="training", title="Over training time",
                timeline=timeline(MOMENTS, name="moments", title="Move through the training"),
            ),
            verdicts_section(verdicts),
            Section(
                name="judged", title="Side by side", judged=[
                    Judged(dataset=f"run {name}", verdicts=verdicts[:2]) for name in (SCRIPT, IMAGE, "{{ 7 * 7 }}")
                ],
            ),
        ],
        notices=[f"Two rows left out {SCRIPT}."],
        facts={"Data": {"source": SCRIPT, "text_column": None}},
    )  # fmt: skip
