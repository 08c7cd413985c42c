"""WSGI entry point."""

import os

import django
from django.core.handlers.wsgi import WSGIHandler

from ragsite.requests import Request

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")


class Handler(WSGIHandler):
    """Django's own, with requests that no header breaks."""

    request_class = Request


django.setup(set_prefix=False)
application = Handler()
