"""Handlers of the SDK's server, whose work blocks: database and models are for threads."""

import logging
from collections.abc import Awaitable, Callable
from threading import Event
from typing import Any, TypeVar

from mcp.server import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import INTERNAL_ERROR, INVALID_PARAMS

from common.errors import RagsiteError
from common.fence import fenced_to
from inference.base import InferenceError
from rag.context import RagContext
from rag.threads import Lane

T = TypeVar("T")
Request = ServerRequestContext[Any, Any]
#: Who asks, found out in the thread of the work; what it does ends when the event is set.
Caller = Callable[[Request, Event], RagContext]

logger = logging.getLogger(__name__)
_lane = Lane("rag.mcp", at_a_time=64)


def beside(
    caller: Caller, work: Callable[[RagContext, Any], T]
) -> Callable[[Request, Any], Awaitable[T]]:
    """A handler that does `work(context, params)` in a thread, until its request is cancelled.

    What is wrong with the request becomes a protocol error with its cure; what is wrong with the
    site goes to the log.
    """

    async def handler(request: Request, params: Any) -> T:
        def answer(cancelled: Event) -> T:
            context = caller(request, cancelled)
            with fenced_to(context.workspace.pk):
                return work(context, params)

        try:
            return await _lane.run(answer)
        except MCPError:
            raise
        except (RagsiteError, InferenceError) as error:
            raise MCPError(INVALID_PARAMS, str(error)) from error
        except Exception as error:
            logger.exception("%s failed", request.method)
            message = "The site made a mistake. Its log says which."
            raise MCPError(INTERNAL_ERROR, message) from error

    return handler
