"""Pages of the dashboard."""

from django.urls import path

from dashboard.views import pages, quality

urlpatterns = [
    path("dashboard/", pages.dashboard_page, name="dashboard"),
    path("dashboard/quality/", quality.quality_page, name="dashboard_quality"),
    path("dashboard/quality/<slug:slug>/", quality.quality_of, name="dashboard_quality_of"),
    path("dashboard/quality/<slug:slug>/measure/", quality.measure, name="dashboard_measure"),
]
