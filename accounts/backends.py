"""Where names and passwords are looked at: for the login page, the admin, and HTTP Basic."""

from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth.backends import ModelBackend

from accounts.attempts import Attempt
from accounts.models import Membership, User
from common.compiled import CompiledQuery
from common.fence import unfenced

_MEMBERSHIPS = CompiledQuery(
    lambda: (
        Membership.objects.filter(user=0)
        .select_related("user", "workspace")
        .order_by("workspace__name")
    )
)


class AccountBackend(ModelBackend):
    """Django's, which takes the same time for accounts that do not exist, with failures counted.

    `authenticate` raises TooManyRequests.
    """

    def authenticate(
        self, request: Any, username: str | None = None, password: str | None = None, **kwargs: Any
    ) -> Any:
        account = kwargs.get(User.USERNAME_FIELD) if username is None else username
        if account is None or password is None:
            return None
        attempt = Attempt(account=account, request=request)
        attempt.check()
        user = super().authenticate(request, username=account, password=password)
        if user is None:
            attempt.fail()
        else:
            attempt.check()
        return user

    def get_user(self, user_id: Any) -> Any:
        # Before anybody knows who asks, which the fence would look up by this very user.
        with unfenced():
            own = _MEMBERSHIPS.read(user_id)
            if not own:
                return super().get_user(user_id)
        user = own[0].user
        user.own_memberships = own
        return user if self.user_can_authenticate(user) else None

    async def aauthenticate(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        return await sync_to_async(self.authenticate)(request, *args, **kwargs)
