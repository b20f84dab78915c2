"""Attention to components of items, and to items of a history (Chen et al. 2017)."""

from functools import partial

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.attention.reading import Attention, Read
from heedful.attention.scores import Additive
from heedful.zoo.member import Member


class CollaborativeFiltering(nn.Module):
    """What a user's history says of the user: Σ α p over its items, each seen through its components.

    The weights are those of items; those of components are in `within`, [… items components].
    """

    def __init__(self, user_size: int, item_size: int, component_size: int, size: int) -> None:
        super().__init__()
        score = partial(Additive, query_size=user_size, offset=True, activation=torch.relu)
        self.components = Attention(score(component_size, size))
        self.items = Attention(score(2 * item_size + component_size, size))

    def forward(
        self,
        user: Float[Tensor, "... user_features"],
        items: Float[Tensor, "... items features"],
        auxiliary: Float[Tensor, "... items features"],
        components: Float[Tensor, "... items components component_features"],
        *,
        mask: Bool[Tensor, "... items"] | None = None,
        component_mask: Bool[Tensor, "... items components"] | None = None,
    ) -> Read:
        """user u, items v, auxiliary p, components x; the context is Σ_l α(u, l) p_l."""
        inner: Read = self.components(user.unsqueeze(-2), components, mask=component_mask)
        keys = torch.cat([items, auxiliary, inner.context], -1)
        outer: Read = self.items(user, keys, auxiliary, mask=mask)
        return Read(context=outer.context, weights=outer.weights, scores=outer.scores, within=(inner,))


ACF = Member(
    name="acf",
    title="Attentive collaborative filtering (ACF)",
    formula="b(i,l,m) = w₂ᵀ φ(W_2u u_i + W_2x x_lm + b₂) + c₂\nβ(i,l,m) = exp(b(i,l,m)) / Σ_n exp(b(i,l,n))\n"
    "x̄_l = Σ_m β(i,l,m) x_lm\n"
    "a(i,l) = w₁ᵀ φ(W_1u u_i + W_1v v_l + W_1p p_l + W_1x x̄_l + b₁) + c₁\n"
    "α(i,l) = exp(a(i,l)) / Σ_(n∈R(i)) exp(a(i,n))\nr̂_ij = (u_i + Σ_(l∈R(i)) α(i,l) p_l)ᵀ v_j",
    symbols={
        "u_i": "vector of user i",
        "v_l, p_l": "vectors of item l: as something to choose, as something chosen",
        "x_lm": "features of component m of item l",
        "R(i)": "items that user i chose",
        "φ": "max(0, ·)",
        "w, W, b, c": "learned",
    },
    source="Chen et al. 2017, Attentive Collaborative Filtering, Eqs. 6–12",
    original="Recommending pictures and short films",
    known="Components count only through the weights of their items: what is learned of them is learned through α. c₁ "
    "and c₂ change no weight.",
    helps="Histories in which few items, and of these few parts, say what a user likes.",
    make=CollaborativeFiltering,
    differs="The survey prints a for b in the normaliser of β.",
)
