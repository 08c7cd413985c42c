"""`manage.py reindex`: vectors, word counts and vector indexes made anew."""

from argparse import ArgumentParser, ArgumentTypeError
from dataclasses import asdict
from typing import Any

from accounts.services import DEFAULT_WORKSPACE
from common.console import PARTIAL, CommandOutput, Options, ServiceCommand, add_json_option
from common.errors import NotFound
from common.text import pluralized
from documents import services
from documents.management.cli import ProgressBar, get_collection_by_slug
from documents.models import Document
from documents.services import ReindexResult

LARGEST_ID = 2**63 - 1


class Command(ServiceCommand):
    help = (
        "Embed single chunks anew, such as those that `validate` names, in their collection's"
        " space; or count a collection's words anew and, with --embed, embed all of it. Texts are"
        " not parsed again: that is `ingest --overwrite`. Exit code: 0 done, 1 some chunks are"
        " unknown or have no usable vector, 2 nothing could be done."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--chunk-ids", type=chunk_ids, metavar="1,2,3", help="embed these")
        what.add_argument(
            "--missing",
            action="store_true",
            help="embed what has no vector, such as after RAGSITE_VECTORS was off, of all"
            " workspaces",
        )
        what.add_argument("--document", type=int, metavar="ID")
        what.add_argument("--collection", help="slug")
        parser.add_argument("--workspace", default=DEFAULT_WORKSPACE, help="slug")
        parser.add_argument(
            "--embed", action="store_true", help="embed all chunks of the document or collection"
        )
        parser.add_argument(
            "--index", action="store_true", help="build the vector index anew, beside the old one"
        )
        add_json_option(parser)

    def run(self, options: Options) -> CommandOutput:
        with ProgressBar("chunks", quiet=options["json"]) as bar:
            result = reindex(options, bar)
        indexes = f"; index of {', '.join(result.indexes)} built" if result.indexes else ""
        line = (
            f"{pluralized(result.embedded, 'chunk')} embedded; words of"
            f" {pluralized(result.collections, 'collection')} counted{indexes}"
        )
        reasons = (
            ("there is no such chunk", result.unknown),
            ("the model has no usable vector for its text", result.refused),
            ("somebody else changes it again and again; try later", result.busy),
        )
        return CommandOutput(
            asdict(result),
            [line],
            warnings=[f"{pk}: {reason}" for reason, ids in reasons for pk in ids],
            code=0 if result.is_complete else PARTIAL,
        )


def reindex(options: Options, bar: ProgressBar) -> ReindexResult:
    common: dict[str, Any] = {"index": options["index"], "on_progress": bar.show}
    if options["chunk_ids"]:
        return services.reindex_chunks(chunk_ids=options["chunk_ids"], **common)
    if options["missing"]:
        return services.reindex_missing(**common)
    if options["document"] is not None:
        document = Document.objects.filter(pk=options["document"]).first()
        if document is None:
            raise NotFound(f"There is no document {options['document']}.")
        return services.reindex_document(document=document, embed=options["embed"], **common)
    collection = get_collection_by_slug(workspace=options["workspace"], slug=options["collection"])
    return services.reindex_collection(collection=collection, embed=options["embed"], **common)


def chunk_ids(text: str) -> list[int]:
    """Chunk ids from a comma-separated argument."""
    ids = [part.strip() for part in text.split(",") if part.strip()]
    if not ids or not all(part.isdecimal() and int(part) <= LARGEST_ID for part in ids):
        raise ArgumentTypeError(f"“{text}” is no list of ids, such as 4711,4712.")
    return [int(part) for part in ids]
