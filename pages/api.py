"""The public names as a page: how each is called, what it says of itself, and its examples.

Docstrings here have paragraphs; formulas, indented; parameters, `name: what it is`, indented under a heading where
there are many; and examples, which run as tests.
"""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import heedful
from pages.plain import plain

ROOMS: Mapping[str, Sequence[str]] = {
    "Examine": ("audit", "RunSettings", "Store"),
    "Data and training": ("load_corpus", "Corpus", "fit", "save_model", "load_model", "AttentionClassifier"),
    "Traces and words": ("trace", "Trace", "TraceFolder", "save_shards", "in_shards", "token_scores", "flow_terms"),
    "Erase": ("first_flips", "minimum_flips", "single_erasure", "verify_flip"),
    "Replace": ("adversarial_attention", "permutation_test"),
    "Models and explanations of any kind": ("subject", "explain", "Explanation", "faithfulness"),
    "Errors": ("HeedfulError",),
}
"""The public names in the order of the page."""

PREFACE = """# Python reference

What `import heedful` gives. Every example runs as a test. `help(heedful.fit)` says the same in Python; on the command
line every command has `--help`.
"""

WIDTH = 100
PARAMETERS = re.compile(r"^(?P<names>[a-z_]\w*(?:, [a-z_]\w*)*): (?P<words>.*)")


def api_page() -> str:
    """All of it as Markdown: docs/api.md."""
    return "\n".join([PREFACE, *(line for title, names in ROOMS.items() for line in _room(title, names))])


def _room(title: str, names: Sequence[str]) -> Iterator[str]:
    yield f"## {title}\n"
    for name in names:
        value = getattr(heedful, name)
        yield f"### heedful.{name}\n"
        if not inspect.isclass(value):
            yield _call(f"heedful.{name}", value)
        yield from described(inspect.getdoc(value) or "")
        if inspect.isclass(value):
            yield from _methods(name, value)


def _methods(name: str, value: type) -> Iterator[str]:
    """What can be asked of a value: its own public methods and properties that say what they are."""
    for method, found in vars(value).items():
        asked = getattr(found, "__func__", found)  # of a class method
        words = inspect.getdoc(asked)
        if method.startswith("_") or not words or not (callable(asked) or isinstance(asked, property)):
            continue
        yield f"#### {name}.{method}\n"
        if callable(asked):
            yield _call(f"{name}.{method}", asked, bound=True)
        yield from described(words)


def _call(name: str, function: Callable[..., Any], *, bound: bool = False) -> str:
    """How it is called, without the types, which Python's `help` has."""
    parameters = list(inspect.signature(function).parameters.values())[bound:]
    bare = [one.replace(annotation=inspect.Parameter.empty) for one in parameters]
    told = str(inspect.Signature(bare)).removeprefix("(").removesuffix(")")
    call = f"{name}({told})"
    if len(call) > WIDTH:
        parts = [str(one) for one in bare]
        if any(one.kind is inspect.Parameter.KEYWORD_ONLY for one in bare):
            parts.insert(next(n for n, one in enumerate(bare) if one.kind is inspect.Parameter.KEYWORD_ONLY), "*")
        call = f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + ")"
    return f"```text\n{call}\n```\n"


def described(docstring: str) -> Iterator[str]:
    """A docstring as Markdown."""
    for block in re.split(r"\n\s*\n", docstring.strip("\n")):
        yield _block(block) + "\n"


def _block(block: str) -> str:
    lines = block.split("\n")
    least = min(len(line) - len(line.lstrip()) for line in lines)
    if lines[0].lstrip().startswith(">>>"):
        return "\n".join(["```pycon", *(line[least:] for line in lines), "```"])
    told = [line for line in lines if PARAMETERS.match(line.strip())]
    if told and (least == 0 or PARAMETERS.match(lines[0].strip())):
        return _parameters(lines)
    if least >= 4:
        return "\n".join(["```text", *(line[4:] for line in lines), "```"])
    return plain(" ".join(line.strip() for line in lines))


def _parameters(lines: Sequence[str]) -> str:
    """Parameters as a list, with what goes before them as a paragraph. Lines further in go on with the one before."""
    found: list[str] = []
    depth = 0
    for line in lines:
        inward, words = len(line) - len(line.lstrip()), line.strip()
        begins = PARAMETERS.match(words)
        if begins and (not found or not found[-1].startswith("- ") or inward <= depth):
            gap = ["", ""] if found and not found[-1].startswith("- ") else []
            found = [*found, *gap[1:], f"- **{begins['names']}**: {plain(begins['words'])}"]
            depth = inward
        elif found and found[-1].startswith("- ") and inward <= depth and not begins:
            found = [*found, "", plain(words)]
        elif found and found[-1]:
            found[-1] += f" {plain(words)}"
        else:
            found = [*found, plain(words)]
    return "\n".join(found)
