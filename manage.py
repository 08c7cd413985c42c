#!/usr/bin/env python3
"""Django's command line, with the services a command needs made ready before it runs."""

import gc
import os
import sys


def main() -> None:
    """Run the command named on the command line."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")
    gc.disable()  # what is imported stays: looking for garbage in it takes a fifth of a start
    try:
        from django.core.management import (  # noqa: PLC0415
            execute_from_command_line,
            load_command_class,
        )
    except ImportError:
        sys.exit("Django is not installed here: run `make setup`, then .venv/bin/python manage.py")
    from ragsite import bootstrap  # noqa: PLC0415 - needs Django

    bootstrap.prepare(sys.argv)
    gc.freeze()
    gc.enable()
    if sys.argv[1:2] == ["services"]:  # it needs settings, and none of the apps
        load_command_class("ragsite", "services").run_from_argv(sys.argv)
        return
    bootstrap.run(execute_from_command_line, sys.argv)


if __name__ == "__main__":
    main()
