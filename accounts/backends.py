"""Verification of names and passwords: for the login page, the admin, and HTTP Basic."""

from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth.backends import ModelBackend

from accounts.models import Membership, User
from accounts.rate_limits import LoginAttempt
from common.rls import bypass_rls
from common.sql import CompiledQuery

_MEMBERSHIPS = CompiledQuery(
    lambda: (
        Membership.objects.filter(user=0)
        .select_related("user", "workspace")
        .order_by("workspace__name")
    )
)


class AccountBackend(ModelBackend):
    """Django's backend, with failed logins counted. Takes the same time for unknown accounts.

    `authenticate` raises TooManyRequests.
    """

    def authenticate(
        self, request: Any, username: str | None = None, password: str | None = None, **kwargs: Any
    ) -> Any:
        account = kwargs.get(User.USERNAME_FIELD) if username is None else username
        if account is None or password is None:
            return None
        attempt = LoginAttempt(account=account, request=request)
        attempt.check()
        user = super().authenticate(request, username=account, password=password)
        if user is None:
            attempt.fail()
        else:
            attempt.check()
        return user

    def get_user(self, user_id: Any) -> Any:
        # Before anybody knows who asks, which row-level security would look up by this very user.
        with bypass_rls():
            own = _MEMBERSHIPS.read(user_id)
            if not own:
                return super().get_user(user_id)
        user = own[0].user
        user.own_memberships = own
        return user if self.user_can_authenticate(user) else None

    async def aauthenticate(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        return await sync_to_async(self.authenticate)(request, *args, **kwargs)
