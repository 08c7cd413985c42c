"""URLs of the pages of sources, and the address that others call."""

from django.urls import path

from sources import hooks, views

urlpatterns = [
    path("sources/", views.index, name="sources"),
    path("sources/new/<slug:kind>/", views.new, name="source_new"),
    path("sources/<int:pk>/", views.detail, name="source"),
    path("sources/<int:pk>/change/", views.change, name="source_change"),
    path("sources/<int:pk>/preview/", views.preview, name="source_preview"),
    path("sources/<int:pk>/run/", views.run, name="source_run"),
    path("sources/<int:pk>/cancel/", views.cancel, name="source_cancel"),
    path("sources/<int:pk>/retry/", views.retry, name="source_retry"),
    path("sources/<int:pk>/webhook/", views.webhook, name="source_webhook"),
    path("sources/<int:pk>/remove/", views.remove, name="source_remove"),
    path("hooks/sources/<int:pk>/", hooks.source_hook, name="source_hook"),
]
