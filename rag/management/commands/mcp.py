"""`manage.py mcp`: serve the Model Context Protocol over stdio to the client that started this."""

import os
from argparse import ArgumentParser
from pathlib import Path
from threading import Event

from django.core.management.base import CommandError
from django.db import DatabaseError

from common.console import FATAL, Options, ServiceCommand
from common.errors import InvalidInput
from common.sql import release_connection

KEY_VARIABLE = "RAGSITE_API_KEY"


class Command(ServiceCommand):
    help = (
        "Serve tools and documents over standard input and output to the client of the Model"
        " Context Protocol that started this, until it ends. The API key that says on whose behalf"
        f" stands in {KEY_VARIABLE}, or in a file. Exit code: 0 ended by the client, 2 not begun."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--key-file",
            type=Path,
            metavar="FILE",
            help=f"holds the API key (default: the variable {KEY_VARIABLE})",
        )

    def run(self, options: Options) -> None:
        from rag.mcp.server import authenticate_caller, serve  # noqa: PLC0415

        # The key is read from where it does not appear in a process list.
        key_file: Path | None = options["key_file"]
        try:
            secret = os.environ.get(KEY_VARIABLE, "") if key_file is None else key_file.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"{key_file} cannot be read: {error}") from error
        secret = secret.strip()
        if not secret:
            raise InvalidInput(
                "There is no API key. Make one on the site under API keys, and put it into"
                f" {KEY_VARIABLE} or into the file that --key-file names."
            )
        try:
            authenticate_caller(secret, Event())
        except DatabaseError as error:
            raise CommandError(
                f"The database cannot be reached: {str(error).splitlines()[0]}. Is the site up?",
                returncode=FATAL,
            ) from error
        finally:
            release_connection()
        serve(secret)
