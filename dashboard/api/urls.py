"""Addresses of the API of the dashboard."""

from django.urls import path

from dashboard.api.views import DashboardView

urlpatterns = [path("dashboard/", DashboardView.as_view(), name="dashboard")]
