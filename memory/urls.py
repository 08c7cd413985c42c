"""The pages of a user's memory."""

from django.urls import path

from memory.views import contexts, facts
from memory.views import owner as views_storage

urlpatterns = [
    path("memory/", facts.fact_list, name="memory"),
    path("memory/facts/<str:key>/", facts.fact_detail, name="memory_fact"),
    path("memory/facts/<str:key>/end/", facts.end_fact, name="memory_fact_end"),
    path("memory/facts/<str:key>/forget/", facts.forget_fact, name="memory_fact_forget"),
    path("memory/contexts/", contexts.context_list, name="memory_contexts"),
    path("memory/said/", contexts.find_and_forget, name="memory_said"),
    path("memory/contexts/<int:pk>/", contexts.context_detail, name="memory_context"),
    path("memory/contexts/<int:pk>/forget/", contexts.forget_context, name="memory_context_forget"),
    path("memory/reading/", views_storage.conversation_list, name="memory_reading"),
    path("memory/reading/<int:pk>/retry/", views_storage.retry_conversation, name="memory_retry"),
    path("memory/storage/", views_storage.storage_page, name="memory_storage"),
    path("memory/storage/export/", views_storage.export_memory_file, name="memory_export"),
    path("memory/storage/erase/", views_storage.erase_page, name="memory_erase"),
]
