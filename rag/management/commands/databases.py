"""`manage.py databases`: connections on which queries over catalogued databases are run."""

import os
from argparse import ArgumentParser
from typing import Any

from pydantic import SecretStr

from accounts.services import DEFAULT_WORKSPACE, get_workspace_by_slug
from common.console import CommandOutput, Options, ServiceCommand
from common.errors import NotFound
from common.options.commandline import add_options
from common.text import pluralized
from documents.services import get_collection
from rag.models import DatabaseConnection
from rag.services import databases as services
from rag.sql.options import DatabaseOptions

PASSWORD_VARIABLE = "DATABASE_PASSWORD"  # noqa: S105 (the name of a variable)


class Command(ServiceCommand):
    help = (
        "Connections on which the pipeline `sql` runs its queries, by roles that only read. Exit"
        " code: 0 done, 2 not."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        shared = ArgumentParser(add_help=False)
        shared.add_argument(
            "--workspace", default=DEFAULT_WORKSPACE, metavar="SLUG", help="slug of the workspace"
        )
        add = self.add_actions(parser, shared)
        add("list", list_databases, "the connections of the workspace")
        adding = add("add", add_database, "connect a database; it is tried first")
        adding.add_argument("address", help="such as postgresql://db.example.org:5432/shop")
        adding.add_argument("username", help="a role that may read and nothing else")
        adding.add_argument(
            "--collection", required=True, metavar="SLUG", help="where its tables are catalogued"
        )
        adding.add_argument(
            "--password",
            type=SecretStr,
            help=f"also taken from {PASSWORD_VARIABLE}, which other users of this machine do not"
            " see",
        )
        add_options(adding, DatabaseOptions, skip={"address", "username", "password"})
        adding.add_argument(
            "--access",
            nargs="+",
            metavar="NAME",
            help="members and groups who may run queries (default: who sees the tables)",
        )
        for name, act, meaning in (
            ("try", try_database, "try it, and look at the rights of its role"),
            ("remove", remove_database, "forget it with its password"),
        ):
            made = add(name, act, meaning)
            made.add_argument("name", help="by which it is listed")
        add("encrypt", encrypt_passwords, "encrypt all passwords by the newest key")


def list_databases(options: Options) -> CommandOutput:
    rows = [_report(row) for row in _connections(options)]
    headings = ("name", "address", "username", "collection", "enabled")
    cells = [
        [*(row[name] for name in headings[:-1]), "yes" if row["is_enabled"] else ""] for row in rows
    ]
    lines = [] if rows else ["There is none: queries are written, and not run."]
    return CommandOutput(rows, lines, headings=headings, rows=cells)


def add_database(options: Options) -> CommandOutput:
    password = options["password"] or SecretStr(os.environ.get(PASSWORD_VARIABLE, ""))
    workspace = get_workspace_by_slug(options["workspace"])
    row, trial = services.connect_database(
        collection=get_collection(workspace=workspace, slug=options["collection"]),
        options=DatabaseOptions.pick(
            options, password=password if password.get_secret_value() else None
        ),
        access=options["access"],
    )
    return CommandOutput(
        _report(row),
        [f"{row} is connected: PostgreSQL {trial.server_version}, by a role that only reads."],
        warnings=trial.warnings,
    )


def try_database(options: Options) -> CommandOutput:
    row = _connection(options)
    trial = services.try_connection(row)
    return CommandOutput(
        {"server_version": trial.server_version, "warnings": list(trial.warnings)},
        [f"{row} answers: PostgreSQL {trial.server_version}, by a role that only reads."],
        warnings=trial.warnings,
    )


def remove_database(options: Options) -> CommandOutput:
    row = _connection(options)
    report = _report(row)
    services.remove_connection(connection=row)
    return CommandOutput(report, [f"{row} is removed."])


def encrypt_passwords(options: Options) -> CommandOutput:
    count = services.encrypt_anew()
    return CommandOutput({"passwords": count}, [f"{pluralized(count, 'password')} encrypted anew."])


def _connections(options: Options) -> list[DatabaseConnection]:
    workspace = get_workspace_by_slug(options["workspace"])
    return services.managed_connections(user=None, workspace=workspace)


def _connection(options: Options) -> DatabaseConnection:
    rows = _connections(options)
    for row in rows:
        if row.name == options["name"]:
            return row
    names = ", ".join(row.name for row in rows[:20])
    raise NotFound(f"There is no connection “{options['name']}”. There are: {names or 'none yet'}.")


def _report(row: DatabaseConnection) -> dict[str, Any]:
    return {
        **services.options_of(row),
        "collection": row.collection.slug,
        "has_password": bool(row.credentials),
        "access": row.access,
        "is_enabled": row.is_enabled,
        "server_version": row.server_version,
    }
