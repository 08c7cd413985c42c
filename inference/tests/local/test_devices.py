"""Where and how a model runs."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from inference.backends.rerank_cross_encoder import CrossEncoderReranker
from inference.backends.rerank_qwen3 import Qwen3Reranker
from inference.backends.transformers_local import TransformersEmbedder
from inference.interfaces import InferenceError
from inference.local.torch_models import (
    batch_rows,
    default_batch_tokens,
    is_out_of_memory,
    pick_device,
    pick_dtype,
)
from inference.tests.local.checkpoints import cross_encoder, qwen3_embedding, qwen3_reranker

MISSING = "cuda" if torch.backends.mps.is_available() else "mps"


def test_a_missing_device_falls_back_and_warns_once(caplog):
    pick_device.cache_clear()
    chosen = {pick_device(MISSING) for _ in range(3)}
    assert chosen == {pick_device(None)}
    assert caplog.text.count(f"device '{MISSING}' is not available") == 1


def test_a_device_that_is_there_is_taken_without_a_word(caplog):
    pick_device.cache_clear()
    assert pick_device("cpu") == "cpu"
    assert not caplog.records


def test_a_named_number_format_is_taken():
    assert pick_dtype("cpu", "float32") == torch.float32
    assert pick_dtype("cpu", "bfloat16") == torch.bfloat16


def test_bfloat16_is_chosen_where_the_processor_multiplies_it_itself():
    capabilities = torch.cpu.get_capabilities()
    native = capabilities.get("amx_bf16") or capabilities.get("avx512_bf16")
    if capabilities["architecture"] == "x86_64":
        assert pick_dtype("cpu", None) == (torch.bfloat16 if native else torch.float32)
    else:
        assert pick_dtype("cpu", None) in {torch.float32, torch.bfloat16}


@pytest.mark.parametrize("device", ["cpu", "mps", "cuda"])
def test_an_exact_model_runs_in_float32_unless_asked_otherwise(device):
    assert pick_dtype(device, None, exact=True) == torch.float32
    assert pick_dtype(device, "bfloat16", exact=True) == torch.bfloat16


def test_metal_runs_both_half_formats():
    assert pick_dtype("mps", None) == torch.bfloat16
    assert pick_dtype("mps", "float16") == torch.float16


class Formats(TorchDispatchMode):
    """Notes the number format of every tensor that an operation makes."""

    def __init__(self):
        super().__init__()
        self.seen = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        self.seen |= {leaf.dtype for leaf in tree_leaves(made) if isinstance(leaf, torch.Tensor)}
        return made


@pytest.mark.model
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_nothing_is_ever_float64_which_metal_lacks(tmp_path, dtype):
    embedder = TransformersEmbedder(qwen3_embedding(tmp_path / "embedding"), dtype=dtype)
    bundled = TransformersEmbedder(dtype=dtype)
    qwen = Qwen3Reranker(qwen3_reranker(tmp_path / "reranker"), dtype=dtype)
    pairs = CrossEncoderReranker(cross_encoder(tmp_path / "pairs"), dtype=dtype)
    with Formats() as formats:
        embedder.embed_documents(["a wing", "cold water"])
        bundled.embed_documents(["a wing", "cold water"])
        qwen.score("water", ["a wing", "cold water"])
        pairs.score("water", ["a wing", "cold water"])
    assert pick_dtype("cpu", dtype) in formats.seen
    assert torch.float64 not in formats.seen


@pytest.mark.parametrize("name", ["int8", "float64", "no_such"])
def test_another_number_format_is_refused(name):
    with pytest.raises(InferenceError, match=f"dtype '{name}' is not one of float32, bfloat16"):
        pick_dtype("cpu", name)


def test_a_real_allocation_failure_is_recognised():
    with pytest.raises(RuntimeError) as failed:
        torch.empty(1 << 60, dtype=torch.uint8)
    assert is_out_of_memory(failed.value)
    assert is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory."))
    assert is_out_of_memory(RuntimeError("MPS backend out of memory (MPS allocated: 9 GB)"))
    assert not is_out_of_memory(RuntimeError("shapes do not match"))


def test_a_batch_on_the_cpu_has_some_thousand_tokens():
    assert 2048 <= default_batch_tokens("cpu") <= 4096


@pytest.mark.parametrize(
    ("gib", "rows"), [(8, 8), (15.5, 8), (16, 16), (32, 32), (63, 32), (64, 64), (192, 64)]
)
def test_more_memory_takes_larger_batches(gib, rows):
    assert batch_rows(int(gib * 2**30)) == rows
