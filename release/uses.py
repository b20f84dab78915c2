"""One real use of the core and of each extra, run by the Python of a clean environment, away from the repository.

`python -I uses.py NAME FOLDER`: prints one sentence and ends with 0; without the extra, ends with 1 and says how to get
it. Only what the wheel brings along may be imported, and nothing of the repository.
"""

import gzip
import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import heedful

POLAR = {"good": ("great", "lovely", "superb"), "bad": ("awful", "dull", "broken")}
PLAIN = ("the", "film", "plot", "music", "was", "and", "a", "very", "with", "scenes")


def heedful_says(*arguments: object) -> str:
    """What the command prints; its own sentence where it cannot."""
    command = [sys.executable, "-I", "-m", "heedful", *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    if ended.returncode:
        raise heedful.HeedfulError(f"`heedful {arguments[0]}` ended with {ended.returncode}: {ended.stderr.strip()}")
    return ended.stdout


def reviews(count: int = 400) -> tuple[list[str], list[str]]:
    """Texts and labels that anybody can learn."""
    labels = ["good" if row % 2 else "bad" for row in range(count)]
    rows = [
        " ".join([*(PLAIN[(row * step) % len(PLAIN)] for step in (1, 3, 7, 9)), POLAR[label][row // 2 % 3]])
        for row, label in enumerate(labels)
    ]
    return rows, labels


def write_reviews(folder: Path) -> Path:
    path = folder / "reviews.csv"
    rows = [f"{text},{label}" for text, label in zip(*reviews(), strict=True)]
    path.write_text("\n".join(["text,label", *rows]) + "\n", encoding="utf-8")
    return path


def core(folder: Path) -> str:
    """Help, a trace by hand, and an audit with report, tables and figures."""
    assert "audit" in heedful_says("--help")
    arrays: Any = {"offsets": [0, 2], "attention_scores": [0, 0], "polarity_scores": [3, -1], "bias": [0]}
    assert heedful.minimum_flips(heedful.Trace.from_arrays(**arrays))["erased"].tolist() == [1]
    store = folder / "runs"
    said = heedful_says("audit", write_reviews(folder), "--epochs", 20, "--no-advice", "--store", store)
    (run,) = store.iterdir() if not (store / "store.json").exists() else store.glob("*_*")
    missing = {"report.html", "tables", "figures", "manifest.json"} - {path.name for path in run.iterdir()}
    assert not missing, missing
    assert "test accuracy" in said.lower()
    assert "1 runs, 0 damaged" in heedful_says("runs", "verify", "--store", store)
    return f"an audit of {run.name.split('_', 1)[1]}: {said.splitlines()[0]}"


def on_ray(folder: Path) -> str:
    plan = folder / "plan.toml"
    plan.write_text(
        f"seeds = 2\n[base]\ndata.source = '{write_reviews(folder)}'\ntraining.epochs = 2\n"
        "[grid]\nmodel.score_scale = [1, 10]\n",
        encoding="utf-8",
    )
    said = json.loads(heedful_says("sweep", plan, "--on", "ray", "--store", folder / "runs", "--json"))
    assert (said["runs"], said["computed"], said["failed"]) == (4, 4, [])
    return "a sweep of four runs on a Ray cluster of this machine"


def transformers(folder: Path) -> str:
    """A BERT of two layers is saved and explained."""
    place = folder / "bert"
    place.mkdir()
    if find_spec("transformers"):
        save_tiny_bert(place)
    given = heedful.subject(place)
    reading = given.read(["the film was great", "a dull plot"])
    found = heedful.explain(reading, by="attention")
    assert len(found.scores) == 7
    return "the attention of a transformer in a folder, over 7 words"


def save_tiny_bert(folder: Path) -> None:
    """With weights that were never trained."""
    import tokenizers
    import torch
    import transformers as library

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *PLAIN, *(word for side in POLAR.values() for word in side)]
    model = tokenizers.models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="[UNK]")
    inner = tokenizers.Tokenizer(model)
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    ends = [("[CLS]", 2), ("[SEP]", 3)]
    inner.post_processor = tokenizers.processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    fast = library.PreTrainedTokenizerFast(tokenizer_object=inner, mask_token="[MASK]", **names)
    sizes = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
    torch.manual_seed(0)
    library.BertForSequenceClassification(library.BertConfig(vocab_size=len(words), **sizes)).save_pretrained(folder)
    fast.save_pretrained(folder)


def captum(_: Path) -> str:
    """A function of texts is explained by LIME."""
    given = heedful.subject(count_polar, class_names=["bad", "good"])
    found = heedful.explain(given.read(["the film was great and lovely"]), by="lime")
    scores = found.scores.tolist()
    assert sorted(range(6), key=scores.__getitem__)[-2:] in ([3, 5], [5, 3]), scores
    return "LIME of a function finds the two words that it counts"


def count_polar(texts: list[str]) -> list[list[float]]:
    """Two words of praise are surer than one."""
    counts = [sum(word in POLAR["good"] for word in text.split()) for text in texts]
    return [[0.6 - 0.2 * count, 0.4 + 0.2 * count] for count in counts]


def sklearn(_: Path) -> str:
    classifier, (texts, labels) = heedful.AttentionClassifier(epochs=5), reviews()
    from sklearn.model_selection import cross_val_score

    reached = cross_val_score(classifier, texts, labels, cv=2).min()
    assert reached > 0.95, reached
    return f"an AttentionClassifier in scikit-learn's cross-validation: accuracy {reached:.2f}"


def word2vec(folder: Path) -> str:
    vectors = ("--set", "model.vectors=word2vec", "--set", "model.embedding_size=8")
    said = heedful_says("train", write_reviews(folder), "--epochs", 3, *vectors, "--store", folder / "runs", "--json")
    (notice,) = [one for one in json.loads(said)["notices"] if "word2vec" in one]
    return str(notice)


def web(folder: Path) -> str:
    store = folder / "runs"
    said = heedful_says("train", write_reviews(folder), "--epochs", 5, "--store", store, "--json")
    with serving("serve", json.loads(said)["run"], "--port", 0, "--store", store) as address:
        with urllib.request.urlopen(f"{address}/") as page:
            assert b"<script" in page.read()
        asked = json.dumps({"text": "the film was great"}).encode()
        request = urllib.request.Request(f"{address}/api/v1/minimum", asked, {"content-type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            told = json.load(answer)
    assert (told["units"], told["predicted"] in POLAR) == (4, True), told
    return f"a page served, and a decision on {told['units']} words: {told['predicted']}"


@contextmanager
def serving(*arguments: object) -> Iterator[str]:
    """The address of a server that is ended afterwards."""
    command = [sys.executable, "-I", "-m", "heedful", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        try:
            for line in server.stdout or ():
                if found := re.search(r"http://\S+?(?=/?\s)", line):
                    yield found[0]
                    break
            else:
                raise heedful.HeedfulError((server.stderr.read() if server.stderr else "").strip())
        finally:
            server.terminate()


def zoo(folder: Path) -> str:
    """BLEU of a sentence that is its own correction."""
    row = {"split": "test", "text": "he go to school .", "refs": ["he goes to school ."] * 4}
    with gzip.open(folder / "jfleg.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    os.environ["HEEDFUL_DATA"] = str(folder)
    import torch

    from heedful.zoo.task import Examples
    from heedful.zoo.tasks.learners import bleu

    examples = Examples(inputs={"references": torch.tensor([0])}, targets=torch.zeros(1, 1, dtype=torch.int64))
    score = bleu([["he", "goes", "to", "school", "."]], examples)
    assert abs(score - 1) < 1e-9, score
    return "BLEU of a correction that is right: 1"


USES: Mapping[str, Callable[[Path], str]] = {
    "core": core,
    "ray": on_ray,
    "transformers": transformers,
    "captum": captum,
    "sklearn": sklearn,
    "word2vec": word2vec,
    "web": web,
    "zoo": zoo,
}

if __name__ == "__main__":
    try:
        print(USES[sys.argv[1]](Path(sys.argv[2])))
    except heedful.HeedfulError as error:
        sys.exit(str(error))
