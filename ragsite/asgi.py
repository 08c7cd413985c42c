"""ASGI entry point."""

import os

import django
from django.core.handlers.asgi import ASGIHandler

from ragsite.requests import AsyncRequest

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")


class Handler(ASGIHandler):
    """Django's handler, with requests that tolerate invalid charsets."""

    request_class = AsyncRequest


django.setup(set_prefix=False)
application = Handler()
