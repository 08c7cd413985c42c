"""Concatenation of weighted search vectors."""

from django.contrib.postgres.search import SearchVectorField
from django.db.models import Func


def joined(*parts: Func) -> Func:
    """`part || part || …`: positions of later parts follow those of earlier ones."""
    return Func(
        *parts, template="%(expressions)s", arg_joiner=" || ", output_field=SearchVectorField()
    )
