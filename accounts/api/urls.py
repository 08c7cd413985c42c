"""Addresses of the API of keys, history, members, groups and invitations."""

from rest_framework.routers import SimpleRouter

from accounts.api.changes import ChangeViewSet
from accounts.api.keys import ApiKeyViewSet
from accounts.api.members import GroupViewSet, InvitationViewSet, MemberViewSet

router = SimpleRouter(use_regex_path=False)
router.register("keys", ApiKeyViewSet, basename="key")
router.register("changes", ChangeViewSet, basename="change")
router.register("members", MemberViewSet, basename="member")
router.register("groups", GroupViewSet, basename="group")
router.register("invitations", InvitationViewSet, basename="invitation")

urlpatterns = router.urls
