"""The textbook way: padded [batch, length, features] tensors, dense embedding gradient, torch's Adagrad."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from heedful.text.corpus import Split


class PaddedClassifier(nn.Module):
    """Attention over padded batches; token 0 is padding, so vocabulary numbers are raised by one.

    Of two classes it has one output. The affine encoder and the tanh layer of additive attention have no bias, as ours.
    """

    def __init__(
        self,
        vocabulary_size: int,
        size: int,
        score_scale: float,
        *,
        classes: int = 2,
        attention: str = "dot",
        encoder: str = "none",
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary_size + 1, size, padding_idx=0)
        self.encoder = nn.Linear(size, size, bias=False) if encoder == "affine" else nn.Identity()
        layer = [nn.Linear(size, size, bias=False), nn.Tanh()] if attention == "additive" else []
        self.layer = nn.Sequential(*layer)
        self.context_vector = nn.Parameter(torch.randn(size))
        self.readout = nn.Linear(size, 1 if classes == 2 else classes, bias=False)
        self.dropout = nn.Dropout(0.5)
        self.score_scale = score_scale

    def forward(self, tokens: Tensor) -> Tensor:
        hidden = self.encoder(self.dropout(self.embedding(tokens)))
        scores = (self.layer(hidden) @ self.context_vector) / self.score_scale
        weights = scores.masked_fill(tokens == 0, -torch.inf).softmax(1)
        document = (weights.unsqueeze(-1) * hidden).sum(1)
        outputs: Tensor = self.readout(self.dropout(document))
        return outputs


def padded_step(model: PaddedClassifier, optimizer: torch.optim.Optimizer, split: Split, rows: Tensor) -> None:
    batch = split.batch(rows)
    documents = (batch.tokens + 1).split(split.lengths[rows].tolist())
    padded = pad_sequence(list(documents), batch_first=True)
    optimizer.zero_grad()
    outputs = model(padded)
    if outputs.shape[1] == 1:
        loss = F.binary_cross_entropy_with_logits(outputs.squeeze(1), batch.labels.float())
    else:
        loss = F.cross_entropy(outputs, batch.labels)
    loss.backward()
    optimizer.step()
