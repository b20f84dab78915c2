"""What a request may hold, and what an answer holds: the description (OpenAPI) is made of these."""

from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from heedful.studies.attack import SHUFFLES
from heedful.studies.explain import RANKINGS
from heedful.web.asking import ALONE

MOST_LETTERS = 2**24
"""Before it the body is too long, whose limit `heedful serve --words` raises."""
MOST_SEED = 2**31 - 1

Probabilities = Annotated[dict[str, float], Field(description="By class.")]
Ranking = Literal["attention", "gradient", "product", "polarity", "margin", "random", "alone"]
assert set(get_args(Ranking)) == {*RANKINGS, ALONE}


class Form(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class TextForm(Form):
    """A text, and the model that shall read it."""

    text: Annotated[str, Field(min_length=1, max_length=MOST_LETTERS)]
    model: Annotated[str, Field(max_length=300, description="A name of /api/v1/runs; empty: the first.")] = ""


class EraseForm(TextForm):
    """Units to erase, by their positions, and rankings to follow until the decision flips."""

    positions: Annotated[list[Annotated[int, Field(ge=0, le=MOST_LETTERS)]], Field(max_length=MOST_LETTERS)] = []
    rankings: Annotated[
        list[Ranking] | None, Field(max_length=10, description="Without: all that apply. An empty list: none.")
    ] = None
    seed: Annotated[int, Field(ge=0, le=MOST_SEED, description="Draws the random ranking.")] = 0


class AdversaryForm(TextForm):
    """What other weights must keep to."""

    epsilon: Annotated[float, Field(ge=0, lt=1, description="How far the output may move, in total variation.")] = 0.0
    floor: Annotated[float, Field(ge=0, lt=1, description="The least weight of every unit.")] = 0.0
    without_top: Annotated[int, Field(ge=0, le=MOST_LETTERS, description="So many most attended get nothing.")] = 0
    shuffles: Annotated[int, Field(ge=1, le=1000)] = SHUFFLES
    seed: Annotated[int, Field(ge=0, le=MOST_SEED, description="Draws shuffles.")] = 0


class Token(BaseModel):
    """A unit of the text. Of other models than heedful's only `alone` is known."""

    token: str
    start: int
    end: int
    known: Annotated[bool, Field(description="Whether the vocabulary holds it.")]
    attention_score: Annotated[float | None, Field(description="a; null: no weight at all.")] = None
    attention_weight: Annotated[float | None, Field(description="α")] = None
    contribution: Annotated[float | None, Field(description="α·z towards the decision, less the other classes.")] = None
    push: Annotated[float | None, Field(description="z towards the decision, less the mean of the others.")] = None
    polarity: Annotated[dict[str, float] | None, Field(description="z by class.")] = None
    alone: Annotated[float | None, Field(description="How far the decision's probability falls without it.")] = None


class Word(BaseModel):
    """A word of a hierarchical model, with its weight within its sentence."""

    word: str
    start: int
    end: int
    sentence: int
    weight: float


class Said(BaseModel):
    model: str
    predicted: str
    probabilities: Probabilities


class Explained(Said):
    unit: str
    text: str
    tokens: list[Token]
    words: list[Word] | None = None


class After(BaseModel):
    """What is said when some units are gone."""

    positions: list[int]
    erased: int
    predicted: str
    flipped: bool
    probabilities: Probabilities


class Curve(BaseModel):
    """The probability of the original decision after so many erasures."""

    erased: list[int]
    probability: list[float]
    flipped: Annotated[list[bool], Field(description="Whether the decision is another one then.")]


class Course(BaseModel):
    ranking: str
    order: list[int]
    erased: Annotated[int | None, Field(description="How many go before the decision flips; null: it never does.")]
    flipped_to: str | None
    curve: Curve


class Smallest(BaseModel):
    positions: list[int] | None
    flipped_to: str | None


class Erased(Said):
    level: Annotated[str, Field(description="How units go: attention, delete or mask.")]
    after: After
    rankings: list[Course]
    units: list[str] | None = None
    minimum: Smallest | None = None
    unknown_words: int | None = None
    tied_when_all_is_erased: bool | None = None
    words: list[Word] | None = None


class Minimum(Said):
    units: int
    erased: int | None
    positions: list[int] | None
    flipped_to: str | None
    verified: Annotated[bool | None, Field(description="Whether plain erasure of the set was seen to flip.")]
    after: After | None


class Asked(BaseModel):
    words: str
    epsilon: float
    floor: float
    without_top: int


class OtherUnit(BaseModel):
    unit: str
    attention_weight: float
    other_weight: float | None
    push: float


class Shuffled(BaseModel):
    shuffles: int
    tvd_median: float | None
    tvd_mean: float | None
    flips: float | None


class Adversary(Said):
    text: str
    asked: Asked
    jsd: Annotated[float | None, Field(description="Nats, at most log 2; null: no such weights exist.")]
    jsd_upper: float | None
    exact: bool | None
    tvd: float | None
    other_probabilities: Probabilities | None
    units: list[OtherUnit]
    shuffled: Shuffled


class TokenTable(BaseModel):
    model: str
    total: int
    columns: list[str]
    rows: list[dict[str, Any]]


class Example(BaseModel):
    text: str
    label: str
    why: str


class Served(BaseModel):
    name: str
    title: str
    class_names: list[str]
    unit: str
    rankings: list[str]
    missing: Annotated[dict[str, str], Field(description="What does not apply to it, and why.")]
    examples: list[Example]
    notice: str
    facts: dict[str, Any]


class Bounds(BaseModel):
    words: int
    body_bytes: int


class Runs(BaseModel):
    heedful: Annotated[str, Field(description="The version.")]
    runs: list[Served]
    limits: Bounds


class Problem(BaseModel):
    """Why a request was refused."""

    error: str
