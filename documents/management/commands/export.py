"""`manage.py export --collection C`: a collection as a file of JSON lines."""

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.services import DEFAULT_WORKSPACE
from common.checks import SETTINGS
from common.errors import RagsiteError
from common.text import pluralized
from documents import services
from documents.management.cli import ProgressBar, get_collection_by_slug, write_output
from documents.transfer.format import STANDARD_STREAM

FATAL = 2


class Command(BaseCommand):
    requires_system_checks = [SETTINGS]

    help = (
        "Write a collection's documents and chunks, one JSON object a line, for `manage.py import`"
        " here or elsewhere. With --with-vectors nothing need be embedded there. Uploaded files are"
        " not in it, only their text. Exit code: 0 written, 2 not."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--collection", required=True, help="slug")
        parser.add_argument("--workspace", default=DEFAULT_WORKSPACE, help="slug")
        parser.add_argument(
            "--with-vectors", action="store_true", help="with the chunks' vectors, exactly"
        )
        parser.add_argument(
            "-o",
            "--output",
            default=STANDARD_STREAM,
            metavar="FILE",
            help="compressed where it ends in .gz; - (default) is standard output",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            collection = get_collection_by_slug(
                workspace=options["workspace"], slug=options["collection"]
            )
            with ProgressBar("documents", quiet=not sys.stderr.isatty()) as bar:
                done = write_output(
                    options["output"],
                    lambda file: services.export_collection(
                        collection=collection,
                        file=file,
                        with_vectors=options["with_vectors"],
                        on_progress=bar.show,
                    ),
                )
        except (RagsiteError, OSError) as error:
            raise CommandError(str(error), returncode=FATAL) from error
        self.stderr.write(
            f"{pluralized(done.documents, 'document')}, {pluralized(done.chunks, 'chunk')}"
        )
        if done.left_out:
            self.stderr.write(f"{done.left_out:,} without any text yet were left out")
