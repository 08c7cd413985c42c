"""Limits of the tokens that chat models read and write, by workspace and by user, counted in Valkey
as rates are. Begin with `require_tokens`."""

from collections.abc import Iterator

from django.conf import settings
from django.utils.formats import number_format
from django.utils.translation import gettext

from accounts.rate_limits import Rate, TooManyRequests, consume, format_wait, parse_rate, spend

WORKSPACE, USER = "tokens-workspace", "tokens-user"


def require_tokens(*, workspace_id: int, user_id: int | None = None) -> None:
    """Raise TooManyRequests, which says until when, where workspace or user have used up theirs."""
    refusals = {
        WORKSPACE: gettext(
            "This workspace has used up what its language models may read and write: {limit}"
            " tokens. Ask again in {wait}, or choose the model “extractive”."
        ),
        USER: gettext(
            "You have used up what language models may read and write for you: {limit} tokens."
            " Ask again in {wait}, or choose the model “extractive”."
        ),
    }
    for name, caller, rate in _limits(workspace_id, user_id):
        quota = consume(caller=caller, name=name, rate=rate, counts=False)
        if quota is not None and not quota.passes:
            wait = max(quota.wait, 1)
            raise TooManyRequests(
                refusals[name].format(
                    limit=number_format(rate.limit, force_grouping=True),
                    wait=format_wait(wait),
                ),
                retry_after=wait,
            )


def count_tokens(tokens: int, *, workspace_id: int, user_id: int | None = None) -> None:
    """Count what a model has read and written, also beyond the limit."""
    for name, caller, rate in _limits(workspace_id, user_id):
        spend(caller=caller, name=name, rate=rate, amount=tokens)


def _limits(workspace_id: int, user_id: int | None) -> Iterator[tuple[str, str, Rate]]:
    if rate := parse_rate(settings.MODEL_TOKENS_PER_WORKSPACE):
        yield WORKSPACE, f"workspace:{workspace_id}", rate
    if user_id is not None and (rate := parse_rate(settings.MODEL_TOKENS_PER_USER)):
        yield USER, f"user:{user_id}", rate
