"""/health/…"""

from django.urls import path

from ragsite.health import views

urlpatterns = [
    path("live", views.live, name="health_live"),
    path("ready", views.ready, name="health_ready"),
]
