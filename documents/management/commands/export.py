"""`manage.py export --collection C`: a collection as a file of JSON lines."""

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.services import DEFAULT_WORKSPACE
from common.checks import SETTINGS
from common.errors import RagsiteError
from common.wording import counted
from documents import services
from documents.management.naming import collection_named
from documents.management.writing import written
from documents.progress import Bar
from documents.transfer.format import STANDARD

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
            default=STANDARD,
            metavar="FILE",
            help="compressed where it ends in .gz; - (default) is standard output",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            collection = collection_named(
                workspace=options["workspace"], slug=options["collection"]
            )
            with Bar("documents", quiet=not sys.stderr.isatty()) as bar:
                done = written(
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
        self.stderr.write(f"{counted(done.documents, 'document')}, {counted(done.chunks, 'chunk')}")
        if done.left_out:
            self.stderr.write(f"{done.left_out:,} without any text yet were left out")
