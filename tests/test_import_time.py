"""What a start imports: each command, worker and page begins with it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

#: With Django, and with what most commands work with. Each takes from 20 ms to seconds.
HEAVY = (
    "torch transformers sentence_transformers langchain langchain_core langgraph openai anthropic"
    " mcp sqlglot scipy pypdfium2 PIL cv2 onnxruntime rapidocr lxml trafilatura markdown_it"
    " tree_sitter semantic_text_splitter"
    " sqlalchemy celery kombu httpx2 httpcore2 jsonschema ir_measures opentelemetry redis numpy"
    " tokenizers prometheus_client.multiprocess requests drf_spectacular.views"
)
PAGES = "ragsite.urls rest_framework.serializers search.views documents.views rag.views"
NO_PART_OF_A_SEARCH = (
    "torch transformers langchain_core openai anthropic mcp sqlglot scipy pypdfium2 lxml"
    " trafilatura markdown_it sqlalchemy celery kombu httpx2 httpcore2 jsonschema ir_measures"
    f" reading.parsers reading.chunkers {PAGES}"
)
NO_PART_OF_AN_ANSWER = f"{NO_PART_OF_A_SEARCH} memory.services"


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("code", "forbidden"),
    [
        ("import django; django.setup()", HEAVY),
        (
            "import django; django.setup(); import search.management.commands.search",
            NO_PART_OF_A_SEARCH,
        ),
        (
            "import django; django.setup(); import rag.management.commands.ask",
            NO_PART_OF_AN_ANSWER,
        ),
        (
            "import django; django.setup(); from django.core.checks import run_checks;"
            " run_checks()",
            f"{HEAVY} {PAGES}",
        ),
        (
            "import django; django.setup(); from django.urls import get_resolver;"
            " get_resolver().url_patterns",
            "torch transformers langchain_core openai anthropic mcp scipy sqlalchemy pypdfium2"
            " lxml",
        ),
    ],
    ids=["setup", "search", "ask", "check", "pages"],
)
def test_a_start_imports_no_library_that_it_does_not_need(code: str, forbidden: str) -> None:
    command = f"{code}\nimport sys; print(*(set({forbidden.split()!r}) & set(sys.modules)))"
    # The embedder is the one that a site has by itself, and not that of tests.
    environment = {name: value for name, value in os.environ.items() if name != "EMBEDDER_BACKEND"}
    done = subprocess.run(
        [sys.executable, "-c", command],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == []
