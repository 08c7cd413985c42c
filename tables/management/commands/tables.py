"""`manage.py tables …`: tables of documents read again."""

from argparse import ArgumentParser

from accounts.services import DEFAULT_WORKSPACE, get_workspace_by_slug
from common.console import CommandOutput, Options, ServiceCommand
from common.text import pluralized
from documents.services import get_collection
from tables import services


class Command(ServiceCommand):
    help = "Tables of documents. Exit code: 0 done, 2 nothing was done."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add = self.add_actions(parser)
        rebuilding = add(
            "rebuild",
            rebuild,
            "read the tables of documents that were loaded before tables were kept",
        )
        rebuilding.add_argument("--collection", default="", help="slug; default: of all")
        rebuilding.add_argument("--workspace", default=DEFAULT_WORKSPACE, help="slug")

    def is_about_site(self, options: Options) -> bool:
        return not options["collection"]


def rebuild(options: Options) -> CommandOutput:
    collection = None
    if slug := options["collection"]:
        collection = get_collection(
            workspace=get_workspace_by_slug(options["workspace"]), slug=slug
        )
    *_, (looked, read) = [(0, 0), *services.rebuild_tables(collection)]
    return CommandOutput(
        data={"documents": looked, "with_tables": read},
        lines=[f"{pluralized(looked, 'document')} looked at, {read:,} of them with tables."],
    )
