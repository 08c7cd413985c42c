"""`manage.py export --collection C`: a collection as a file of JSON lines."""

from argparse import ArgumentParser

from accounts.services import DEFAULT_WORKSPACE
from common.console import CommandOutput, Options, ServiceCommand
from common.json_lines import add_output_option, write_output
from common.text import pluralized
from documents import services
from documents.management.cli import ProgressBar, get_collection_by_slug


class Command(ServiceCommand):
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
        add_output_option(parser)

    def run(self, options: Options) -> CommandOutput:
        collection = get_collection_by_slug(
            workspace=options["workspace"], slug=options["collection"]
        )
        with ProgressBar("documents") as bar:
            done = write_output(
                options["output"],
                lambda file: services.export_collection(
                    collection=collection,
                    file=file,
                    with_vectors=options["with_vectors"],
                    on_progress=bar.show,
                ),
            )
        warnings = [f"{pluralized(done.documents, 'document')}, {pluralized(done.chunks, 'chunk')}"]
        if done.left_out:
            warnings.append(f"{done.left_out:,} without any text yet were left out")
        return CommandOutput(warnings=warnings)
