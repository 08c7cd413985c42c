"""`manage.py demo`: a workspace, a login and the project's own documentation to search in."""

from itertools import chain

from django.conf import settings

from accounts.services import ensure_login, get_or_create_workspace
from common.console import CommandOutput, Options, ServiceCommand
from common.text import pluralized
from documents import services
from documents.ingestion.sources import discover

USERNAME = "demo"
COLLECTION = "ragsite-docs"


class Command(ServiceCommand):
    help = (
        "Make the login “demo” (its random password is printed once) and ingest docs/ into the"
        " collection “ragsite-docs”. Safe to run again. Exit code: 0 there, 2 not."
    )

    def run(self, options: Options) -> CommandOutput:
        workspace = get_or_create_workspace()
        _, password = ensure_login(username=USERNAME, workspace=workspace)
        # First of all: it is shown only this once, whatever happens next.
        self.stdout.write(f"Login: {USERNAME}")
        self.stdout.write(
            f"Password: {password}"
            if password
            else f"Password: as before (reset it: manage.py changepassword {USERNAME})"
        )
        collection = services.get_or_create_collection(workspace=workspace, slug=COLLECTION)
        run = services.ingest_inline(
            collection=collection,
            sources=chain(
                discover([settings.BASE_DIR / "README.md"]),
                discover([settings.BASE_DIR / "docs"], glob="**/*.md"),
            ),
            source="the project's own documentation",
        )
        passages = pluralized(services.chunk_count(collection=collection), "passage")
        documents = pluralized(run.ready + run.skipped, "document")
        return CommandOutput(
            lines=[f"Demo corpus: {passages} of {documents} in “{collection.name}”."]
        )
