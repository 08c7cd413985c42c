"""`manage.py demo`: a workspace, a login, an invented firm and this documentation to search in."""

from argparse import ArgumentParser

from django.urls import reverse

from accounts.services import ensure_login, get_or_create_workspace
from accounts.sign_in import make_link
from common.console import CommandOutput, Options, ServiceCommand
from common.listening import listen_defaults, site_url
from common.text import pluralized
from documents import services
from documents.demo_corpus import (
    DOCS_COLLECTION,
    FIRM_COLLECTION,
    LANGUAGES,
    docs_sources,
    firm_pages,
    firm_sources,
)

USERNAME = "demo"


class Command(ServiceCommand):
    help = (
        "Make the login “demo” (its random password is printed once) and ingest the documents of an"
        f" invented firm into the collection “{FIRM_COLLECTION}” and docs/ into"
        f" “{DOCS_COLLECTION}”. Safe to run again. Exit code: 0 there, 2 not."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--queue",
            action="store_true",
            help="leave the documents to the workers, as `make run` does; a new login is printed"
            " with a link that logs in once",
        )

    def run(self, options: Options) -> CommandOutput:
        workspace = get_or_create_workspace()
        user, password = ensure_login(username=USERNAME, workspace=workspace)
        # First of all: it is shown only this once, whatever happens next.
        self.stdout.write(f"Login: {USERNAME}")
        self.stdout.write(
            f"Password: {password}"
            if password
            else f"Password: as before (reset it: manage.py changepassword {USERNAME})"
        )
        if options["queue"]:
            if password:
                # Pages of other apps are not needed for it, and take a second to import.
                path = reverse("link_login", urlconf="accounts.urls", args=make_link(user))
                self.stdout.write(
                    f"Link: {site_url(*listen_defaults())}{path} (logs in once, within 15 minutes)"
                )
            self.stdout.flush()
            count = services.queue_demo(workspace=workspace)
            said = f"The site reads {pluralized(count, 'document')} of the demo when it runs."
            return CommandOutput(lines=[said] if count else [])
        lines = []
        for slug, sources, described in (
            (FIRM_COLLECTION, firm_sources(), "the documents of an invented firm"),
            (DOCS_COLLECTION, docs_sources(), "the project's own documentation"),
        ):
            collection = services.get_or_create_collection(
                workspace=workspace, slug=slug, languages=LANGUAGES
            )
            run = services.ingest_inline(collection=collection, sources=sources, source=described)
            passages = pluralized(services.chunk_count(collection=collection), "passage")
            documents = pluralized(run.ready + run.skipped, "document")
            lines.append(f"Demo corpus: {passages} of {documents} in “{collection.name}”.")
        firm = services.get_or_create_collection(workspace=workspace, slug=FIRM_COLLECTION)
        # By the workers: OCR would hold up the start of the site.
        pages = services.ingest_sources(
            collection=firm, sources=firm_pages(), source="contracts, letters of an invented firm"
        )
        if waiting := pages.total - pages.skipped:
            lines.append(f"The site reads {pluralized(waiting, 'document')} more when it runs.")
        return CommandOutput(lines=lines)
