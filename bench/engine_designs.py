"""The two designs that `bench.engine` compares: ragsite, and what one writes with psycopg alone."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from threading import local
from typing import Any, Literal
from unittest import mock

import numpy as np
import psycopg
from django.conf import settings
from django.db import connection, connections
from django.utils.module_loading import import_string
from pgvector.psycopg import register_vector

from accounts.services import get_or_create_workspace
from bench.passages import BATCH, Passage, Query, Vectors, metadata
from documents.ingestion import items as item_loading
from documents.ingestion import jobs
from documents.ingestion.items import Item
from documents.ingestion.vector_indexes import suspended_index
from documents.models import Collection
from documents.services import default_space, delete_collection
from documents.services.items import delete_items, store_items
from search.query_options import site_scope
from search.services import search

K = 10
#: What the site does by itself within half a minute of a bulk load, beside autovacuum.
SCHEDULED = ("documents.tasks.index_pending_chunks",)

#: An index that does not fit into this while it is built is built many times as slowly.
FOR_A_MILLION = "SET maintenance_work_mem = '4GB'"

Mode = Literal["lexical", "vector", "hybrid"]
MODES: tuple[Mode, ...] = ("lexical", "vector", "hybrid")
#: A metadata column and the value that it must have.
Condition = tuple[str, int]


class Ragsite:
    """The product, through its services: what its API and pages call."""

    name = "ragsite"

    def __init__(self, slug: str = "bench") -> None:
        self.workspace = get_or_create_workspace(slug=slug)
        # Reading passages for the graph is no part of storing or searching them.
        self.collection, _ = Collection.objects.get_or_create(
            workspace=self.workspace,
            slug=slug,
            defaults={"space": default_space(), "graph": Collection.Graph.OFF},
        )

    def store(self, passages: Sequence[Passage], vectors: Vectors) -> None:
        items = [
            Item(
                id=str(each.number),
                text=each.text,
                vector=vector,
                metadata=metadata(each.number),
                title=each.title,
                language="en",
            )
            for each, vector in zip(passages, vectors, strict=True)
        ]
        store_items(collection=self.collection, items=items)

    @contextmanager
    def without_vector_index(self) -> Iterator[None]:
        """The index is built at the end."""
        with connection.cursor() as cursor:
            cursor.execute(FOR_A_MILLION)
        with suspended_index(self.collection):
            yield

    def remove(self, numbers: Sequence[int]) -> None:
        delete_items(collection=self.collection, keys=map(str, numbers))

    def search(
        self, query: Query, mode: Mode = "hybrid", condition: Condition | None = None
    ) -> list[int]:
        """Numbers of the best passages."""
        found = search(
            query.text,
            scope=site_scope(
                workspace=self.workspace, filter=dict([condition]) if condition else None
            ),
            mode=mode,
            k=K,
            vector=None if mode == "lexical" else query.vector,
            rerank=False,
            snippets=False,
        )
        return [int(hit.document_key) for hit in found.hits]

    def settle(self) -> None:
        for name in SCHEDULED:
            import_string(settings.CELERY_BEAT_SCHEDULE[name]["task"])()

    @contextmanager
    def beside_writing(
        self, own: Sequence[Passage], others: Sequence[Passage], vectors: Vectors
    ) -> Iterator[None]:
        """Within the block these passages are stored and in no segment of the lexical index yet:
        `own` one by one, `others` in another workspace. They are removed again."""
        elsewhere = Ragsite("others")
        with ExitStack() as waiting:
            for module in (item_loading, jobs):
                waiting.enter_context(mock.patch.object(module, "index_pending"))
            for number, passage in enumerate(own):
                self.store([passage], vectors[number][None])
            for start in range(0, len(others), BATCH):
                part = others[start : start + BATCH]
                elsewhere.store(part, np.resize(vectors, (len(part), vectors.shape[1])))
            yield
        self.remove([passage.number for passage in own])
        delete_collection(collection=elsewhere.collection)
        self.settle()

    def close(self) -> None:
        """The connection of this thread."""
        connections.close_all()

    tables = r"^(documents|search)_"


class Bare:
    """One table and two indexes, OR + ts_rank and HNSW, fused by RRF with k = 60 in Python."""

    name = "bare"
    tables = "^bare_passage$"
    CREATE = """
        CREATE TABLE bare_passage (
            id bigint PRIMARY KEY, title text, text text, tenant int, topic int, recent int,
            embedding vector(384),
            words tsvector GENERATED ALWAYS AS (
                setweight(to_tsvector('english', title), 'A')
                || setweight(to_tsvector('english', text), 'D')) STORED);
        CREATE INDEX ON bare_passage USING gin (words);
        CREATE INDEX bare_vectors ON bare_passage USING hnsw (embedding vector_cosine_ops);
        CREATE INDEX ON bare_passage (tenant);
        CREATE INDEX ON bare_passage (topic);
        CREATE INDEX ON bare_passage (recent)"""
    COPY = """
        COPY bare_passage (id, title, text, tenant, topic, recent, embedding)
        FROM STDIN (FORMAT BINARY)"""
    # plainto_tsquery joins words by AND, which finds next to nothing for a question.
    LEXICAL = """
        SELECT id FROM bare_passage,
               CAST(replace(plainto_tsquery('english', %(text)s)::text, '&', '|') AS tsquery) AS q
        WHERE words @@ q {} ORDER BY ts_rank(words, q) DESC LIMIT 50"""
    VECTOR = "SELECT id FROM bare_passage WHERE true {} ORDER BY embedding <=> %(vector)s LIMIT 50"
    FETCH = "SELECT id, title, text, tenant, topic, recent FROM bare_passage WHERE id = ANY(%s)"

    def __init__(self) -> None:
        self._local = local()
        if self.connection.execute("SELECT to_regclass('bare_passage')").fetchone() == (None,):
            self.connection.execute(self.CREATE, prepare=False)

    @property
    def connection(self) -> psycopg.Connection[Any]:
        """This thread's. As a careful program sets it up: each statement prepared at once, and an
        HNSW scan that goes on where a filter drops what it found."""
        if not hasattr(self._local, "connection"):
            given = connection.settings_dict
            made: psycopg.Connection[Any] = psycopg.connect(
                host=given["HOST"],
                port=given["PORT"] or None,
                user=given["USER"],
                password=given["PASSWORD"] or None,
                dbname=given["NAME"],
                autocommit=True,
                prepare_threshold=0,
            )
            register_vector(made)
            for setting in ("ef_search = 100", "iterative_scan = strict_order"):
                made.execute(f"SET hnsw.{setting}")
            self._local.connection = made
        found: psycopg.Connection[Any] = self._local.connection
        return found

    def store(self, passages: Sequence[Passage], vectors: Vectors) -> None:
        with self.connection.cursor() as cursor, cursor.copy(self.COPY) as copy:
            copy.set_types(["int8", "text", "text", "int4", "int4", "int4", "vector"])
            for each, vector in zip(passages, vectors, strict=True):
                copy.write_row((*each[:2], each.text, *metadata(each.number).values(), vector))

    @contextmanager
    def without_vector_index(self) -> Iterator[None]:
        """The index is built at the end."""
        self.connection.execute("DROP INDEX bare_vectors")
        yield
        self.connection.execute(FOR_A_MILLION)
        self.connection.execute(
            "CREATE INDEX bare_vectors ON bare_passage USING hnsw (embedding vector_cosine_ops)"
        )

    def remove(self, numbers: Sequence[int]) -> None:
        self.connection.execute("DELETE FROM bare_passage WHERE id = ANY(%s)", [list(numbers)])

    def search(
        self, query: Query, mode: Mode = "hybrid", condition: Condition | None = None
    ) -> list[int]:
        """Numbers of the best passages, which are fetched as well."""
        narrowed = f"AND {condition[0]} = %(value)s" if condition else ""
        value = condition[1] if condition else None
        statements = {"lexical": self.LEXICAL, "vector": self.VECTOR}
        scores: dict[int, float] = {}
        for arm in statements.keys() if mode == "hybrid" else [mode]:
            values = {"text": query.text, "vector": query.vector, "value": value}
            rows = self.connection.execute(statements[arm].format(narrowed), values, binary=True)
            for rank, (number,) in enumerate(rows.fetchall(), start=1):
                scores[number] = scores.get(number, 0.0) + 1 / (60 + rank)
        best = sorted(scores, key=lambda number: -scores[number])[:K]
        self.connection.execute(self.FETCH, [best]).fetchall()
        return best

    @contextmanager
    def beside_writing(
        self, own: Sequence[Passage], others: Sequence[Passage], vectors: Vectors
    ) -> Iterator[None]:
        """Its indexes have every row at once."""
        self.store(own, vectors[: len(own)])
        yield
        self.remove([passage.number for passage in own])

    def settle(self) -> None:
        """Nothing but autovacuum."""

    def close(self) -> None:
        """The connection of this thread."""
        self.connection.close()
        del self._local.connection


Design = Ragsite | Bare
