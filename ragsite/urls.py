"""Every URL of the site."""

from django.contrib import admin
from django.urls import include, path

from ragsite import handbook, health, views
from ragsite.metrics import metrics

admin.autodiscover()

urlpatterns = [
    # before a hundred addresses of pages, which are tried one by one
    path("api/", include("ragsite.api")),
    path("", include("search.urls")),
    path("", include("documents.urls")),
    path("", include("sources.urls")),
    path("", include("model_servers.urls")),
    path("", include("graph.urls")),
    path("", include("tables.urls")),
    path("", include("memory.urls")),
    path("", include("rag.urls")),
    path("", include("dashboard.urls")),
    path("", include("accounts.urls")),
    path("health/live", health.live, name="health_live"),
    path("health/ready", health.ready, name="health_ready"),
    path("metrics", metrics, name="metrics"),
    path("docs/", handbook.docs_page, name="docs"),
    path("docs/search/", handbook.docs_search, name="docs_search"),
    path("docs/images/<str:name>", handbook.docs_image, name="docs_image"),
    path("docs/<path:name>/", handbook.docs_page, name="docs_page"),
    path("admin/login/", views.admin_login),
    path("admin/", admin.site.urls),
]

handler400 = "ragsite.views.bad_request"
handler403 = "ragsite.views.forbidden"
handler404 = "ragsite.views.not_found"
handler500 = "ragsite.views.server_error"
