"""`python -m tests.access`: write docs/reference/access.md anew."""

import os

import django

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")
    django.setup()
    from tests.access.telling import PAGE, page

    PAGE.write_text(page())
