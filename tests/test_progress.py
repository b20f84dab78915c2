"""What is shown while a training runs."""

import pytest

from heedful.cli.progress import ProgressBar
from heedful.text.corpus import Corpus
from heedful.training.events import EpochDone
from heedful.training.loop import fit


def test_the_bar_ends_with_the_accuracy_of_the_epoch_that_is_kept(
    small_corpus: Corpus, capsys: pytest.CaptureFixture[str]
) -> None:
    """The last of three epochs is said to be no better than the second."""
    events: list[EpochDone] = []
    fit(
        small_corpus,
        embedding_size=4,
        epochs=1,
        batch_size=300,
        observers=[lambda e: events.append(e) if isinstance(e, EpochDone) else None],
    )
    model = events[0].model
    with ProgressBar(3, title="training") as bar:
        for epoch, accuracy, best in ((1, 0.5, True), (2, 0.75, True), (3, 0.625, False)):
            bar(
                EpochDone(
                    epoch=epoch, epochs=3, row={"dev_accuracy": accuracy}, best=best, model=model, last=epoch == 3
                )
            )
    said = " ".join(capsys.readouterr().err.split())
    assert "3/3 dev accuracy 0.750 (epoch 2)" in said
    assert "0.625" not in said
