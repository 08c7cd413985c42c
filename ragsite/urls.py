"""Every URL of the site."""

from django.contrib import admin
from django.urls import include, path

from ragsite import views
from ragsite.metrics.views import metrics

admin.autodiscover()

urlpatterns = [
    # before a hundred addresses of pages, which are tried one by one
    path("api/", include("ragsite.api")),
    path("", include("search.urls")),
    path("", include("documents.urls")),
    path("", include("graph.urls")),
    path("", include("memory.urls")),
    path("", include("rag.urls")),
    path("", include("dashboard.urls")),
    path("", include("accounts.urls")),
    path("health/", include("ragsite.health.urls")),
    path("metrics", metrics, name="metrics"),
    path("docs/", include("ragsite.handbook.urls")),
    path("admin/login/", views.admin_login),
    path("admin/", admin.site.urls),
]

handler400 = "ragsite.views.bad_request"
handler403 = "ragsite.views.forbidden"
handler404 = "ragsite.views.not_found"
handler500 = "ragsite.views.server_error"
