"""Operations of the API, declared once: `operation` says what a handler takes and answers, and the
description tells the same."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

from django.http.response import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.response import Response

from common.api import ErrorSerializer

Handler = Callable[..., Any]


def operation(
    id: str,
    answer: Any = None,
    *,
    body: Any = None,
    request: Any = None,
    status: int = 200,
    errors: Sequence[int] = (),
    examples: Sequence[Any] = (),
) -> Callable[[Handler], Handler]:
    """Decorator of a handler of a `WorkspaceView`. The first paragraph of its docstring is the
    summary, others are the description.

    A handler with a `body`, a serializer, gets the validated one by this name. It returns what the
    view's `represent` makes an answer of, by the serializer `answer`, or a response; an operation
    without an answer returns nothing. `answer` is a mapping by status where there are several, and
    by status and type where it is no JSON. `request` describes a body that the handler reads
    itself. `errors` are statuses that other operations do not have.
    """
    responses = dict(answer) if isinstance(answer, Mapping) else {status if answer else 204: answer}
    serializer = next(iter(responses.values()))
    responses |= dict.fromkeys(errors, ErrorSerializer)

    def decorate(handler: Handler) -> Handler:
        summary, *paragraphs = (inspect.getdoc(handler) or "").split("\n\n")

        @wraps(handler)
        def handle(self: Any, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if body is not None:
                kwargs["body"] = self.validated(body)
            result = handler(self, *args, **kwargs)
            if isinstance(result, HttpResponseBase):
                return result
            if serializer is None:
                return Response(status=204)
            return Response(self.represent(serializer, result), status=status)

        handle.__doc__ = None  # or it would be the description, where there is none
        described: Handler = extend_schema(
            operation_id=id,
            summary=" ".join(summary.split()).removesuffix("."),
            description="\n\n".join(" ".join(each.split()) for each in paragraphs) or None,
            request=request or body,
            responses=responses,
            examples=[*examples],
        )(handle)
        return described

    return decorate
