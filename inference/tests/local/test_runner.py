"""Forward passes from several threads."""

import threading

import torch

from inference.local.model_folder import DeviceOptions
from inference.local.torch_models import BatchRunner, device_lock

WINDOWS = [[1, 2, 3], [4], [5, 6]]


def sums(batch):
    return (batch["input_ids"] * batch["attention_mask"]).sum(dim=1, keepdim=True)


def run_in_threads(count, work):
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_results_come_in_the_order_of_the_texts_and_padding_is_masked():
    runner = BatchRunner(DeviceOptions(device="cpu", batch_tokens=4), pad_id=9, exact=True)
    assert runner.run({"input_ids": WINDOWS}, sums, width=1)[:, 0].tolist() == [6, 4, 11]


def test_passes_on_the_cpu_run_side_by_side():
    runner = BatchRunner(DeviceOptions(device="cpu"), pad_id=0, exact=True)
    meeting = threading.Barrier(2, timeout=5)
    met = []

    def forward(batch):
        meeting.wait()  # broken unless the other thread is in its pass as well
        met.append(True)
        return sums(batch)

    run_in_threads(2, lambda: runner.run({"input_ids": WINDOWS}, forward, width=1))
    assert met == [True, True]


def test_passes_on_an_accelerator_take_turns_whatever_the_model():
    runners = [BatchRunner(DeviceOptions(device="cpu"), pad_id=0, exact=True) for _ in range(2)]
    for runner in runners:
        runner.device = "meta"  # no accelerator here; torch treats this device as one
    inside = 0
    most = 0
    results = iter(range(100))

    def forward(batch):
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        for _ in range(200):
            torch.ones(64, 64).sum()  # long enough for the other thread to get in
        inside -= 1
        return torch.full((len(WINDOWS), 1), next(results))

    def work():
        for runner in runners:
            runner.run({"input_ids": WINDOWS}, forward, width=1)

    run_in_threads(4, work)
    assert most == 1
    assert device_lock("meta") is device_lock("meta")
    assert device_lock("mps") is not device_lock("cuda")
