"""Where and how a model runs."""

import pytest
import torch

from inference.base import InferenceError
from inference.local.devices import (
    default_batch_tokens,
    is_out_of_memory,
    pick_device,
    pick_dtype,
)

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
