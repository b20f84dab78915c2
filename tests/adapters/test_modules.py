"""An LSTM with attention of one's own as a subject: what it says, what is left without tokens, and its trace."""

import re
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import heedful
from heedful.adapters.asking import AskedReading, SubjectError
from heedful.adapters.modules import ModuleSubject, Parts, TracedReading
from heedful.errors import InputError, TraceError, UnknownName
from heedful.subjects import ATTENTION, DELETE, MASK, Reading
from tests.oracles import erasure as oracle
from tests.oracles.reading import parts as parts_of

TEXTS = ["a good film", "dull", "not a good film at all", "a fine one", "good good"]
NAMES = ("no", "perhaps", "yes")
PARTS = Parts(attention="weigh", values="lstm", readout="readout")
MASKED = 1


def encode(text: str) -> list[tuple[int, tuple[int, int]]]:
    """Words by white space; the number of a word is how long it is and what it begins with."""
    return [(2 + (7 * len(word[0]) + ord(word[0][0])) % 48, word.span()) for word in re.finditer(r"\S+", text)]


class Attentive(nn.Module):
    """softmax over the scores of the LSTM's states, and a linear readout of their weighted sum."""

    def __init__(self, outputs: int = 3, *, bent: bool = False, batch_first: bool = True, bias: bool = True) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 4)
        self.lstm = nn.LSTM(4, 3, batch_first=batch_first, bidirectional=True)
        self.dropout = nn.Dropout(0.5)
        self.score = nn.Linear(6, 1)
        self.weigh = nn.Softmax(dim=1)
        self.readout = nn.Linear(6, outputs, bias=bias)
        self.bent = bent

    def forward(self, numbers: Tensor) -> Tensor:
        hidden, _ = self.lstm(self.embedding(numbers))
        pooled = (self.weigh(self.score(self.dropout(hidden))) * hidden).sum(1)
        told: Tensor = self.readout(torch.tanh(pooled) if self.bent else pooled)
        return told


def made(outputs: int = 3, **how: Any) -> Attentive:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        module = Attentive(outputs, **how)
        with torch.no_grad():
            for values in module.parameters():
                values.mul_(3)
    return module


def a_subject(module: nn.Module | None = None, **how: Any) -> ModuleSubject:
    given: dict[str, Any] = {"class_names": NAMES, "parts": PARTS, "mask": MASKED} | how
    found = heedful.subject(module or made(), encode, **given)
    assert isinstance(found, ModuleSubject)
    return found


def said(module: nn.Module, numbers: list[int]) -> Tensor:
    """What the module says of these numbers, called plainly."""
    module.eval()
    with torch.no_grad():
        told: Tensor = module(torch.tensor([numbers]))[0].double().softmax(0)
    return told


def numbers_of(text: str) -> list[int]:
    return [number for number, _ in encode(text)]


def test_a_module_says_what_it_says_when_called_plainly() -> None:
    reading = a_subject().read(TEXTS)
    expected = torch.stack([said(made(), numbers_of(text)) for text in TEXTS])
    torch.testing.assert_close(reading.probabilities, expected, rtol=0, atol=1e-6)
    assert list(reading.units.shown[:3]) == ["a", "good", "film"]
    assert reading.class_names == NAMES


def test_the_trace_is_the_forward_pass() -> None:
    """Its weights sum to one, and its logits are those of the module, which from_arrays proves once more."""
    module = made()
    trace = a_subject(module).trace(TEXTS)
    module.eval()
    with torch.no_grad():
        logits = torch.cat([module(torch.tensor([numbers_of(text)])) for text in TEXTS]).double()
    torch.testing.assert_close(trace.logits, logits, rtol=0, atol=1e-6)
    assert trace.units == [word for text in TEXTS for word in text.split()]
    assert trace.class_names == NAMES


@pytest.mark.parametrize("outputs", [1, 3])
def test_erased_attention_is_exact(outputs: int) -> None:
    module, names = made(outputs), NAMES if outputs == 3 else ("no", "yes")
    reading = a_subject(module, class_names=names).read(TEXTS)
    assert isinstance(reading, TracedReading)
    assert reading.ways == (ATTENTION, DELETE, MASK)
    gone = torch.rand(int(reading.units.offsets[-1]), generator=torch.Generator().manual_seed(1)) < 0.5
    decided = reading.decide(torch.arange(len(TEXTS)), gone, ATTENTION).tolist()
    for row, decision in enumerate(decided):
        positions = gone[reading.trace.instance(row)].nonzero().squeeze(1).tolist()
        assert decision == oracle.decision(*parts_of(reading.trace, row), positions)
    nothing = torch.zeros_like(gone)
    asked = reading.without(torch.arange(len(TEXTS)), nothing, DELETE)
    torch.testing.assert_close(asked, reading.probabilities, rtol=0, atol=1e-6)


@pytest.mark.parametrize("parts", [PARTS, None])
def test_deleted_and_masked_tokens_are_read_again(parts: Parts | None) -> None:
    reading, module = a_subject(parts=parts).read(TEXTS), made()
    gone = torch.rand(int(reading.units.offsets[-1]), generator=torch.Generator().manual_seed(2)) < 0.4
    gone[3] = True  # the only token of the second text
    deleted, masked = (reading.without(torch.arange(len(TEXTS)), gone, how) for how in (DELETE, MASK))
    for row, text in enumerate(TEXTS):
        marks = gone[int(reading.units.offsets[row]) : int(reading.units.offsets[row + 1])].tolist()
        numbers = numbers_of(text)
        left = [number for number, out in zip(numbers, marks, strict=True) if not out]
        torch.testing.assert_close(deleted[row], said(module, left or [0]), rtol=0, atol=1e-6)
        filled = [MASKED if out else number for number, out in zip(numbers, marks, strict=True)]
        torch.testing.assert_close(masked[row], said(module, filled), rtol=0, atol=1e-6)
    assert torch.equal(reading.decide(torch.arange(len(TEXTS)), gone, DELETE), deleted.argmax(1))


def test_without_parts_or_mask_there_are_fewer_ways() -> None:
    assert a_subject(parts=None).read(TEXTS).ways == (DELETE, MASK)
    assert isinstance(a_subject(parts=None).read(TEXTS), AskedReading)
    bare: Reading = a_subject(parts=None, mask=None).read(TEXTS)
    assert bare.ways == (DELETE,)
    with pytest.raises(UnknownName, match=r"no way to take units away 'attention'.*Known: delete"):
        bare.without(torch.tensor([1]), torch.tensor([True]), ATTENTION)
    with pytest.raises(SubjectError, match="A trace of Attentive needs its parts"):
        a_subject(parts=None).trace(TEXTS)


def test_a_readout_that_is_not_affine_is_refused() -> None:
    with pytest.raises(TraceError, match=r"logits are not those of the trace: .*affine in the pooled vector"):
        a_subject(made(bent=True)).read(TEXTS)


def test_a_function_may_give_what_a_part_puts_out() -> None:
    module = made()

    def weights(numbers: Tensor) -> Tensor:
        states: Tensor = module.lstm(module.embedding(numbers))[0]
        told: Tensor = module.score(states).squeeze(2).softmax(1)
        return told

    given = Parts(attention=weights, values=lambda numbers: module.lstm(module.embedding(numbers)), readout="readout")
    told, named = a_subject(module, parts=given).trace(TEXTS), a_subject(module).trace(TEXTS)
    torch.testing.assert_close(told.attention_weights, named.attention_weights, rtol=0, atol=1e-6)
    torch.testing.assert_close(told.polarity_scores, named.polarity_scores, rtol=0, atol=1e-6)


def wrong(**parts: Any) -> Parts:
    return Parts(**{"attention": "weigh", "values": "lstm", "readout": "readout"} | parts)


def failing(_: Tensor) -> Tensor:
    raise KeyError("weights")


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        (wrong(attention="wiegh"), r"no part of the module 'wiegh'\. Did you mean 'weigh'\?"),
        (wrong(values="lstn"), r"Did you mean 'lstm'\?"),
        (wrong(readout="read_out"), r"Did you mean 'readout'\?"),
        (wrong(readout="lstm"), r"The readout 'lstm' must be a linear layer \(nn\.Linear\); it is LSTM"),
        (wrong(attention="lstm"), r"must put out weights \[1, 1\] and vectors \[1, 1, 6\]; got \[1, 1, 6\]"),
        (wrong(values="embedding"), r"vectors \[1, 1, 6\]; got \[1, 1, 1\] and \[1, 1, 4\]"),
        (wrong(attention=failing), r"The function for a part .* failed on token numbers: KeyError: 'weights'"),
        (wrong(attention=lambda numbers: numbers.tolist()), r"must put out a tensor; got list"),
        (wrong(attention=lambda numbers: numbers.float()), r"attention_weights must sum to one"),
    ],
)
def test_parts_that_are_none_are_refused_by_their_sentence(parts: Parts, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        a_subject(parts=parts).read(["dull", "a film"])


def test_a_part_that_is_silent_is_refused() -> None:
    module = made()
    module.add_module("unused", nn.Linear(1, 1))
    with pytest.raises(SubjectError, match="The part 'unused' put nothing out while the module read a text"):
        a_subject(module, parts=wrong(attention="unused")).read(TEXTS)


def test_a_module_that_mixes_texts_is_refused() -> None:
    """The axes of an LSTM that takes time first: a batch is read as one long text."""
    with pytest.raises(SubjectError, match=r"says something else of a text alone than beside another.*order of axes"):
        a_subject(made(batch_first=False), parts=None).read(["a film", "good film"])


def test_a_module_that_is_random_is_refused() -> None:
    class Dice(nn.Module):
        def forward(self, numbers: Tensor) -> Tensor:
            return torch.randn(len(numbers), 3)

    with pytest.raises(SubjectError, match="Dice says something else of the same text when it is asked again"):
        a_subject(Dice(), parts=None).read(TEXTS)


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        (
            lambda numbers: numbers.sum(1),
            r"must give logits \[texts, classes\], a row for each text, here 1; got \[1\]",
        ),
        (lambda numbers: (numbers, numbers), "got tuple"),
        (lambda numbers: torch.zeros(len(numbers), 2), r"expected 1 × 3, got 1 × 2"),
        (lambda numbers: torch.full((len(numbers), 3), torch.nan), "must be finite; it holds NaN"),
        (lambda numbers: numbers[5], "failed on 1 text of 3 pieces: IndexError"),
    ],
)
def test_what_is_no_logits_is_refused_by_its_sentence(told: Any, sentence: str) -> None:
    class Wrong(nn.Module):
        def forward(self, numbers: Tensor) -> Any:
            return told(numbers)

    with pytest.raises(SubjectError, match=sentence):
        a_subject(Wrong(), parts=None).read(TEXTS)


@pytest.mark.parametrize(
    ("tokenizer", "sentence"),
    [
        (lambda text: text.split(), r"The tokenizer of Attentive failed to give a list of \(number, \(start, end\)\)"),
        (lambda _: None, "The tokenizer of Attentive failed"),
        (lambda _: [], r"A text needs at least one word; number 0 .* has none"),
    ],
)
def test_a_tokenizer_that_is_none_is_refused_by_its_sentence(tokenizer: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        heedful.subject(made(), tokenizer, class_names=NAMES).read(TEXTS)


def test_a_module_needs_a_tokenizer_and_class_names() -> None:
    for given in ({"class_names": NAMES}, {"tokenizer": encode}):
        with pytest.raises(SubjectError, match=r"A torch module \(Attentive\) needs class_names and a tokenizer"):
            heedful.subject(made(), **given)


def test_the_module_is_left_as_it_was() -> None:
    module = made().train()
    module.lstm.eval()
    before = {name: values.clone() for name, values in module.state_dict().items()}
    reading = a_subject(module).read(TEXTS)
    reading.without(torch.tensor([0]), torch.tensor([True, False, False]), DELETE)
    assert all(torch.equal(values, before[name]) for name, values in module.state_dict().items())
    assert [part.training for part in (module, module.lstm, module.dropout)] == [True, False, True]
    assert not any(part._forward_hooks for part in module.modules())


@pytest.mark.parametrize(
    ("places", "why"),
    [
        ([(0, 4), (4, 90)], r"of 11 characters, one stands at \(4, 90\) and the one before it ends at 4\."),
        ([(5, 9), (0, 4)], r"one stands at \(0, 4\) and the one before it ends at 9\."),
        ([(0, 6), (4, 9)], r"one stands at \(4, 9\) and the one before it ends at 6\."),
        ([(4, 2)], r"one stands at \(4, 2\)"),
    ],
)
def test_tokens_stand_in_their_text_one_after_the_other(places: list[tuple[int, int]], why: str) -> None:
    subject = heedful.subject(Attentive(), lambda _: [(2, place) for place in places], class_names=["a", "b", "c"])
    with pytest.raises(SubjectError, match=why):
        subject.read(["a good film"])
