"""The answer: every combination of verdicts has its sentences, and only verdicts that exist speak."""

import io
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from rich.console import Console

from heedful.analysis.statistics import Estimate
from heedful.claims import CLAIMS, Decision, Verdict
from heedful.claims.answer import answer
from heedful.report.page import Page
from heedful.report.terminal import print_page
from tests.verdicts import verdict

DECISIONS: tuple[Decision, ...] = ("yes", "no", "not shown")
CORPUS, DECISION, STORY = ("C1", "C2b", "C8c"), ("S6b", "S13"), ("J3b", "J3")
GUIDES = ("S5", "S14")
SPEAKING = (*CORPUS, *DECISION, *GUIDES)


def verdicts(**decisions: Decision) -> list[Verdict]:
    return [verdict(claim, decision) for claim, decision in decisions.items()]


ALL_YES: dict[str, Decision] = dict.fromkeys(SPEAKING, "yes")


def expected_corpus(c1: Decision | None, parts: list[Decision]) -> Decision:
    if c1 != "yes" or not parts:
        return "not shown"
    return "no" if "no" in parts else "yes" if set(parts) == {"yes"} else "not shown"


def expected_decision(parts: list[Decision]) -> Decision:
    if "no" in parts and len(parts) == 2:
        return "no"
    return "yes" if parts == ["yes", "yes"] else "not shown"


def test_every_combination_of_verdicts_present_or_not_has_its_sentences() -> None:
    """3 decisions or none for each of the seven claims that speak: 4⁷ combinations."""
    headlines = set()
    for given in product((*DECISIONS, None), repeat=len(SPEAKING)):
        known = {claim: decision for claim, decision in zip(SPEAKING, given, strict=True) if decision is not None}
        found = answer(verdicts(**known))
        corpus, decision, story = found.questions
        assert corpus.decision == expected_corpus(
            known.get("C1"), [known[claim] for claim in CORPUS[1:] if claim in known]
        )
        assert decision.decision == expected_decision([known[claim] for claim in DECISION if claim in known])
        assert [use.decision for use in found.uses[:2]] == [corpus.decision, decision.decision]
        assert found.uses[2].decision == ("no" if decision.decision == "no" else "not shown")
        assert (story.decision, story.rests_on) == ("not shown", ())
        assert set(corpus.rests_on) | set(decision.rests_on) <= set(known)
        for sentence in (found.headline, corpus.words, decision.words, story.words, *(use.words for use in found.uses)):
            assert sentence[0].isupper()
            assert sentence.endswith(".")
            assert "{" not in sentence
        headlines.add(found.headline)
    assert len(headlines) == 9 + 3  # nine of the two questions, three where the model is in doubt


@pytest.mark.parametrize(
    ("changes", "headline"),
    [
        (
            {},
            "Yes, as far as tested: attention points at the words that decide, across the corpus and in single "
            "decisions.",
        ),
        (
            {"S13": "no"},
            "In part: across the corpus attention points at the words that decide, but it does not find what decided a "
            "single text.",
        ),
        (
            {"C2b": "no"},
            "In part: attention finds what decided a single text, but across the corpus it does not point at the words "
            "that decide.",
        ),
        (
            {"C8c": "no", "S6b": "no"},
            "No: attention does not point at the words that decide, neither across the corpus nor in single decisions.",
        ),
        (
            {"C2b": "not shown", "S6b": "not shown"},
            "Not shown: the evidence does not tell whether attention points at what decides.",
        ),
        (
            {"C1": "no", "S13": "no"},
            "The model itself is in doubt: words do not reliably push towards their own class. What decided a single "
            "text, right or wrong, attention does not find either.",
        ),
    ],
)
def test_headlines(changes: dict[str, Decision], headline: str) -> None:
    assert answer(verdicts(**{**ALL_YES, **changes})).headline == headline


def test_claims_that_say_they_do_not_know_are_not_heard_as_a_lean() -> None:
    """Both claims behind it say "too few words to tell": nothing may be said of where attention leans."""
    found = answer(verdicts(**{**ALL_YES, "C2b": "not shown", "C8c": "not shown", "S13": "no"}))
    assert found.question("corpus").decision == "not shown"
    assert "lean" not in found.headline
    assert found.headline.startswith("No: attention does not find what decided a single text; whether")


def test_the_same_is_joined_by_and_something_else_by_but() -> None:
    both = answer(verdicts(**ALL_YES)).question("corpus").words
    assert both == (
        "Words that belong to a class get larger attention scores than others that are as frequent and on unseen text "
        "they get more of the attention."
    )
    assert ", but on unseen text they do not" in answer(verdicts(**{**ALL_YES, "C8c": "no"})).question("corpus").words


def test_what_to_use_instead_rests_on_what_was_measured() -> None:
    assert answer(verdicts(**ALL_YES)).instead == ()
    words, decision = answer(verdicts(**{**ALL_YES, "C2b": "no", "S13": "no"})).instead
    assert words == "To explore the corpus, read polarity scores: what words push towards."
    assert decision.startswith("To explain one decision, read the contributions α·z")
    assert "`heedful erase` shows the provably smallest set that flips it." in decision
    assert len(answer(verdicts(C1="no", C2b="no", S6b="no", S13="no")).instead) == 1  # nothing sound to explore


def test_where_most_decisions_rest_on_no_part_of_their_text_nothing_is_said_of_decisions() -> None:
    """S13 counts the decisions that flip before everything is erased, S4 all of them."""

    def counted(claim: str, count: int) -> Verdict:
        return replace(verdict(claim, "yes"), estimate=Estimate(value=0.9, low=0.8, high=1.0, count=count))

    some = [found for found in verdicts(**ALL_YES) if found.claim != "S13"]
    few = answer([*some, counted("S13", 311), counted("S4", 1200)]).question("decision")
    assert few.decision == "not shown"
    assert few.words.endswith(
        " Only 311 of 1,200 decisions rest on a part of their text; of so few, nothing is said at large."
    )
    most = answer([*some, counted("S13", 900), counted("S4", 1200)]).question("decision")
    assert (most.decision, most.more.endswith("rests on no part of its text.")) == ("yes", True)
    every = answer([*some, counted("S13", 1200), counted("S4", 1200)]).question("decision")
    assert "decisions: what is left" not in every.words + every.more


def test_sentences_have_the_weights_in_a_hierarchical_model() -> None:
    found = answer(verdicts(**ALL_YES, J3b="yes"), unit="sentences")
    assert found.question("decision").words.startswith("The most attended sentences hold more of what decides")
    assert found.question("story").words.endswith("without the most attended sentence.")
    assert found.uses[1].words == "The sentences with the largest weights in a text are mostly those that decided it."


def test_a_hierarchical_model_has_no_weights_of_words_and_still_an_answer() -> None:
    known = {claim: decision for claim, decision in ALL_YES.items() if claim != "C8c"}
    found = answer(verdicts(**known)).question("corpus")
    assert (found.decision, found.rests_on) == ("yes", ("C1", "C2b"))


def test_the_answer_is_plain_data_and_speaks_of_known_claims() -> None:
    row = answer(verdicts(**ALL_YES)).row()
    assert set(row) == {"headline", "questions", "uses", "instead", "scope"}
    assert [question["name"] for question in row["questions"]] == ["corpus", "decision", "story"]
    assert {*SPEAKING, *STORY} <= set(CLAIMS)


@pytest.mark.parametrize("decision", ["no", "not shown"])
def test_a_model_that_is_not_shown_to_beat_guessing_is_not_explained(decision: Decision) -> None:
    found = answer(verdicts(M1=decision, **ALL_YES))
    assert found.headline.startswith("Not shown: the model is not shown to tell the classes apart better than guessing")
    assert {question.decision for question in found.questions} == {"not shown"}
    assert {question.rests_on for question in found.questions} == {("M1",)}
    assert {use.decision for use in found.uses} == {"not shown"}
    assert found.instead == ()
    assert answer(verdicts(M1="yes", **ALL_YES)) == answer(verdicts(**ALL_YES))


@pytest.mark.parametrize(
    ("gradient", "margin", "words"),
    [
        ("yes", "yes", "The gradient and the margin against the runner-up are better guides."),
        ("yes", "no", "The gradient is the better guide. The margin against the runner-up is no better guide."),
        ("no", "no", "The gradient and the margin against the runner-up are no better guides."),
        ("not shown", "yes", "The margin against the runner-up is the better guide."),
    ],
)
def test_better_guides_are_named(gradient: Decision, margin: Decision, words: str) -> None:
    found = answer(verdicts(**{**ALL_YES, "S5": gradient, "S14": margin})).question("decision")
    assert found.more == words
    assert found.rests_on == ("S6b", "S13", "S5", "S14")


def test_what_does_not_hold_of_the_decisions_for_every_class_is_no_yes() -> None:
    same = answer(verdicts(**ALL_YES), classes={"good": "yes", "bad": "yes"}).question("decision")
    assert (same.decision, "every class" in same.words + same.more) == ("yes", False)
    apart = answer(verdicts(**ALL_YES), classes={"good": "yes", "bad": "no"})
    assert apart.question("decision").decision == "not shown"
    assert apart.question("decision").words.endswith(
        "It is not the same of the decisions for every class: yes for “good”; no for “bad”."
    )
    assert apart.headline.endswith("is not shown. What decided for “good” it does find.")
    unsure = answer(verdicts(**ALL_YES), classes={"good": "yes", "bad": "not shown"}).question("decision")
    whole = answer(verdicts(**ALL_YES), classes={"good": "yes", "bad": "not shown"})
    assert whole.headline.endswith("single decisions. Of decisions for “bad” alone it is not shown.")
    few = answer(verdicts(**ALL_YES), classes={"good": "not shown", "bad": "not shown"})
    assert few.headline.endswith("single decisions. Of decisions for any one class alone it is not shown.")
    one = answer(verdicts(**ALL_YES), classes={"good": "not shown"})
    assert one.headline.endswith("single decisions. Of decisions for “good” alone it is not shown.")
    refuted = answer(verdicts(**{**ALL_YES, "S13": "no"}), classes={"good": "yes", "bad": "no"})
    assert refuted.headline.endswith("Decisions for “good” are an exception: what decided those it finds.")
    assert (unsure.decision, unsure.more.endswith("not shown for “bad”.")) == ("yes", True)


def test_the_answer_says_what_it_is_of() -> None:
    assert answer(verdicts(**ALL_YES), scope="One training.").scope == "One training."
    noted = answer(verdicts(**ALL_YES), note="Of 9 words 3 count.").question("corpus")
    assert (noted.words, noted.more) == (answer(verdicts(**ALL_YES)).question("corpus").words, "Of 9 words 3 count.")


EACH_TEXT = (
    "Each text is judged by itself, with weights of its own; what one attention for the whole corpus could do is "
    "another question."
)


@pytest.mark.parametrize(
    ("otherwise", "far", "words"),
    [
        (
            "yes",
            "yes",
            "For most texts other weights give exactly the same output without the most attended word and "
            "for most of them attention far from the model's own keeps it within .05.",
        ),
        (
            "no",
            "yes",
            "For most texts no weights give exactly the same output without the most attended word, but for most "
            "of them attention far from the model's own keeps it within .05.",
        ),
        (
            "not shown",
            "no",
            "Whether for most texts other weights give exactly the same output without the most attended word is not "
            "shown, but for most of them no attention far from the model's own keeps it within .05.",
        ),
    ],
)
def test_whether_another_story_can_be_told_is_what_leaving_the_most_attended_unit_out_says(
    otherwise: Decision, far: Decision, words: str
) -> None:
    found = answer(verdicts(**ALL_YES, J3b=otherwise, J3=far))
    story = found.question("story")
    assert (story.decision, story.rests_on) == (otherwise, STORY)
    assert (story.words, story.more) == (words, EACH_TEXT)
    assert found.headline == answer(verdicts(**ALL_YES)).headline  # is of the first two questions
    drawn = answer(verdicts(J3b=otherwise, J3=far), drawn="Of 9 texts 3 count.").question("story")
    assert (drawn.words, drawn.more) == (words, f"Of 9 texts 3 count. {EACH_TEXT}")


@pytest.mark.parametrize("whole", DECISIONS)
def test_what_one_attention_for_the_whole_corpus_could_do_is_said_beside_and_decides_nothing(whole: Decision) -> None:
    alone = answer(verdicts(J3b="no", J3="no")).question("story")
    found = answer(verdicts(J3b="no", J3="no", J4=whole)).question("story")
    assert (found.decision, found.rests_on) == ("no", ("J3b", "J3", "J4"))
    begin, _, end = found.more.partition("weights of its own. ")
    assert alone.words == found.words
    assert alone.more.startswith(begin)
    assert "another question" not in found.more
    assert end.startswith(
        {
            "yes": "One attention for the whole corpus could tell another story, too: ",
            "no": "One attention for the whole corpus could not: ",
            "not shown": "Whether one attention for the whole corpus could put most ",
        }[whole]
    )


@pytest.mark.parametrize(
    ("decision", "story", "may", "words"),
    [
        ("no", "yes", "no", "What does not explain a decision does not justify it."),
        ("no", "no", "no", "What does not explain a decision does not justify it."),
        ("no", "not shown", "no", "What does not explain a decision does not justify it."),
        ("yes", "yes", "no", "Other weights would justify it as well."),
        ("not shown", "yes", "no", "Other weights would justify it as well."),
        ("yes", "no", "yes", "The weights show what decided, and the same output needs the most attended word."),
        ("yes", "not shown", "not shown", "Whether other weights would justify it as well is not shown."),
        ("not shown", "no", "not shown", "What is not shown to explain a decision does not justify it."),
        ("not shown", "not shown", "not shown", "What is not shown to explain a decision does not justify it."),
    ],
)
def test_a_decision_is_justified_by_weights_that_explain_it_and_that_nothing_can_take_the_place_of(
    decision: Decision, story: Decision, may: Decision, words: str
) -> None:
    use = answer(verdicts(**{**ALL_YES, "S13": decision}, J3b=story, J3="yes")).uses[2]
    assert (use.purpose, use.decision, use.words) == ("justify a decision", may, words)


@pytest.mark.parametrize("width", [80, 100, 120])
def test_in_brief_the_answer_has_at_most_25_lines(width: int) -> None:
    """Every decision on every question, with all that can be said; its report stands last."""
    worth = "Test accuracy 82.6 % [80.8, 84.3] on 1,821 texts; always guessing the commonest class would give 49.9 %."
    places = {"run": Path("runs/one"), "report": Path("runs/one/report.html")}
    longest = 0
    for scores, texts, chance, leads, story in product(DECISIONS, repeat=5):
        known = {"C1": "yes", "C2b": scores, "C8c": texts, "S6b": chance, "S13": leads, "J3b": story, "J3": "yes"}
        found = [*verdicts(**known, J4="not shown", S5="no", S14="yes"), verdict("S4", "yes")]
        found = [
            replace(one, estimate=Estimate(value=0.5, low=0.4, high=0.6, count=300 if one.claim == "S13" else 1200))
            for one in found
        ]
        whole = answer(
            found, unit="sentences", classes={"negative": "yes", "positive": "no"}, scope="Of one.", note="N."
        )
        screen = Console(record=True, width=width, file=io.StringIO())
        page = Page(title="", headline="", answer=whole, worth=worth, places=places, notices=["n"])
        print_page(page, screen, everything=False)
        lines = screen.export_text().splitlines()
        assert lines[-1] == f"report {places['report']}"
        longest = max(longest, len(lines))
    assert 18 <= longest <= 25


@pytest.mark.parametrize(("story", "favours"), [("yes", "no"), ("no", "yes"), ("not shown", "not shown")])
def test_another_story_speaks_against_attention(story: Decision, favours: Decision) -> None:
    found = answer(verdicts(**ALL_YES, J3b=story))
    assert [question.for_attention for question in found.questions] == ["yes", "yes", favours]
    screen = Console(record=True, width=200, file=io.StringIO(), force_terminal=True)
    print_page(Page(title="", headline="", answer=found, sections=[]), screen)
    (line,) = [line for line in screen.export_text(styles=True).splitlines() if line.startswith("Could another")]
    colour = {"yes": "32", "no": "31", "not shown": "33"}[favours]
    assert line.endswith(f"\x1b[{colour}m{story}\x1b[0m")


def test_of_a_model_that_learned_nothing_no_other_story_is_told() -> None:
    found = answer(verdicts(M1="no", **ALL_YES, J3b="yes", J3="yes"))
    assert (found.question("story").decision, found.question("story").rests_on) == ("not shown", ("M1",))
    assert (found.uses[2].decision, found.instead) == ("not shown", ())
