"""Transformer classifiers of a few hundred random weights, with tokenizers of their own: no file is needed."""

import string
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import tokenizers
import torch
import transformers
from tokenizers import models, normalizers, pre_tokenizers, processors

CLASSES = {0: "no", 1: "yes", 2: "perhaps"}
WORDS = ("good", "film", "dull", "a", "the", "well", "made", "##ing", "##s")
MERGES = (("g", "o"), ("o", "d"), ("go", "od"), ("Ġ", "good"), (".", "."), ("..", "."), ("!", '"'))

SQUARE = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
ANGLE = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")


def wordpiece(specials: tuple[str, ...] = SQUARE, *, template: str = "{} $A {}", **more: Any) -> Any:
    """Letters and a few words, lower case, accents gone, as BERT has it."""
    letters = [*string.ascii_lowercase, *(f"##{letter}" for letter in string.ascii_lowercase), *string.punctuation]
    vocabulary = {token: number for number, token in enumerate(dict.fromkeys([*specials, *letters, *WORDS]))}
    pad, unknown, first, last, mask = _roles(specials)
    worker = tokenizers.Tokenizer(models.WordPiece(vocabulary, unk_token=unknown))
    worker.normalizer = normalizers.BertNormalizer()
    worker.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return _finished(worker, (pad, unknown, first, last, mask), vocabulary, template, **more)


def byte_pairs(specials: tuple[str, ...] = ANGLE, *, template: str = "{} $A {}", **more: Any) -> Any:
    """Bytes and a few pairs, as GPT-2 and RoBERTa have it; a piece may begin with a space, or span two marks."""
    merged = [left + right for left, right in MERGES]
    tokens = dict.fromkeys([*specials, *sorted(pre_tokenizers.ByteLevel.alphabet()), *merged])
    vocabulary = {token: number for number, token in enumerate(tokens)}
    worker = tokenizers.Tokenizer(models.BPE(vocabulary, list(MERGES)))
    worker.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return _finished(worker, _roles(specials), vocabulary, template, **more)


def _roles(specials: tuple[str, ...]) -> tuple[str, ...]:
    """Padding, unknown, first, last, mask."""
    if specials == SQUARE:
        return specials
    first, pad, last, unknown, mask = specials
    return pad, unknown, first, last, mask


def _finished(
    worker: tokenizers.Tokenizer, roles: tuple[str, ...], numbers: Mapping[str, int], template: str, **more: Any
) -> Any:
    pad, unknown, first, last, mask = roles
    single = template.format(first, last) if template.count("{}") == 2 else template.format(first)
    worker.post_processor = processors.TemplateProcessing(
        single=single, special_tokens=[(token, numbers[token]) for token in (first, last)]
    )
    given = {"pad_token": pad, "unk_token": unknown, "cls_token": first, "bos_token": first, "mask_token": mask} | more
    return transformers.PreTrainedTokenizerFast(tokenizer_object=worker, sep_token=last, eos_token=last, **given)


SIZES = {"num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 12, "max_position_embeddings": 60}


def _bert_like(kind: str, **more: Any) -> Callable[[int], Any]:
    config = getattr(transformers, f"{kind}Config")
    model = getattr(transformers, f"{kind}ForSequenceClassification")
    return lambda size: model(config(vocab_size=size, hidden_size=8, id2label=CLASSES, **SIZES, **more))


def _distilbert(size: int) -> Any:
    more = {"n_layers": 2, "n_heads": 2, "dim": 8, "hidden_dim": 12, "max_position_embeddings": 60}
    config = transformers.DistilBertConfig(vocab_size=size, id2label=CLASSES, **more)
    return transformers.DistilBertForSequenceClassification(config)


MODERN: dict[str, Any] = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3, "cls_token_id": 2, "sep_token_id": 3}
MODERN |= {"layer_types": ["full_attention", "sliding_attention"], "local_attention": 4}
DECODER: dict[str, Any] = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "num_key_value_heads": 1}

FAMILIES: Mapping[str, tuple[Callable[[int], Any], Callable[[], Any]]] = {
    "bert": (_bert_like("Bert"), wordpiece),
    "distilbert": (_distilbert, wordpiece),
    "roberta": (_bert_like("Roberta", pad_token_id=1, bos_token_id=0, eos_token_id=2), byte_pairs),
    "mpnet": (_bert_like("MPNet"), lambda: wordpiece(ANGLE)),
    "electra": (_bert_like("Electra", embedding_size=6), wordpiece),
    "modernbert": (_bert_like("ModernBert", **MODERN), wordpiece),
    "llama": (_bert_like("Llama", **DECODER), byte_pairs),
}
"""The model for so many pieces, and its tokenizer."""

OTHERS: Mapping[str, tuple[Callable[[int], Any], Callable[[], Any]]] = {
    "llama without an end": (_bert_like("Llama", **DECODER), lambda: byte_pairs(template="{} $A")),
    "llama without padding": (_bert_like("Llama", **DECODER | {"pad_token_id": None}), byte_pairs),
    "fnet": (_bert_like("FNet"), lambda: wordpiece(model_input_names=["input_ids"])),
    "bare bert": (_bert_like("Bert"), lambda: wordpiece(template="$A")),
}


def made(family: str, seed: int = 0) -> tuple[Any, Any]:
    """A new model, with weights so large that every piece matters, and its tokenizer."""
    model, tokenizer = {**FAMILIES, **OTHERS}[family]
    own = tokenizer()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        found = model(len(own))
        with torch.no_grad():
            for values in found.parameters():
                values.add_(0.5 * torch.randn_like(values))
    return found, own


tiny = cache(made)
"""Do not change it."""
