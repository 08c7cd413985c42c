"""Write the second half of docs/reference/python.md from docstrings: `python -m
scripts.python_reference`. `tests/test_docs.py` compares."""

import inspect
import os
import re
from importlib import import_module
from pathlib import Path

import django

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "python.md"
#: What stands below it is written by this program.
MARK = "<!-- below: made of docstrings by `python -m scripts.python_reference` -->\n"
SHOWN = {
    "documents.services": (
        *("create_collection", "get_or_create_collection", "get_collection", "update_collection"),
        *("delete_collection", "ingest_text", "ingest_sources", "ingest_inline", "ingest_urls"),
        *("sync_directory", "store_items", "get_item", "get_items", "delete_items", "count_items"),
        *("document_text", "update_document", "delete_document", "delete_documents"),
        *("reindex_collection", "reembed_collection", "export_collection", "import_collection"),
    ),
    "search.services": ("search",),
    "memory.services": (
        *("archive_turn", "search_memory", "inject", "strip_injected", "set_fact", "get_fact"),
        *("get_all_facts", "history", "forget_fact", "clear_memory", "usage", "export_memory"),
        "erase_memory",
    ),
}


def reference() -> str:
    """The generated half: modules, functions with their signatures, docstrings."""
    parts = []
    for module, names in SHOWN.items():
        parts.append(f"## {module}")
        for name in names:
            function = getattr(import_module(module), name)
            signature = str(inspect.signature(function))
            # Without defaults that have no form of their own, and without the modules of types.
            signature = re.sub(r"<[^<>]*(?:<\w+>)?[^<>]* at 0x\w+>", "…", signature)
            signature = re.sub(r"\b(?:[a-z_]\w*\.)+(?=\w)", "", signature)
            parts += [
                f"### {name}",
                f"`{name}{signature}`".replace("'", '"'),
                inspect.getdoc(function) or "",
            ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")
    django.setup()
    written, _, _ = PAGE.read_text().partition(MARK)
    PAGE.write_text(f"{written}{MARK}\n{reference()}")


if __name__ == "__main__":
    main()
