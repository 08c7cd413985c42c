"""Addresses of the documents API."""

from rest_framework.routers import SimpleRouter

from documents.api.runs import RunViewSet
from documents.api.views import CollectionViewSet, DocumentViewSet

router = SimpleRouter(use_regex_path=False)
router.register("collections", CollectionViewSet, basename="collection")
router.register("documents", DocumentViewSet, basename="document")
router.register("runs", RunViewSet, basename="run")

urlpatterns = router.urls
