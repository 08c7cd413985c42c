"""Files in."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from accounts.choosing import workspace_of
from accounts.services import require_editor
from common.errors import InvalidInput
from common.web import page
from documents.forms import UploadForm
from documents.services import get_collection, ingest_uploads


@require_http_methods(["GET", "HEAD", "POST"])
@page
def upload(request: HttpRequest, slug: str) -> HttpResponse:
    """Store what is sent and go to its run, where the rest can be watched."""
    workspace = workspace_of(request)
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
                access=form.access_list(),
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
    }
    status = 400 if form.errors else 200
    return render(request, "documents/upload.html", context, status=status)
