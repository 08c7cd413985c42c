"""URLs of the documents API."""

from rest_framework.routers import SimpleRouter

from documents.api.chunks import ChunkViewSet, EditViewSet
from documents.api.runs import RunViewSet
from documents.api.spaces import SpaceViewSet
from documents.api.views import CollectionViewSet, DocumentViewSet

router = SimpleRouter(use_regex_path=False)
router.register("collections", CollectionViewSet, basename="collection")
router.register("documents", DocumentViewSet, basename="document")
router.register("chunks", ChunkViewSet, basename="chunk")
router.register("edits", EditViewSet, basename="edit")
router.register("runs", RunViewSet, basename="run")
router.register("spaces", SpaceViewSet, basename="space")

urlpatterns = router.urls
