"""URLs of the tables API."""

from rest_framework.routers import SimpleRouter

from tables.api.views import TableViewSet

router = SimpleRouter(use_regex_path=False)
router.register("tables", TableViewSet, basename="table")

urlpatterns = router.urls
