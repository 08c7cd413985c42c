"""Addresses of the API of the keys and the history."""

from rest_framework.routers import SimpleRouter

from accounts.api.views import ApiKeyViewSet, ChangeViewSet

router = SimpleRouter(use_regex_path=False)
router.register("keys", ApiKeyViewSet, basename="key")
router.register("changes", ChangeViewSet, basename="change")

urlpatterns = router.urls
