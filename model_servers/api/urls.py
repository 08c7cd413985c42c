"""URLs of the API of connections."""

from rest_framework.routers import SimpleRouter

from model_servers.api.views import ModelConnectionViewSet

router = SimpleRouter(use_regex_path=False)
router.register("model-connections", ModelConnectionViewSet, basename="model-connection")

urlpatterns = router.urls
