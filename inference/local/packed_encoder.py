"""multilingual-e5-small in memory, run by torch. Import it on first use only.

The table of words, two thirds of the model, stays packed: only the rows of a batch are unpacked.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from inference.local.packed_model import PackedModel


class PackedWordTable(nn.Module):
    """Rows of a table of 4-bit weights, unpacked as they are looked up."""

    scales: Tensor
    halves: Tensor

    def __init__(self, model: PackedModel, dtype: torch.dtype) -> None:
        super().__init__()
        scales, halves = model.packed("emb.word", model.hidden_size)
        self.register_buffer("scales", torch.from_numpy(scales))
        self.register_buffer("halves", torch.from_numpy(halves))
        self._dtype = dtype

    def forward(self, ids: Tensor) -> Tensor:
        """Token ids (…) to vectors (…, hidden size)."""
        halves = self.halves[ids]
        weights = torch.cat([halves & 15, halves >> 4], dim=-1).to(torch.float32) - 8
        rows = weights * self.scales[ids].to(torch.float32).unsqueeze(-1)
        return rows.flatten(-2).to(self._dtype)


class PackedEncoder(nn.Module):
    """BERT's encoder (https://arxiv.org/abs/1810.04805) with these weights."""

    def __init__(self, model: PackedModel, *, device: str, dtype: torch.dtype) -> None:
        super().__init__()
        size, wide = model.hidden_size, model.feed_forward_size
        self._heads, self._epsilon, self._size = model.heads, model.epsilon, size

        def read(name: str, *shape: int) -> Tensor:
            return torch.from_numpy(model.tensor(name, *shape)).to(device, dtype)

        def pair(name: str, *shape: int) -> tuple[Tensor, Tensor]:
            """Weights of this shape and the bias of what they make."""
            return read(f"{name}.w", *shape), read(f"{name}.b", shape[0])

        self._words = PackedWordTable(model, dtype).to(device)
        # Every token is of the first type: its vector is part of each position's.
        types = read("emb.type", model.token_types, size)
        self._positions = read("emb.pos", model.positions, size) + types[0]
        self._norm = pair("emb.ln", size)
        self._layers: list[dict[str, tuple[Tensor, Tensor]]] = []
        for number in range(model.layers):
            of = f"l{number}."
            weights, biases = zip(*(pair(of + each, size, size) for each in "qkv"), strict=True)
            self._layers.append(
                {
                    "qkv": (torch.cat(weights), torch.cat(biases)),
                    "out": pair(of + "ao", size, size),
                    "norm": pair(of + "aln", size),
                    "wide": pair(of + "fi", wide, size),
                    "narrow": pair(of + "fo", size, wide),
                    "last": pair(of + "oln", size),
                }
            )

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Ids and mask (rows, tokens) to hidden states (rows, tokens, hidden size)."""
        rows, tokens = input_ids.shape
        # Rows of one length need no mask, without which attention is faster.
        mask = None if bool(attention_mask.all()) else attention_mask[:, None, None, :].bool()
        state = self._normalized(self._words(input_ids) + self._positions[:tokens], self._norm)
        for layer in self._layers:
            joined = functional.linear(state, *layer["qkv"])
            query, key, value = (
                joined.view(rows, tokens, 3, self._heads, -1).permute(2, 0, 3, 1, 4).unbind()
            )
            seen = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
            seen = seen.transpose(1, 2).reshape(rows, tokens, self._size)
            seen = functional.linear(seen, *layer["out"])
            state = self._normalized(state + seen, layer["norm"])
            wide = functional.gelu(functional.linear(state, *layer["wide"]))
            state = self._normalized(
                state + functional.linear(wide, *layer["narrow"]), layer["last"]
            )
        return state

    def _normalized(self, state: Tensor, weights: tuple[Tensor, Tensor]) -> Tensor:
        return functional.layer_norm(state, (self._size,), *weights, self._epsilon)
