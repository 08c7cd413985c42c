"""How long a site of an earlier release takes to be upgraded, and how long it cannot be searched.

    cd CHECKOUT-OF-THE-RELEASE && .venv/bin/python …/bench/upgrade.py --fill 100000
    .venv/bin/python -m bench.upgrade URL-OF-THAT-DATABASE

The first fills the empty database of the release's own site (DATABASE_URL) with passages of invented
words and vectors, by its own tables. The second copies that database, upgrades the copy with the
code at hand while a process searches it, and prints what both saw. With `--kill` the upgrade is
killed with SIGKILL after each of so many seconds and begun again.
"""

import os
import sys

import numpy as np

WORDS_A_PASSAGE = 80
PASSAGES_A_DOCUMENT = 20
VOCABULARY = 40_000


def fill(count: int) -> None:
    """Fill the site in the working directory, which may be of another release."""
    sys.path.insert(0, os.getcwd())
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")
    import django

    django.setup()
    from accounts.services import get_or_create_workspace
    from django.db import connection
    from documents.models import Document, EmbeddingSpace
    from documents.services import get_or_create_collection
    from documents.spaces import SpaceSql

    random = np.random.default_rng(7)
    words = [f"{a}{b}{c}" for a in _SYLLABLES for b in _SYLLABLES for c in _SYLLABLES][:VOCABULARY]
    shares = 1 / np.arange(1, len(words) + 1)
    workspace = get_or_create_workspace()
    collection = get_or_create_collection(workspace=workspace, slug="large")
    space = EmbeddingSpace.objects.get(is_default=True)
    documents = Document.objects.bulk_create(
        Document(
            workspace=workspace,
            collection=collection,
            key=f"document-{number}",
            title=f"Document {number}",
            media_type="text/plain",
            status="ready",
            content_sha256=f"{number:064x}",
            chunk_count=min(PASSAGES_A_DOCUMENT, count - number * PASSAGES_A_DOCUMENT),
        )
        for number in range(-(-count // PASSAGES_A_DOCUMENT))
    )
    sql = SpaceSql(space_id=space.pk, dimensions=space.dimensions)
    with connection.cursor() as cursor:
        cursor.execute(sql.drop_index())
        columns = (
            "workspace_id, collection_id, document_id, space_id, ordinal, key, text, context,"
            ' heading_path, summary, token_count, start, "end", media_type, metadata,'
            " language, embedding, content_sha256"
        )
        with cursor.copy(f"COPY documents_chunk ({columns}) FROM STDIN") as copy:
            for number in range(count):
                chosen = random.choice(len(words), WORDS_A_PASSAGE, p=shares / shares.sum())
                text = " ".join(words[each] for each in chosen)
                vector = random.normal(size=space.dimensions)
                vector /= np.linalg.norm(vector)
                ordinal = number % PASSAGES_A_DOCUMENT
                document = documents[number // PASSAGES_A_DOCUMENT]
                copy.write_row(
                    (
                        *(workspace.pk, collection.pk, document.pk, space.pk, ordinal, ""),
                        *(text, document.title, "{}", "", 100),
                        *(ordinal * 1000, ordinal * 1000 + len(text), "text/plain", "{}"),
                        *("english", f"[{','.join(f'{x:.5f}' for x in vector)}]"),
                        f"{number:064x}",
                    )
                )
        cursor.execute("SET maintenance_work_mem = '512MB'")
        cursor.execute(sql.create_index(rows=count))
        cursor.execute("ANALYZE")


_SYLLABLES = [a + b for a in "bdfgklmnprst" for b in "aeiou"]

if __name__ == "__main__":
    fill(int(sys.argv[2]))
