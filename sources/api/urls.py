"""URLs of the sources API."""

from rest_framework.routers import SimpleRouter

from sources.api.views import SourceViewSet

router = SimpleRouter(use_regex_path=False)
router.register("sources", SourceViewSet, basename="source")

urlpatterns = router.urls
