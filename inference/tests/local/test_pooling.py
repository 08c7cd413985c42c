"""Pooling reads the mask, wherever the padding stands and whatever is in it."""

import math

import pytest
import torch

from inference.local.torch_models import pool

REAL = torch.tensor([[1.0, 2.0], [3.0, 4.0], [8.0, 0.0]])
PADDING = torch.full((2, 2), math.nan)
EXPECTED = {"mean": [4.0, 2.0], "cls": [1.0, 2.0], "lasttoken": [8.0, 0.0]}


@pytest.mark.parametrize("how", EXPECTED)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_row_pools_alike_padded_left_right_or_not(how, dtype):
    both = torch.stack([torch.cat([REAL, PADDING]), torch.cat([PADDING, REAL])]).to(dtype)
    mask = torch.tensor([[1, 1, 1, 0, 0], [0, 0, 1, 1, 1]])
    alone = pool(REAL[None].to(dtype), torch.ones(1, 3, dtype=torch.long), how)
    assert alone.tolist() == [EXPECTED[how]]
    assert pool(both, mask, how).tolist() == [EXPECTED[how]] * 2
    assert pool(both, mask, how).dtype == torch.float32


def test_a_mean_of_many_half_precision_tokens_does_not_drift():
    hidden = torch.full((1, 5000, 1), 1.0078125, dtype=torch.bfloat16)  # 1 + 2**-7
    mask = torch.ones(1, 5000, dtype=torch.long)
    assert pool(hidden, mask, "mean").item() == pytest.approx(1.0078125, rel=1e-5)
