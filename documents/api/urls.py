"""Addresses of the documents API."""

from rest_framework.routers import SimpleRouter

from documents.api.views import CollectionViewSet, DocumentViewSet, RunViewSet

router = SimpleRouter(use_regex_path=False)
router.register("collections", CollectionViewSet, basename="collection")
router.register("documents", DocumentViewSet, basename="document")
router.register("runs", RunViewSet, basename="run")

urlpatterns = router.urls
