"""A corpus beside the row that a paper prints for it, and why the two differ."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.analysis.tokens import AS_PRINTED, token_groups, training_counts
from heedful.studies import serrano2019_corpora, sun2020_facts
from heedful.text.corpus import Corpus, Split
from heedful.text.ragged import segment_sum
from heedful.text.tokenize import sentence_starts

FEW = 2_000
"""Documents in which sentences are counted; counting all of a large corpus would take minutes."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """One column of a paper's table: what it is, ours, theirs, and the reason for a difference."""

    column: str
    ours: str
    paper: str
    why: str | None = None

    @property
    def same(self) -> bool:
        return self.ours == self.paper


def beside_the_paper(corpus: Corpus) -> dict[str, Any] | None:
    """The corpus and Table 1 of the paper that uses it, or uses what it stands for; None for any other corpus."""
    if corpus.name in sun2020_facts.TABLE_1:
        return _answer("Sun & Lu 2020, Table 1", _sun_lines(corpus), sun2020_facts.WHAT_DIFFERS.get(corpus.name))
    meant = serrano2019_corpora.STANDS_FOR.get(corpus.name, corpus.name)
    if meant in serrano2019_corpora.TABLE_1:
        title = f"Serrano & Smith 2019, Table 1, {meant}"
        return _answer(title, _serrano_lines(corpus, meant), serrano2019_corpora.WHAT_DIFFERS.get(corpus.name))
    return None


def _answer(title: str, lines: Iterator[Line], remark: str | None) -> dict[str, Any]:
    found = list(lines)
    differ = any(not line.same for line in found)
    return {
        "table": title,
        "columns": [{**asdict(line), "same": line.same} for line in found],
        "remark": remark if differ else None,
    }


def _sun_lines(corpus: Corpus) -> Iterator[Line]:
    row = sun2020_facts.TABLE_1[corpus.name]
    splits = corpus.splits()
    tokens = _mean([split.lengths for split in splits.values()])
    yield Line(column="mean length", ours=f"{tokens:.0f}", paper=str(row.mean_length))
    everything = len(corpus.vocabulary) - 1 + len(_held_out_words(corpus))
    yield Line(
        column="vocabulary",
        ours=f"{len(corpus.vocabulary) - 1:,}",
        paper=f"{row.vocabulary:,}",
        why=f"Ours is the training split's; of all three splits, as the paper takes it: {everything:,}.",
    )
    for name, split in splits.items():
        counts = split.labels.bincount(minlength=corpus.classes).tolist()
        yield Line(
            column=f"{name}: {'/'.join(corpus.class_names)}",
            ours="/".join(str(count) for count in counts),
            paper="/".join(str(row.sizes[name][label]) for label in corpus.class_names),
            why="The files of the data folder do not have as many texts of each class.",
        )
    yield _group_line(corpus)


def _group_line(corpus: Corpus) -> Line:
    """The sizes of the groups of tokens beside the supplement's Table 1."""
    paper = sun2020_facts.GROUP_SIZES[corpus.name]
    groups = Counter(token_groups(training_counts(corpus), corpus.class_names, AS_PRINTED))
    return Line(
        column=f"tokens: {'/'.join(paper)}",
        ours="/".join(str(groups[group]) for group in paper),
        paper="/".join(str(size) for size in paper.values()),
        why="The paper prints no thresholds for more than two classes." if corpus.classes > 2 else None,
    )


def _serrano_lines(corpus: Corpus, meant: str) -> Iterator[Line]:
    row = serrano2019_corpora.TABLE_1[meant]
    sentences = sentence_counts(corpus)
    counted = f"Counted in the first {len(sentences):,} training texts." if len(sentences) == FEW else None
    yield _spread("words", word_counts(corpus), float(row.words), float(row.words_deviation), 0)
    yield _spread("sentences", sentences, row.sentences, row.sentences_deviation, 1, counted)
    yield Line(column="train + dev", ours=f"{len(corpus.train) + len(corpus.dev):,}", paper=f"{row.training:,}")
    yield Line(column="test", ours=f"{len(corpus.test):,}", paper=f"{row.test:,}")
    yield Line(column="classes", ours=str(corpus.classes), paper=str(row.classes))


def _spread(
    column: str, values: torch.Tensor, mean: float, deviation: float, digits: int, why: str | None = None
) -> Line:
    ours = f"{float(values.mean()):.{digits}f} ± {float(values.std()):.{digits}f}"
    return Line(column=column, ours=ours, paper=f"{mean:.{digits}f} ± {deviation:.{digits}f}", why=why)


def _mean(counts: list[torch.Tensor]) -> float:
    return float(torch.cat(counts).double().mean())


def word_counts(corpus: Corpus) -> Float[Tensor, " documents"]:
    """Words of every document of all splits: tokens with a letter or a digit; an unknown token counts as such."""
    spoken = torch.tensor([any(map(str.isalnum, token)) for token in corpus.vocabulary.tokens]).double()
    return torch.cat([segment_sum(spoken[split.tokens.numbers], split.offsets) for split in corpus.splits().values()])


def sentence_counts(corpus: Corpus) -> Float[Tensor, " documents"]:
    """Sentences of the first training documents."""
    train = corpus.train
    starts = [sentence_starts(train.texts[row], train.spans(row)) for row in range(min(FEW, len(train)))]
    return torch.tensor([len(first) for first in starts]).double()


def _held_out_words(corpus: Corpus) -> set[str]:
    """The tokens that dev and test have and the training split has not."""
    return {token for split in (corpus.dev, corpus.test) for token in _unknown(corpus, split)}


def _unknown(corpus: Corpus, split: Split) -> Iterator[str]:
    places = (split.tokens.numbers == 0).nonzero().squeeze(1)
    documents = torch.searchsorted(split.offsets, places, right=True) - 1
    spans = split.tokens.spans[places].tolist()
    for document, (start, end) in zip(documents.tolist(), spans, strict=True):
        token = split.texts[document][start:end]
        yield token.lower() if corpus.tokenizer.lowercase else token
