"""Set up the site for scripts, without a management command."""

import os


def setup() -> None:
    """Make the site ready for what a script imports next: settings, apps, embedded servers.

    The settings come from the environment and `.env`, as for `manage.py`. Raises
    UnusableDatabaseError for a DATABASE_URL that is none.
    """
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")
    import django  # noqa: PLC0415 (after the settings are named)

    from ragsite import bootstrap  # noqa: PLC0415
    from ragsite.bootstrap import check_urls  # noqa: PLC0415
    from ragsite.environment import load_env_file  # noqa: PLC0415

    load_env_file()
    check_urls(os.environ)
    bootstrap.ensure_services()
    django.setup()
