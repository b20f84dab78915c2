"""Sentences written again, word by word, and unknown words letter by letter (a nested attention)."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.zoo.members.nested import Nested, pick
from heedful.zoo.networks.recurrent import Reader
from heedful.zoo.task import Examples, Looks, Network, Outcome

PAD = 0
UNKNOWN = 0
"""The word that stands for all that the vocabulary does not hold."""


class Correcting(Network):
    """Known words have vectors, unknown ones are read from their letters; sentences are read from words.

    Steps are the words, and then, word after word, `written` letters of each that is unknown. Letters are answered
    where the word is said to be unknown (in training: where it is).

    places: numbers by which both scores know step and place; 0 leaves them out.
    nested: without it the decoder of letters has its first state and nothing else, and that of words looks at nothing
        but the state that the encoder left.
    """

    def __init__(
        self, words: int, letters: int, size: int, hidden: int, *, written: int, places: int = 16, nested: bool = True
    ) -> None:
        super().__init__()
        self.words, self.letters, self.written = words, letters, written
        self.letter = nn.Embedding(letters, size, padding_idx=PAD)
        self.spelling, self.sentence = Reader(size, hidden), Reader(hidden, hidden)
        self.known, self.wrote = nn.Embedding(words, hidden), nn.Embedding(words, size)
        self.nested = Nested(hidden, hidden, hidden, hidden, hidden, places=places) if nested else None
        read = hidden if nested else 0
        self.cell, self.letter_cell = nn.GRUCell(size + read, hidden), nn.GRUCell(size + read, hidden)
        self.say, self.spell = (nn.Sequential(nn.Linear(hidden + read, hidden), nn.Tanh(), nn.Linear(hidden, count))
                                for count in (words, letters))  # fmt: skip
        self.begin = nn.Linear(hidden + read, hidden)
        self.first, self.first_letter = nn.Parameter(torch.zeros(size)), nn.Parameter(torch.zeros(size))

    def forward(self, examples: Examples, *, forced: bool = False, without: Looks | None = None) -> Outcome:
        """Inputs: letters [examples places letters], zeros where there is none, and known [examples places], the number
        of each word, or that of the unknown one."""
        source = examples.inputs["letters"]
        there = source != PAD
        mask = there.any(-1)
        spelt, spelled = self._spelling(source, there, mask)
        known = examples.inputs["known"].unsqueeze(-1)
        vectors = torch.where(known == UNKNOWN, spelled, self.known(known.squeeze(-1)))
        keys, state = self.sentence(vectors, mask)
        steps = examples.targets.shape[1] // (1 + self.written)
        told = examples.targets[:, :steps]
        hidden = None if not without else without.get("word")
        said, states, chosen, weights = self._write(keys, state, mask, told if forced else None, steps, hidden)
        rows = ((told if forced else said.argmax(-1)) == UNKNOWN) & (told >= 0)
        spelling = examples.targets[:, steps:].unflatten(1, (steps, self.written))
        hidden = without.get("letter") if without else None
        hidden = None if hidden is None else hidden.unflatten(1, (steps, self.written))[rows]
        letters, looks = self._spell(
            states[rows],
            *self._letters_of(spelt, there, rows, chosen),
            spelling[rows] if forced else None,
            hidden,
        )
        count = max(self.words, self.letters)
        all_letters = said.new_zeros(*rows.shape, self.written, count)
        all_letters[..., self.letters :] = -torch.inf
        all_letters[rows] = nn.functional.pad(letters, (0, count - self.letters), value=-torch.inf)
        said = nn.functional.pad(said, (0, count - self.words), value=-torch.inf)
        logits = torch.cat([said, all_letters.flatten(1, 2)], 1)
        if self.nested is None:
            return Outcome(logits=logits)
        within = said.new_zeros(*rows.shape, self.written, source.shape[2])
        within[rows] = looks
        return Outcome(logits=logits, weights={"word": weights, "letter": within.flatten(1, 2)})

    def _spelling(
        self,
        source: Int[Tensor, "examples places letters"],
        there: Bool[Tensor, "examples places letters"],
        mask: Bool[Tensor, "examples places"],
    ) -> tuple[Float[Tensor, "examples places letters hidden"], Float[Tensor, "examples places hidden"]]:
        """Of all words, the annotations of their letters and the vector of the word."""
        letters, words = self.spelling(self.letter(source[mask]), there[mask])
        spelt = letters.new_zeros(*source.shape, letters.shape[-1])
        vectors = letters.new_zeros(*mask.shape, letters.shape[-1])
        spelt[mask], vectors[mask] = letters, words
        return spelt, vectors

    def _write(
        self,
        keys: Float[Tensor, "examples places hidden"],
        state: Float[Tensor, "examples hidden"],
        mask: Bool[Tensor, "examples places"],
        told: Int[Tensor, "examples steps"] | None,
        steps: int,
        without: Bool[Tensor, "examples steps places"] | None,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Logits of words, what letters begin from, the place that was looked at, and the weights."""
        given, weights = self.first.expand(len(keys), -1), torch.zeros_like(mask, dtype=keys.dtype)
        said, states, looks = [], [], []
        for step in range(steps):
            if self.nested is None:
                state = held = self.cell(given, state)
            else:
                readable = mask if without is None else mask & ~without[:, step]
                read = self.nested.look_at_words(state, keys, mask=readable, step=step)
                weights = read.weights
                state = self.cell(torch.cat([given, read.context], 1), state)
                held = torch.cat([state, read.context], 1)
            said.append(self.say(held))
            states.append(held)
            looks.append(weights)
            wrote = said[-1].argmax(-1) if told is None else told[:, step].clamp(min=0)
            given = self.wrote(wrote)
        alpha = torch.stack(looks, 1)
        return torch.stack(said, 1), torch.stack(states, 1), alpha.argmax(-1), alpha

    def _letters_of(
        self,
        spelt: Float[Tensor, "examples places letters hidden"],
        there: Bool[Tensor, "examples places letters"],
        rows: Bool[Tensor, "examples steps"],
        chosen: Int[Tensor, "examples steps"],
    ) -> tuple[Float[Tensor, "rows letters hidden"], Bool[Tensor, "rows letters"]]:
        """The letters of the words that were looked at where an unknown word is written."""
        example = rows.nonzero()[:, 0]
        return pick(spelt[example], chosen[rows], 3), pick(there[example], chosen[rows], 2)

    def _spell(
        self,
        held: Float[Tensor, "rows features"],
        keys: Float[Tensor, "rows letters hidden"],
        mask: Bool[Tensor, "rows letters"],
        told: Int[Tensor, "rows written"] | None,
        without: Bool[Tensor, "rows written letters"] | None,
    ) -> tuple[Float[Tensor, "rows written classes"], Float[Tensor, "rows written letters"]]:
        state, given = self.begin(held).relu(), self.first_letter.expand(len(held), -1)
        weights = torch.zeros_like(mask, dtype=keys.dtype)
        said, looks = [], []
        for step in range(self.written):
            if self.nested is None:
                state = seen = self.letter_cell(given, state)
            else:
                readable = mask if without is None else mask & ~without[:, step]
                read = self.nested.look_at_letters(state, keys, mask=readable, step=step)
                weights = read.weights
                state = self.letter_cell(torch.cat([given, read.context], 1), state)
                seen = torch.cat([state, read.context], 1)
            said.append(self.spell(seen))
            looks.append(weights)
            wrote = said[-1].argmax(-1) if told is None else told[:, step].clamp(min=0)
            given = self.letter(wrote)
        return torch.stack(said, 1), torch.stack(looks, 1)
