"""Token vectors to one vector a text. Reads the mask, so padding may stand on either side."""

import torch

from inference.local.folder import Pooling


def pool(hidden: torch.Tensor, mask: torch.Tensor, how: Pooling) -> torch.Tensor:
    """`hidden` (n, tokens, d), `mask` (n, tokens) with 1 on real tokens → float32 (n, d)."""
    if how == "mean":
        # Padding may hold NaN, which times zero is still NaN: it is replaced, not weighed.
        real = torch.where(mask.bool().unsqueeze(-1), hidden.float(), 0.0)
        return real.sum(dim=1) / mask.sum(dim=1, keepdim=True)
    positions = torch.arange(mask.shape[1], device=mask.device)
    if how == "cls":
        chosen = torch.where(mask.bool(), positions, mask.shape[1]).amin(dim=1)
    else:
        chosen = torch.where(mask.bool(), positions, -1).amax(dim=1)
    return hidden[torch.arange(len(hidden), device=hidden.device), chosen].float()
