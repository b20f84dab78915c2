"""The answer: what verdicts together say to the question whether attention explains this classifier on this data.

Two questions have a verdict of their own, because attention that points at the right words across a corpus may miss
what decided a single text, and the other way round. Only claims that were judged speak. How often the answer is wrong
where the truth is known is measured by `heedful calibrate`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from heedful.claims.kinds import Decision, Verdict
from heedful.claims.model import LEARNED

Known = Mapping[str, Decision]

SOUND, SCORES, TEXTS = "C1", "C2", "C8b"
CHANCE, LEADS, GRADIENT, ALL_TEXTS = "S6", "S13", "S5", "S4"

FEWEST_DECISIONS = 0.5
"""So large a part of the decisions must rest on parts of their texts for the answer to speak of decisions at all."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """One of the questions: its verdict, why, and the claims it rests on."""

    name: str
    question: str
    decision: Decision
    words: str
    rests_on: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Use:
    """What attention might be used for, and whether it may be."""

    purpose: str
    decision: Decision
    words: str


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The headline, the questions behind it, what attention may be used for, and what to use instead."""

    headline: str
    questions: tuple[Question, ...]
    uses: tuple[Use, ...]
    instead: tuple[str, ...]

    def question(self, name: str) -> Question:
        return next(question for question in self.questions if question.name == name)

    def row(self) -> dict[str, Any]:
        """The answer as plain data."""
        return asdict(self)


def answer(verdicts: Sequence[Verdict], *, unit: str = "words") -> Answer:
    """The answer that these verdicts give, and no others; `unit` is what has the weights, words or sentences."""
    known = {verdict.claim: verdict.decision for verdict in verdicts}
    corpus, decision = _corpus(known), _decision(known, _resting(verdicts))
    idle = known.get(LEARNED, "yes") != "yes"
    if idle:
        corpus, decision = (_unasked(question) for question in (corpus, decision))
    return Answer(
        headline=_IDLE if idle else _HEADLINES[_doubtful(known), corpus.decision, decision.decision],
        questions=(corpus, decision),
        uses=tuple(_uses(corpus.decision, decision.decision, unit)),
        instead=() if idle else tuple(_instead(corpus.decision, decision.decision, known)),
    )


def _unasked(question: Question) -> Question:
    """The question where the model is not shown to have learned anything: what it attends to is beside the point."""
    return replace(question, decision="not shown", words=_NOTHING, rests_on=(LEARNED,))


def _all_of(parts: Sequence[Decision]) -> Decision:
    """Yes if every part is shown, no if any is refuted."""
    if "no" in parts:
        return "no"
    return "yes" if parts and set(parts) == {"yes"} else "not shown"


def _doubtful(known: Known) -> bool:
    """Whether words that belong to a class do not push towards it: nothing sound is there to point at."""
    return known.get(SOUND) == "no"


def _corpus(known: Known) -> Question:
    rests_on = tuple(name for name in (SOUND, SCORES, TEXTS) if name in known)
    parts = [known[name] for name in rests_on if name != SOUND]
    decision = _all_of(parts) if known.get(SOUND) == "yes" else "not shown"
    return Question(
        name="corpus",
        question="Across the corpus, does attention point at the words that decide?",
        decision=decision,
        words=_UNSOUND.get(known.get(SOUND, "not shown"), "") or _joined(rests_on[1:], parts),
        rests_on=rests_on,
    )


def _resting(verdicts: Sequence[Verdict]) -> tuple[int, int] | None:
    """How many decisions flip before everything is erased, and of how many; None where that was not measured."""
    counts = {verdict.claim: verdict.estimate.count for verdict in verdicts if verdict.estimate is not None}
    return (counts[LEADS], counts[ALL_TEXTS]) if {LEADS, ALL_TEXTS} <= set(counts) else None


def _decision(known: Known, resting: tuple[int, int] | None) -> Question:
    rests_on = tuple(name for name in (CHANCE, LEADS) if name in known)
    parts = [known[name] for name in rests_on]
    guide = _GUIDE[known[GRADIENT]] if GRADIENT in known else ""
    few = resting is not None and resting[0] < FEWEST_DECISIONS * resting[1]
    said = "" if resting is None or resting[0] == resting[1] else _RESTING.format(some=resting[0], all=resting[1])
    return Question(
        name="decision",
        question="For one decision, does attention find what decided it?",
        decision=_all_of(parts) if len(parts) == 2 and not few else "not shown",
        words=f"{_joined(rests_on, parts)}{guide}{said}{_FEW_REST if few else ''}",
        rests_on=(*rests_on, GRADIENT) if GRADIENT in known else rests_on,
    )


def _joined(names: Sequence[str], parts: Sequence[Decision]) -> str:
    """What each claim says, as one sentence: the same by "and", something else by "but"."""
    said = [_SAID[name][part] for name, part in zip(names, parts, strict=True)]
    if not said:
        return "Nothing was measured that would tell."
    link = " and " if len(set(parts)) == 1 else ", but "
    sentence = link.join(said)
    return f"{sentence[0].upper()}{sentence[1:]}."


_UNSOUND: Mapping[Decision, str] = {
    "no": "The model itself is in doubt: words that clearly belong to a class do not reliably push towards it, so that "
    "there is nothing sound for attention to point at.",
    "not shown": "Too little is known of what the model uses: the words that clearly belong to a class are too few, or "
    "push towards it too unreliably, to judge attention by them.",
}

_SAID: Mapping[str, Mapping[Decision, str]] = {
    SCORES: {
        "yes": "words that belong to a class get larger attention scores than words that belong to none",
        "no": "words that belong to a class do not get larger attention scores than words that belong to none",
        "not shown": "whether words that belong to a class get larger attention scores than others is not shown",
    },
    TEXTS: {
        "yes": "on unseen text they get more of the attention",
        "no": "on unseen text they do not get more of the attention",
        "not shown": "whether they get more of the attention on unseen text is not shown",
    },
    CHANCE: {
        "yes": "erased from the most attended on, units flip decisions sooner than in random order",
        "no": "erased from the most attended on, units flip decisions no sooner than in random order",
        "not shown": "whether decisions flip sooner from the most attended unit on than in random order is not shown",
    },
    LEADS: {
        "yes": "the most attended units hold most of what decides",
        "no": "much of what decides lies in other units than the most attended ones",
        "not shown": "whether the most attended units hold most of what decides is not shown",
    },
}

_RESTING = (
    " That is of {some:,} of {all:,} decisions: the others flip only when everything is erased, or never, and rest on "
    "no part of their text."
)
_FEW_REST = " Of so few, nothing is said of decisions at large."

_GUIDE: Mapping[Decision, str] = {
    "yes": " The gradient is the better guide.",
    "no": " The gradient is no better guide.",
    "not shown": "",
}

_IDLE = (
    "Not shown: the model is not shown to do better than always guessing the commonest class, so that there may be "
    "nothing to explain."
)
_NOTHING = "The model is not shown to do better than always guessing the commonest class."

_DOUBT = "The model itself is in doubt: words do not reliably push towards their own class. "
_PLAIN: Mapping[tuple[Decision, Decision], str] = {
    ("yes", "yes"): "Yes, as far as tested: attention points at the words that decide, across the corpus and in single "
    "decisions.",
    ("yes", "no"): "In part: across the corpus attention points at the words that decide, but it does not find what "
    "decided a single text.",
    ("yes", "not shown"): "In part: across the corpus attention points at the words that decide; whether it finds what "
    "decided a single text is not shown.",
    (
        "no",
        "yes",
    ): "In part: attention finds what decided a single text, but across the corpus it does not point at the "
    "words that decide.",
    ("no", "no"): "No: attention does not point at the words that decide, neither across the corpus nor in single "
    "decisions.",
    (
        "no",
        "not shown",
    ): "No: across the corpus attention does not point at the words that decide; whether it finds what "
    "decided a single text is not shown.",
    ("not shown", "yes"): "In part: attention finds what decided a single text; whether it points at the words that "
    "decide across the corpus is not shown.",
    ("not shown", "no"): "No: attention does not find what decided a single text; whether it points at the words that "
    "decide across the corpus is not shown.",
    ("not shown", "not shown"): "Not shown: the evidence does not tell whether attention points at what decides.",
}
_IN_DOUBT: Mapping[Decision, str] = {
    "yes": "What decided a single text, right or wrong, attention does find.",
    "no": "What decided a single text, right or wrong, attention does not find either.",
    "not shown": "Whether attention finds what decided a single text is not shown.",
}
_HEADLINES: Mapping[tuple[bool, Decision, Decision], str] = {
    **{(False, *both): words for both, words in _PLAIN.items()},
    **{(True, "not shown", decision): _DOUBT + words for decision, words in _IN_DOUBT.items()},
}


def _uses(corpus: Decision, decision: Decision, unit: str) -> Sequence[Use]:
    justify: Decision = "no" if decision == "no" else "not shown"
    return (
        Use(purpose="explore the corpus", decision=corpus, words=_EXPLORE[corpus]),
        Use(purpose="explain one decision", decision=decision, words=_EXPLAIN[decision].format(unit=unit)),
        Use(purpose="justify a decision", decision=justify, words=_JUSTIFY[justify]),
    )


_EXPLORE: Mapping[Decision, str] = {
    "yes": "A list of the words with the largest attention scores shows what the model goes by.",
    "no": "A list of the words with the largest attention scores does not show what the model goes by.",
    "not shown": "Do not rest on a list of the words with the largest attention scores.",
}
_EXPLAIN: Mapping[Decision, str] = {
    "yes": "The {unit} with the largest weights in a text are mostly those that decided it.",
    "no": "The {unit} with the largest weights in a text are often not those that decided it.",
    "not shown": "Do not rest on the {unit} with the largest weights in a text.",
}
_JUSTIFY: Mapping[Decision, str] = {
    "no": "What does not explain a decision does not justify it.",
    "not shown": "Whether other weights would give the same output is not tested here.",
}


def _instead(corpus: Decision, decision: Decision, known: Known) -> Sequence[str]:
    found = []
    if corpus != "yes" and known.get(SOUND) == "yes":
        found.append("To explore the corpus, read the polarity scores: what a word pushes towards, wherever it stands.")
    if decision != "yes" and known:
        found.append(
            "To explain one decision, read the contributions α·z, what each part of the text gave to it; `heedful "
            "erase` shows the provably smallest set that flips it."
        )
    return found
