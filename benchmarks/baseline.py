"""The textbook way: padded [batch, length, features] tensors, dense embedding gradient, torch's Adagrad."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from heedful.text.corpus import Split


class PaddedClassifier(nn.Module):
    """Dot-product attention over padded batches; token 0 is padding, so vocabulary numbers are raised by one."""

    def __init__(self, vocabulary_size: int, size: int, score_scale: float) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary_size + 1, size, padding_idx=0)
        self.context_vector = nn.Parameter(torch.randn(size))
        self.readout = nn.Linear(size, 1, bias=False)
        self.dropout = nn.Dropout(0.5)
        self.score_scale = score_scale

    def forward(self, tokens: Tensor) -> Tensor:
        hidden = self.dropout(self.embedding(tokens))
        scores = (hidden @ self.context_vector) / self.score_scale
        weights = scores.masked_fill(tokens == 0, -torch.inf).softmax(1)
        document = (weights.unsqueeze(-1) * hidden).sum(1)
        outputs: Tensor = self.readout(self.dropout(document))
        return outputs.squeeze(1)


def padded_step(model: PaddedClassifier, optimizer: torch.optim.Optimizer, split: Split, rows: Tensor) -> None:
    batch = split.batch(rows)
    documents = (batch.tokens + 1).split(split.lengths[rows].tolist())
    padded = pad_sequence(list(documents), batch_first=True)
    optimizer.zero_grad()
    F.binary_cross_entropy_with_logits(model(padded), batch.labels.float()).backward()
    optimizer.step()
