"""Pages of collections: the list, one collection, its settings, its deletion, uploads."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.db.models import OuterRef
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext, gettext_noop
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.current_workspace import request_workspace
from accounts.services import require_editor
from common import features
from common.errors import InvalidInput
from common.fields import RowCount
from common.pagination import newest_first
from common.web import errors_as_messages, errors_in_form, login_required_page
from documents.forms import CollectionChangeForm, CollectionForm, DeleteCollectionForm, UploadForm
from documents.models import Chunk, Collection, Document, IngestionRun
from documents.services import (
    create_collection,
    delete_collection,
    get_collection,
    ingest_uploads,
    model_notes,
    move_to_fitting_model,
    open_move,
    queue_reembedding,
    update_collection,
)

PREVIEWED_DOCUMENTS = 10
GRAPH_CHANGE_MESSAGES: dict[str, str] = {
    Collection.Graph.RULES: gettext_noop("All its documents are being read for the graph."),
    Collection.Graph.LLM: gettext_noop(
        "The chat model is reading all its documents for the graph."
    ),
    Collection.Graph.OFF: gettext_noop("What the graph knew from its documents is forgotten."),
}


@require_http_methods(["GET", "HEAD", "POST"])
@login_required_page
def index(request: HttpRequest) -> HttpResponse:
    """All collections, and the form for a new one."""
    workspace = request_workspace(request)
    posted = request.method == "POST"
    form = CollectionForm(request.POST if posted else None)
    if posted:
        require_editor(user=request.user, workspace=workspace)
        if form.is_valid():
            with errors_in_form(form, "name"):
                collection = create_collection(workspace=workspace, **form.cleaned_data)
                messages.success(
                    request,
                    gettext("“{collection}” is there. Now put files into it.").format(
                        collection=collection
                    ),
                )
                return redirect("upload", slug=collection.slug)
    documents = Document.objects.current().filter(collection=OuterRef("pk"))
    collections = (
        Collection.objects.visible_to(request.user)
        .filter(workspace=workspace)
        .annotate(
            document_count=RowCount(documents),
            failed_count=RowCount(documents.filter(status=Document.Status.FAILED)),
        )
    )
    context = {"collections": collections, "form": form}
    status = 400 if form.errors else 200
    return render(request, "documents/collections.html", context, status=status)


@require_safe
@login_required_page
def detail(request: HttpRequest, slug: str) -> HttpResponse:
    """One collection: its documents, newest first."""
    collection = _get_collection(request, slug)
    documents = Document.objects.visible_to(request.user).filter(collection=collection).current()
    status = request.GET.get("status", "")
    shown = documents.filter(status=status) if status in Document.Status.values else documents
    context = {
        "collection": collection,
        "page": newest_first(shown.select_related("duplicate_of"), request.GET),
        "status": status,
        "statuses": Document.Status.choices,
        "active_run": IngestionRun.objects.visible_to(request.user)
        .filter(collection=collection, finished_at=None)
        .first(),
        "notes": model_notes(collection, documents),
        "graph": collection.get_graph_display() if features.is_on("graph") else gettext("Off"),
        "model": collection.space.model_name
        if collection.has_vectors
        else gettext("none, found by words only"),
    }
    return render(request, "documents/collection.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required_page
def change(request: HttpRequest, slug: str) -> HttpResponse:
    """Change name, description, language, and how documents are chunked and read for the graph."""
    collection = _get_collection(request, slug)
    require_editor(user=request.user, workspace=collection.workspace)
    form = CollectionChangeForm.of(collection, request.POST if request.method == "POST" else None)
    before, graph_before = _chunking_settings(collection), collection.graph
    if form.is_valid():
        with errors_in_form(form, "name"):
            update_collection(collection=collection, **form.cleaned_data)
            kept = gettext(
                "Documents that are there stay as they are until they are ingested again."
            )
            told = [gettext("“{collection}” is changed.").format(collection=collection)]
            told += [kept] if _chunking_settings(collection) != before else []
            told += (
                [gettext(GRAPH_CHANGE_MESSAGES[collection.graph])]
                if collection.graph != graph_before
                else []
            )
            messages.success(request, " ".join(told))
            return redirect("collection", slug=collection.slug)
    context = {"collection": collection, "form": form}
    status = 400 if form.errors else 200
    return render(request, "documents/collection_change.html", context, status=status)


def _chunking_settings(collection: Collection) -> tuple[Any, ...]:
    return collection.chunker, collection.chunker_options, collection.default_language


@require_http_methods(["GET", "HEAD", "POST"])
@login_required_page
def delete(request: HttpRequest, slug: str) -> HttpResponse:
    """Show what will be deleted; delete when the name is typed."""
    collection = _get_collection(request, slug)
    require_editor(user=request.user, workspace=collection.workspace)
    posted = request.method == "POST"
    form = DeleteCollectionForm(request.POST if posted else None, expected=collection.name)
    if posted and form.is_valid():
        delete_collection(collection=collection)
        messages.success(
            request,
            gettext("“{collection}” and everything in it is deleted.").format(
                collection=collection
            ),
        )
        return redirect("collections")
    documents = collection.documents.filter(is_current=True)
    context = {
        "collection": collection,
        "form": form,
        "documents": documents.visible_to(request.user)[:PREVIEWED_DOCUMENTS],
        "document_count": documents.count(),
        "chunk_count": Chunk.objects.filter(collection=collection).count(),
        "run_count": collection.runs.count(),
    }
    status = 400 if form.errors else 200
    return render(request, "documents/collection_delete.html", context, status=status)


@require_POST
@login_required_page
def move(request: HttpRequest, slug: str) -> HttpResponse:
    """Move the collection to a model that was made for its languages, or go on with a move that
    stopped; back to its page, which shows the progress."""
    collection = _get_collection(request, slug)
    require_editor(user=request.user, workspace=collection.workspace)
    stopped = open_move(collection)
    with errors_as_messages(request):
        if stopped is not None and stopped.collection_id == collection.pk:
            queue_reembedding(
                target=stopped.target, collection=collection, by_hand=False, user=request.user
            )
        else:
            move_to_fitting_model(collection=collection, user=request.user)
    return redirect("collection", slug=collection.slug)


def _get_collection(request: HttpRequest, slug: str) -> Collection:
    return get_collection(workspace=request_workspace(request), slug=slug)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required_page
def upload(request: HttpRequest, slug: str) -> HttpResponse:
    """Store the upload and redirect to its run, which shows the progress."""
    workspace = request_workspace(request)
    collection = get_collection(workspace=workspace, slug=slug)
    require_editor(user=request.user, workspace=workspace)
    posted = request.method == "POST"
    sent = (request.POST, request.FILES) if posted else ()
    form = UploadForm(*sent, workspace_id=workspace.pk)
    if posted and form.is_valid():
        try:
            run = ingest_uploads(
                collection=collection,
                uploads=form.uploads(),
                user=request.user,
                policy=form.policy(),
                store_once=form.cleaned_data["store_once"],
                access=form.cleaned_data.get("access"),
            )
        except InvalidInput as error:
            form.add_error("access" if error.field == "access" else None, str(error))
        else:
            return redirect("run", pk=run.pk)
    context = {
        "collection": collection,
        "form": form,
        "max_bytes": settings.MAX_UPLOAD_BYTES,
        "max_files": settings.MAX_UPLOAD_FILES,
        "notes": model_notes(
            collection, collection.documents.visible_to(request.user).filter(is_current=True)
        ),
    }
    status = 400 if form.errors else 200
    return render(request, "documents/upload.html", context, status=status)
