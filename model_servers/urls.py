"""URLs of the pages of models."""

from django.urls import path

from model_servers import views

urlpatterns = [
    path("models/", views.index, name="models"),
    path("models/found/", views.found, name="models_found"),
    path("models/choose/", views.choose, name="models_choose"),
    path("models/new/<slug:preset>/", views.new, name="model_new"),
    path("models/<int:pk>/", views.detail, name="model_connection"),
    path("models/<int:pk>/change/", views.change, name="model_change"),
    path("models/<int:pk>/default/", views.default, name="model_default"),
    path("models/<int:pk>/use/", views.use, name="model_use"),
    path("models/<int:pk>/remove/", views.remove, name="model_remove"),
]
