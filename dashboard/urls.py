"""Pages of the dashboard."""

from django.urls import path

from dashboard import views

urlpatterns = [
    path("dashboard/", views.dashboard_page, name="dashboard"),
    path("dashboard/models/", views.usage_page, name="dashboard_usage"),
    path("dashboard/quality/", views.quality_page, name="dashboard_quality"),
    path("dashboard/quality/<slug:slug>/", views.collection_quality, name="dashboard_quality_of"),
    path("dashboard/quality/<slug:slug>/measure/", views.measure, name="dashboard_measure"),
]
