"""`manage.py loginlink`: a one-time link, for whoever has lost password or second factor."""

from argparse import ArgumentParser

from django.conf import settings
from django.urls import reverse

from accounts.models import User
from accounts.sign_in import LINK_SECONDS, make_link
from common.console import CommandOutput, Options, ServiceCommand
from common.errors import NotFound


class Command(ServiceCommand):
    stays_in_main = True
    help = (
        "Print a link that logs a user in once, within 15 minutes, without password and second"
        " factor. Exit code: 0 done, 2 not."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username", help="whom it logs in")
        parser.add_argument(
            "--site", default="", help="address of the site, such as https://docs.example.org"
        )

    def run(self, options: Options) -> CommandOutput:
        user = User.objects.filter(username=options["username"]).first()
        if user is None or not user.is_active:
            raise NotFound(f"There is no user “{options['username']}” who may log in.")
        path = reverse("link_login", args=make_link(user))
        scheme = "https" if settings.HTTPS else "http"
        host = next((each for each in settings.ALLOWED_HOSTS if each[:1].isalnum()), "localhost")
        link = f"{options['site'].rstrip('/') or f'{scheme}://{host}'}{path}"
        told = f"This link logs {user.username} in once, within {LINK_SECONDS // 60} minutes:"
        return CommandOutput({"username": user.username, "link": link}, lines=(told, link))
