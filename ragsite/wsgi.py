"""WSGI entry point."""

import os

import django
from django.core.handlers.wsgi import WSGIHandler

from ragsite.requests import Request

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")


class Handler(WSGIHandler):
    """Django's handler, with requests that tolerate invalid charsets."""

    request_class = Request


django.setup(set_prefix=False)
application = Handler()
