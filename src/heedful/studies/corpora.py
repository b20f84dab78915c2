"""What a corpus holds: sizes, lengths, classes, and the row that a paper prints for it, with why the two differ."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import pandas as pd
import torch

from heedful.analysis.tokens import AS_PRINTED, token_groups, training_counts
from heedful.papers import serrano2019, sun2020
from heedful.studies.measures import called
from heedful.text.corpus import Corpus, Split
from heedful.text.ragged import segment_sum
from heedful.text.tokenize import sentence_starts

FEW = 2_000
"""Documents in which sentences are counted; counting all of a large corpus would take minutes."""

COLUMNS = ("words", "words_deviation", "sentences", "sentences_deviation", "training", "test", "classes")
"""Of Table 1 of Serrano & Smith 2019."""

Line = dict[str, Any]
"""One column of a paper's table: what it is, ours, the paper's, the reason for a difference, whether they are equal."""


def corpus_statistics(corpus: Corpus) -> dict[str, Any]:
    """Sizes and lengths, what was noticed while reading, and the row of the paper's Table 1 where there is one."""
    return {
        "corpus": corpus.name,
        "classes": list(corpus.class_names),
        "vocabulary": len(corpus.vocabulary),
        "splits": {name: _sizes(split, corpus.classes) for name, split in corpus.splits().items()},
        "notices": list(corpus.notices),
        "paper": beside_the_paper(corpus),
    }


def _sizes(split: Split, classes: int) -> dict[str, Any]:
    return {
        "texts": len(split),
        "per_class": split.labels.bincount(minlength=classes).tolist(),
        "mean_length": round(float(split.lengths.double().mean()), 1),
        "longest": int(split.lengths.max()),
        "unknown_tokens": round(float((split.tokens.numbers == 0).double().mean()), 4),
    }


def beside_the_paper(corpus: Corpus) -> dict[str, Any] | None:
    """The corpus and Table 1 of the paper that uses it, or uses what it stands for; None for any other corpus."""
    meant = serrano2019.counterpart(corpus.name)
    if corpus.name in sun2020.TABLE_1:
        title, lines, remarks = "Sun & Lu 2020, Table 1", [*_sun_lines(corpus)], sun2020.WHAT_DIFFERS
    elif meant:
        title, lines = f"Serrano & Smith 2019, Table 1, {meant}", [*_serrano_lines(corpus, meant)]
        remarks = serrano2019.WHAT_DIFFERS
    else:
        return None
    differ = any(not line["same"] for line in lines)
    return {"table": title, "columns": lines, "remark": remarks.get(corpus.name) if differ else None}


def _line(column: str, ours: str, paper: str, why: str | None = None) -> Line:
    return {"column": column, "ours": ours, "paper": paper, "why": why, "same": ours == paper}


def _sun_lines(corpus: Corpus) -> Iterator[Line]:
    row, splits = sun2020.TABLE_1[corpus.name], corpus.splits()
    tokens = torch.cat([split.lengths for split in splits.values()]).double().mean()
    yield _line("mean length", f"{float(tokens):.0f}", str(row.mean_length))
    known = len(corpus.vocabulary) - 1
    words = known + len({word for split in (corpus.dev, corpus.test) for word in _unknown(corpus, split)})
    why = f"Ours is the training split's; of all three splits, as the paper takes it: {words:,}."
    yield _line("vocabulary", f"{known:,}", f"{row.vocabulary:,}", why)
    for name, split in splits.items():
        ours = "/".join(map(str, split.labels.bincount(minlength=corpus.classes).tolist()))
        paper = "/".join(str(row.sizes[name][label]) for label in corpus.class_names)
        why = "The files of the data folder do not have as many texts of each class."
        yield _line(f"{name}: {'/'.join(corpus.class_names)}", ours, paper, why)
    sizes = sun2020.GROUP_SIZES[corpus.name]
    groups = Counter(token_groups(training_counts(corpus), corpus.class_names, AS_PRINTED))
    unsaid = "The paper prints no thresholds for more than two classes." if corpus.classes > 2 else None
    ours, paper = "/".join(str(groups[group]) for group in sizes), "/".join(map(str, sizes.values()))
    yield _line(f"tokens: {'/'.join(sizes)}", ours, paper, unsaid)


def _unknown(corpus: Corpus, split: Split) -> Iterator[str]:
    """The tokens of a split that the training split has not."""
    places = (split.tokens.numbers == 0).nonzero().squeeze(1)
    documents = torch.searchsorted(split.offsets, places, right=True) - 1
    for document, (start, end) in zip(documents.tolist(), split.tokens.spans[places].tolist(), strict=True):
        token = split.texts[document][start:end]
        yield token.lower() if corpus.tokenizer.lowercase else token


def _serrano_lines(corpus: Corpus, meant: str) -> Iterator[Line]:
    ours, paper = (_cells(row, "{} ± {}") for row in (_measures(corpus), asdict(serrano2019.TABLE_1[meant])))
    counted = f"Counted in the first {FEW:,} training texts." if len(corpus.train) >= FEW else None
    for name, value in ours.items():
        column = "train + dev" if name == "training" else name
        yield _line(column, value, paper[name], counted if name == "sentences" else None)


def _cells(row: Mapping[str, Any], spread: str, whose: str = "") -> dict[str, str]:
    """The columns of Table 1 as they are printed, a mean and its deviation in one cell."""
    own = {name: row[whose + name] for name in COLUMNS}
    words = spread.format(f"{own['words']:.0f}", f"{own['words_deviation']:.0f}")
    sentences = spread.format(f"{own['sentences']:.1f}", f"{own['sentences_deviation']:.1f}")
    counts = {name: f"{own[name]:,.0f}" for name in ("training", "test", "classes")}
    return {"words": words, "sentences": sentences, **counts}


def _measures(corpus: Corpus) -> dict[str, Any]:
    """`COLUMNS` of a corpus: words and sentences of a text, texts to train and select on and to test, classes."""
    splits, train = corpus.splits().values(), corpus.train
    # Tokens with a letter or a digit; an unknown token counts as such.
    spoken = torch.tensor([any(map(str.isalnum, token)) for token in corpus.vocabulary.tokens]).double()
    words = torch.cat([segment_sum(spoken[split.tokens.numbers], split.offsets) for split in splits])
    few = [sentence_starts(train.texts[row], train.spans(row)) for row in range(min(FEW, len(train)))]
    sentences = torch.tensor([len(starts) for starts in few]).double()
    spreads = [float(number) for counts in (words, sentences) for number in (counts.mean(), counts.std())]
    sizes = len(train) + len(corpus.dev), len(corpus.test), corpus.classes
    return dict(zip(COLUMNS, [*spreads, *sizes], strict=True))


def table_1(corpora: Mapping[str, Corpus]) -> pd.DataFrame:
    """Table 1 of Serrano & Smith 2019, a row per data set: ours, and as paper_… what it is or stands for.

    Words are tokens with a letter or a digit; sentences are counted in the first 2,000 training texts.
    """
    return pd.DataFrame([_row(name, corpus) for name, corpus in corpora.items()])


def _row(name: str, corpus: Corpus) -> dict[str, object]:
    meant = serrano2019.counterpart(name)
    paper = asdict(serrano2019.TABLE_1[meant]) if meant else dict.fromkeys(COLUMNS)
    printed = {f"paper_{column}": paper[column] for column in COLUMNS}
    return {"dataset": name, **_measures(corpus), "stands_for": meant, **printed}


def table_1_as_printed(table: pd.DataFrame) -> pd.DataFrame:
    """The arrangement of the paper, each number before the paper's."""
    rows = ({str(name): value for name, value in row.items()} for row in table.to_dict("records"))
    return pd.DataFrame([_printed(row) for row in rows])


def _printed(row: Mapping[str, Any]) -> dict[str, str]:
    ours = _cells(row, "{} ({})")
    paper = _cells(row, "{} ({})", "paper_") if pd.notna(row["stands_for"]) else {}
    beside = {name: f"{value}, paper {paper[name]}" if paper else value for name, value in ours.items()}
    return {"dataset": called(row["dataset"], serrano2019.NAMES), **beside}
