"""The answer: what verdicts together say to the question whether attention explains this classifier on this data.

Three questions have a verdict of their own: attention that points at the right words across a corpus may miss what
decided a single text, and the other way round; and where it finds what decided, other weights might have given the same
output. Only claims that were judged speak. How often the answer is wrong where the truth is known is measured by
`heedful calibrate`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from heedful.claims.claim import Decision, Verdict, sentence
from heedful.claims.scores import LEARNED
from heedful.notebook import Grid, View, Viewed, listed

Known = Mapping[str, Decision]

SOUND, SCORES, TEXTS = "C1", "C2b", "C8c"
CHANCE, LEADS, ALL_TEXTS = "S6b", "S13", "S4"
OTHERWISE, FAR_AWAY, ONE_FOR_ALL = "J3b", "J3", "J4"
CORPUS, DECISION, STORY = "corpus", "decision", "story"
"""The questions by name."""
EFFECTS = "D2"
GUIDES: Mapping[str, str] = {
    "S5": "the gradient",
    "S14": "the margin against the runner-up",
    "D4": "leaving out one unit at a time",
}
"""The claims that another ranking is the better guide, and what it is called."""

STANDS_FOR: Mapping[str, str] = {"D1": SOUND, "D3": LEADS}
"""Claims of a model that can only be asked, and those of a trace in whose place they are."""

DECISIVE = (CHANCE, LEADS)  # what the question on single decisions is answered by

FEWEST_DECISIONS = 0.5
"""So large a part of the decisions must rest on parts of their texts for the answer to speak of decisions at all."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """One of the questions: its verdict, why, and the claims it rests on."""

    name: str
    question: str
    decision: Decision
    words: str
    """Why, in a sentence."""
    rests_on: tuple[str, ...]
    more: str = ""
    """What else is to be known of it."""

    @property
    def for_attention(self) -> Decision:
        """The decision as it speaks for attention: another story that could be told speaks against it."""
        turned: Mapping[Decision, Decision] = {"yes": "no", "no": "yes", "not shown": "not shown"}
        return turned[self.decision] if self.name == STORY else self.decision


@dataclass(frozen=True, kw_only=True)
class Use:
    """What attention might be used for, and whether it may be."""

    purpose: str
    decision: Decision
    words: str


@dataclass(frozen=True, kw_only=True)
class Answer(Viewed):
    """The headline, the questions behind it, what attention may be used for, and what to use instead."""

    headline: str
    questions: tuple[Question, ...]
    uses: tuple[Use, ...]
    instead: tuple[str, ...]
    scope: str = ""
    """What the answer is of."""

    def question(self, name: str) -> Question:
        return next(question for question in self.questions if question.name == name)

    @property
    def view(self) -> View:
        questions = [[one.question, one.decision, one.words] for one in self.questions]
        uses = [[one.purpose, one.decision, one.words] for one in self.uses]
        return View(
            title=self.headline,
            sentences=[*self.instead, *([self.scope] if self.scope else [])],
            parts=[
                Grid(header=["question", "answer", "why"], rows=questions),
                Grid(header=["may you use it to", "", ""], rows=uses),
            ],
        )

    def row(self) -> dict[str, Any]:
        """The answer as plain data."""
        return asdict(self)


def answer(
    verdicts: Sequence[Verdict],
    *,
    unit: str = "words",
    classes: Known | None = None,
    scope: str = "",
    note: str = "",
    drawn: str = "",
    unasked: str = "",
    instead: Sequence[str] | None = None,
) -> Answer:
    """The answer that these verdicts give, and no others.

    unit: what has the weights, words or sentences.
    classes: whether attention finds what decided in the decisions for each class alone (`single_decisions`).
    scope: what the answer is of: how many trainings, how many texts.
    note: what must be said of the words that the first question rests on.
    drawn: what must be said of the texts that the third one rests on, where they are not all.
    unasked: why the third question is not asked, where it is not.
    instead: what to use instead of attention, a sentence each; None: what a trace has.
    """
    own = {STANDS_FOR.get(verdict.claim, verdict.claim): verdict for verdict in verdicts}
    known = {name: verdict.decision for name, verdict in own.items()}
    counts = {name: verdict.estimate.count for name, verdict in own.items() if verdict.estimate is not None}
    idle = known.get(LEARNED, "yes") != "yes"
    asked = (
        _corpus(known, unit, note),
        _decision(known, counts, classes or {}, unit),
        _story(known, unit, drawn, unasked),
    )
    questions = tuple(_idle(one) if idle else _cited(one, own) for one in asked)
    corpus, decision, story = (question.decision for question in questions)
    return Answer(
        headline=_IDLE if idle else _headline(known, corpus, decision, classes or {}),
        questions=questions,
        uses=tuple(_uses(corpus, decision, story, unit, "attention scores" if SCORES in known else "attention")),
        instead=() if idle else tuple(_instead(corpus, decision, known) if instead is None else instead),
        scope=scope,
    )


def _idle(question: Question) -> Question:
    """What is said where nothing is shown to have been learned."""
    return replace(question, decision="not shown", words=_NOTHING, more="", rests_on=(LEARNED,))


def _cited(question: Question, own: Mapping[str, Verdict]) -> Question:
    """With the claims that were judged, not those in whose place they are."""
    return replace(question, rests_on=tuple(own[name].claim for name in question.rests_on))


def _headline(known: Known, corpus: Decision, decision: Decision, classes: Known) -> str:
    """The sentence of the first two answers, and the classes of whose decisions the second does not hold.

    Where words that belong to a class do not push towards it, nothing sound is there to point at.
    """
    words = _IN_DOUBT[decision] if known.get(SOUND) == "no" else _HEADLINES[corpus, decision]
    apart: Decision = "not shown" if decision == "yes" else "yes"
    names = [name for name, own in classes.items() if own == apart]
    apart_of = "any one class" if decision == "yes" and len(names) == len(classes) > 1 else quoted(names)
    return f"{words} {_APART[decision].format(apart_of)}" if names else words


def quoted(names: Sequence[str]) -> str:
    """Names of classes, told from the words around them."""
    return listed([f"“{name}”" for name in names])


def _all_of(parts: Sequence[Decision]) -> Decision:
    """Yes if every part is shown, no if any is refuted."""
    if "no" in parts:
        return "no"
    return "yes" if parts and set(parts) == {"yes"} else "not shown"


def single_decisions(known: Known, resting: int, decisions: int) -> Decision:
    """Whether attention finds what decided, if so many of the decisions rest on a part of their text."""
    parts = [known[name] for name in DECISIVE if name in known]
    enough = len(parts) == len(DECISIVE) and resting >= FEWEST_DECISIONS * decisions
    return _all_of(parts) if enough else "not shown"


def _corpus(known: Known, unit: str, note: str) -> Question:
    rests_on = tuple(name for name in (SOUND, SCORES, TEXTS, EFFECTS) if name in known)
    parts = [known[name] for name in rests_on if name != SOUND]
    said = _UNSOUND.get(known.get(SOUND, "not shown")) or _joined(rests_on[1:], known, unit)
    return Question(
        name=CORPUS,
        question="Across the corpus, does attention point at the words that decide?",
        decision=_all_of(parts) if known.get(SOUND) == "yes" else "not shown",
        words=said,
        more=note,
        rests_on=rests_on,
    )


def _decision(known: Known, counts: Mapping[str, int], classes: Known, unit: str) -> Question:
    """Some decisions flip before everything is erased, of every one that there is; where that was not measured, all."""
    rests_on = tuple(name for name in DECISIVE if name in known)
    some, every = (counts[LEADS], counts[ALL_TEXTS]) if {LEADS, ALL_TEXTS} <= set(counts) else (1, 1)
    found = single_decisions(known, some, every)
    refuted = found == "yes" and "no" in classes.values()
    few = some < FEWEST_DECISIONS * every
    resting = (_FEW_REST if few else _RESTING).format(some=some, all=every) if some < every else ""
    by_class = _by_class(classes, found)
    words = [_joined(rests_on, known, unit), resting if few else "", by_class if refuted else ""]
    more = [*_guides(known), "" if few else resting, "" if refuted else by_class]
    return Question(
        name=DECISION,
        question="For one decision, does attention find what decided it?",
        decision="not shown" if refuted else found,
        words=_sentences(words),
        more=_sentences(more),
        rests_on=(*rests_on, *(name for name in GUIDES if name in known)),
    )


def _story(known: Known, unit: str, drawn: str, unasked: str) -> Question:
    """Of each text by itself, for which alone other weights are looked for; beside it what one attention could do."""
    rests_on = tuple(name for name in (OTHERWISE, FAR_AWAY) if name in known)
    each = f"{_EACH}{_ONE_FOR_ALL[known[ONE_FOR_ALL]] if ONE_FOR_ALL in known else _ANOTHER}"
    more = [drawn, each if rests_on else ""]
    return Question(
        name=STORY,
        question="Could another attention tell another story with the same output?",
        decision=known.get(OTHERWISE, "not shown"),
        words=unasked or _joined(rests_on, known, unit),
        more=_sentences(more),
        rests_on=(*rests_on, *([ONE_FOR_ALL] if ONE_FOR_ALL in known else [])),
    )


def _sentences(said: Sequence[str]) -> str:
    return " ".join(filter(None, said))


def _guides(known: Known) -> Iterator[str]:
    """Which other rankings are better guides, and which are not."""
    for decision, words in _GUIDES.items():
        names = [name for claim, name in GUIDES.items() if known.get(claim) == decision]
        if names:
            yield sentence(words[len(names) - 1].format(" and ".join(names)))


def _by_class(classes: Known, found: Decision) -> str:
    """What holds of the decisions for each class, where it is not the same of all."""
    if set(classes.values()) <= {found}:
        return ""
    parts = [
        f"{decision} for {quoted([name for name, own in classes.items() if own == decision])}"
        for decision in ("yes", "no", "not shown")
        if decision in classes.values()
    ]
    return f"It is not the same of the decisions for every class: {'; '.join(parts)}."


def _joined(names: Sequence[str], known: Known, unit: str) -> str:
    """What each claim says, as one sentence: the same by "and", something else by "but"."""
    if not names:
        return "Nothing was measured that would tell."
    words = {**_SAID, **({} if SCORES in names else {TEXTS: _ALONE})}
    said = [words[name].get(known[name], f"whether {words[name]['yes']} is not shown") for name in names]
    alike = len({known[name] for name in names}) == 1
    between = " and " if alike else ", but " if len(said) == 2 else "; "
    return sentence(between.join(said).format(unit=unit, one=unit.removesuffix("s")) + ".")


_UNSOUND: Mapping[Decision, str] = {
    "no": "The model itself is in doubt: words that clearly belong to a class do not reliably push towards it, so that "
    "there is nothing sound for attention to point at.",
    "not shown": "Too little is known of what the model uses: the words that clearly belong to a class are too few, or "
    "push towards it too unreliably, to judge attention by them.",
}

_SAID: Mapping[str, Mapping[Decision, str]] = {
    SCORES: {
        "yes": "words that belong to a class get larger attention scores than others that are as frequent",
        "no": "words that belong to a class do not get larger attention scores than others that are as frequent",
    },
    TEXTS: {
        "yes": "on unseen text they get more of the attention",
        "no": "on unseen text they do not get more of the attention",
        "not shown": "whether they get more of the attention on unseen text is not shown",
    },
    EFFECTS: {
        "yes": "the words whose removal moves the output most get more attention than those that hardly move it",
        "no": "the words whose removal moves the output most do not get more attention than those that hardly move it",
    },
    CHANCE: {
        "yes": "the most attended {unit} hold more of what decides than random ones",
        "no": "the most attended {unit} hold no more of what decides than random ones",
    },
    LEADS: {"yes": "they hold most of it", "no": "much of it lies in other {unit}"},
    OTHERWISE: {
        "yes": "for most texts other weights give exactly the same output without the most attended {one}",
        "no": "for most texts no weights give exactly the same output without the most attended {one}",
    },
    FAR_AWAY: {
        "yes": "for most of them attention far from the model's own keeps it within .05",
        "no": "for most of them no attention far from the model's own keeps it within .05",
    },
}
"""What is said of each claim, with a place for what has the weights and for one of them; of a claim that is not shown,
whether what it would be if it were is not shown."""

_ALONE: Mapping[Decision, str] = {
    "yes": "words that belong to a class get more attention on unseen text than others that are as frequent",
    "no": "words that belong to a class do not get more attention on unseen text than others that are as frequent",
}
"""Said of the weights of words where their scores are not known."""

_EACH = "Each text is judged by itself, with weights of its own"
_ANOTHER = "; what one attention for the whole corpus could do is another question."
_ONE_FOR_ALL: Mapping[Decision, str] = {
    "yes": ". One attention for the whole corpus could tell another story, too: with every output within .05 it puts "
    "most of the words of a class below words that all classes use alike.",
    "no": ". One attention for the whole corpus could not: none that keeps every output within .05 puts most of the "
    "words of a class below words that all classes use alike.",
    "not shown": ". Whether one attention for the whole corpus could put most of the words of a class below words that "
    "all classes use alike, with every output within .05, is not shown.",
}

_RESTING = (
    "That is of {some:,} of {all:,} decisions: what is left flips only when everything is erased, or never, and rests "
    "on no part of its text."
)
_FEW_REST = "Only {some:,} of {all:,} decisions rest on a part of their text; of so few, nothing is said at large."

_GUIDES: Mapping[Decision, tuple[str, str]] = {
    "yes": ("{} is the better guide.", "{} are better guides."),
    "no": ("{} is no better guide.", "{} are no better guides."),
}

_APART: Mapping[Decision, str] = {
    "yes": "Of decisions for {} alone it is not shown.",
    "no": "Decisions for {} are an exception: what decided those it finds.",
    "not shown": "What decided for {} it does find.",
}
"""Said of classes whose decisions are not like all of them."""

_IDLE = (
    "Not shown: the model is not shown to tell the classes apart better than guessing, so that there may be nothing to "
    "explain."
)
_NOTHING = "The model is not shown to tell the classes apart better than guessing does."

_HEADLINES: Mapping[tuple[Decision, Decision], str] = {
    ("yes", "yes"): "Yes, as far as tested: attention points at the words that decide, across the corpus and in single "
    "decisions.",
    ("yes", "no"): "In part: across the corpus attention points at the words that decide, but it does not find what "
    "decided a single text.",
    ("yes", "not shown"): "In part: across the corpus attention points at the words that decide; whether it finds what "
    "decided a single text is not shown.",
    ("no", "yes"): "In part: attention finds what decided a single text, but across the corpus it does not point at "
    "the words that decide.",
    ("no", "no"): "No: attention does not point at the words that decide, neither across the corpus nor in single "
    "decisions.",
    ("no", "not shown"): "No: across the corpus attention does not point at the words that decide; whether it finds "
    "what decided a single text is not shown.",
    ("not shown", "yes"): "In part: attention finds what decided a single text; whether it points at the words that "
    "decide across the corpus is not shown.",
    ("not shown", "no"): "No: attention does not find what decided a single text; whether it points at the words that "
    "decide across the corpus is not shown.",
    ("not shown", "not shown"): "Not shown: the evidence does not tell whether attention points at what decides.",
}
"""By what is shown across the corpus, then of single decisions."""

_DOUBT = "The model itself is in doubt: words do not reliably push towards their own class. "
_IN_DOUBT: Mapping[Decision, str] = {
    "yes": f"{_DOUBT}What decided a single text, right or wrong, attention does find.",
    "no": f"{_DOUBT}What decided a single text, right or wrong, attention does not find either.",
    "not shown": f"{_DOUBT}Whether attention finds what decided a single text is not shown.",
}


def _uses(corpus: Decision, decision: Decision, story: Decision, unit: str, by: str) -> Iterator[Use]:
    for (purpose, words), shown in zip(_USES.items(), (corpus, decision), strict=True):
        yield Use(purpose=purpose, decision=shown, words=words[shown].format(unit=unit, by=by))
    justified, why = _justify(decision, story, unit.removesuffix("s"))
    yield Use(purpose="justify a decision", decision=justified, words=why)


def _justify(decision: Decision, story: Decision, one: str) -> tuple[Decision, str]:
    """Weights justify a decision that explain it, and that no other weights could take the place of."""
    if decision == "no":
        return "no", "What does not explain a decision does not justify it."
    if story == "yes":
        return "no", "Other weights would justify it as well."
    if decision == "not shown":
        return "not shown", "What is not shown to explain a decision does not justify it."
    if story == "not shown":
        return "not shown", "Whether other weights would justify it as well is not shown."
    return "yes", f"The weights show what decided, and the same output needs the most attended {one}."


_USES: Mapping[str, Mapping[Decision, str]] = {
    "explore the corpus": {
        "yes": "A list of the words with the largest {by} shows what the model goes by.",
        "no": "A list of the words with the largest {by} does not show what the model goes by.",
        "not shown": "Do not rest on a list of the words with the largest {by}.",
    },
    "explain one decision": {
        "yes": "The {unit} with the largest weights in a text are mostly those that decided it.",
        "no": "The {unit} with the largest weights in a text are often not those that decided it.",
        "not shown": "Do not rest on the {unit} with the largest weights in a text.",
    },
}


def _instead(corpus: Decision, decision: Decision, known: Known) -> Iterator[str]:
    if corpus != "yes" and known.get(SOUND) == "yes":
        yield "To explore the corpus, read polarity scores: what words push towards."
    if decision != "yes" and known:
        yield (
            "To explain one decision, read the contributions α·z; `heedful erase` shows the provably smallest set that "
            "flips it."
        )
