"""`manage.py services start|stop|status`: the embedded PostgreSQL and Valkey by hand."""

import json
import sys
from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from ragsite import embedded
from ragsite.bootstrap import used_services

_REPLACED_BY = {"postgresql": "DATABASE_URL", "valkey": "REDIS_URL"}


class Command(BaseCommand):
    """Exit codes: 0 all is as asked, 1 a service in use is down, 2 an error."""

    help = (
        "Start, stop or describe the embedded PostgreSQL and Valkey under VAR_DIR. Exit code: 0"
        " done, 1 a service in use is down, 2 not done."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("action", choices=["start", "stop", "status"])
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *, action: str, **options: Any) -> None:
        used = used_services()
        try:
            if action == "start":
                embedded.start(settings.VAR_DIR, only=used)
            elif action == "stop":
                embedded.stop(settings.VAR_DIR)
        except embedded.ServiceError as error:
            raise CommandError(str(error), returncode=2) from error
        services = embedded.status(settings.VAR_DIR)
        if options["json"]:
            rows = [asdict(s) | {"used": s.name in used} for s in services]
            self.stdout.write(json.dumps({"var_dir": str(settings.VAR_DIR), "services": rows}))
        else:
            for service in services:
                words = [f"{service.name:10}", service.detail]
                if service.running:
                    words += [f"version {service.version}", f"process {service.pid}"]
                    words.append(service.endpoint)
                if service.name not in used:
                    words.append(f"(not used: {_REPLACED_BY[service.name]} is set)")
                self.stdout.write("  ".join(words))
        if action != "stop" and not all(s.running for s in services if s.name in used):
            sys.exit(1)
