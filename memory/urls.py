"""The pages of a user's memory."""

from django.urls import path

from memory.views import contexts, facts, reading, storage

urlpatterns = [
    path("memory/", facts.index, name="memory"),
    path("memory/facts/<str:key>/", facts.detail, name="memory_fact"),
    path("memory/facts/<str:key>/end/", facts.end, name="memory_fact_end"),
    path("memory/facts/<str:key>/forget/", facts.forget, name="memory_fact_forget"),
    path("memory/contexts/", contexts.index, name="memory_contexts"),
    path("memory/said/", contexts.said, name="memory_said"),
    path("memory/contexts/<int:pk>/", contexts.detail, name="memory_context"),
    path("memory/contexts/<int:pk>/forget/", contexts.forget, name="memory_context_forget"),
    path("memory/reading/", reading.index, name="memory_reading"),
    path("memory/reading/<int:pk>/retry/", reading.retry, name="memory_retry"),
    path("memory/storage/", storage.index, name="memory_storage"),
    path("memory/storage/export/", storage.export, name="memory_export"),
    path("memory/storage/erase/", storage.erase, name="memory_erase"),
]
