"""Data sources, what each has listed, their runs, and messages about what is wrong with them."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy

from accounts.models import User, Workspace, WorkspaceOwnedQuerySet
from common.models import TimestampedModel
from common.queues import QueuedWork
from documents.models import Collection


class DataSource(TimestampedModel, QueuedWork):
    """A place outside that keeps a collection up to date. As a row of a queue it is `waiting` for
    its next run at `due_at` (never, where that is empty), `running`, or `dead`: stopped until
    somebody looks at it, for the reason in `error`."""

    class State(models.TextChoices):
        WAITING = "waiting"
        RUNNING = "running"
        DEAD = "dead", "stopped"

    class Problem(models.TextChoices):
        """Problems that send a notice, once until a run succeeds."""

        LATE = "late", gettext_lazy("late")
        FAILING = "failing", gettext_lazy("failing")
        STOPPED = "stopped", gettext_lazy("stopped")

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    collection = models.ForeignKey(Collection, models.CASCADE, related_name="data_sources")
    name = models.CharField(max_length=200)
    connector = models.CharField(max_length=40, help_text="Its kind, such as `webdav`.")
    options = models.JSONField(default=dict, help_text="Of its kind; without passwords.")
    credentials = models.BinaryField(
        default=bytes, editable=False, help_text="Passwords and tokens, encrypted."
    )
    schedule = models.CharField(
        max_length=100,
        blank=True,
        help_text="Minutes between runs, or cron words such as `0 6 * * 1-5`. Empty: by hand.",
    )
    delete_missing = models.BooleanField(
        default=True, help_text="Delete documents whose file is gone at the source."
    )
    max_deletions = models.PositiveSmallIntegerField(
        default=50, help_text="Percent of its documents that one run may delete unasked."
    )
    access = ArrayField(
        models.CharField(max_length=80),
        null=True,
        blank=True,
        help_text="Who may see its documents, such as group:3. Empty: all members.",
    )
    access_rules = models.JSONField(
        default=list,
        blank=True,
        help_text="`{glob, access}`: the first whose glob fits a file's path goes before `access`.",
    )
    maps_readers = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Its documents are seen by who may read them there, instead of by `access`.",
    )
    state = models.CharField(max_length=10, choices=State, default=State.WAITING)
    failures = models.PositiveSmallIntegerField(
        default=0, help_text="Runs in a row that did not end well."
    )
    problem = models.CharField(
        max_length=10,
        choices=Problem,
        blank=True,
        default="",
        db_default="",
        help_text="What is wrong with it, until a run has ended well.",
    )
    problem_since = models.DateTimeField(null=True, blank=True)
    run_again = models.BooleanField(
        default=False,
        db_default=False,
        editable=False,
        help_text="It changed while it was read: the next run begins when this one has ended.",
    )
    webhook_secret = models.BinaryField(
        default=bytes,
        db_default=b"",
        editable=False,
        help_text="What callers that start a run sign with, encrypted; empty: there are none.",
    )
    applied_access = models.CharField(
        max_length=64, blank=True, editable=False, help_text="Hash of the lists its documents have."
    )
    created_by = models.ForeignKey(
        User, models.SET_NULL, null=True, blank=True, related_name="+", editable=False
    )

    objects = WorkspaceOwnedQuerySet["DataSource"].as_manager()

    class Meta:
        ordering = ["name", "id"]
        verbose_name = "source"
        constraints = [
            models.UniqueConstraint(fields=["workspace", "name"], name="datasource_name_unique")
        ]
        indexes = [models.Index(fields=["state", "due_at"], name="datasource_due_index")]

    def __str__(self) -> str:
        return self.name

    @property
    def key_prefix(self) -> str:
        """What the keys of its documents begin with."""
        return f"source-{self.pk}/"


class DataSourceItem(models.Model):
    """One file, message or page that a source has listed.

    It is to be fetched while `fetched_version` is not `version`. It goes with its document when the
    source certainly has it no more.
    """

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    source = models.ForeignKey(DataSource, models.CASCADE, related_name="items")
    key = models.CharField(max_length=1024, help_text="What the source knows it by.")
    name = models.CharField(max_length=1024, help_text="Its path, as people read it.")
    version = models.CharField(max_length=200, help_text="Changes whenever its bytes may have.")
    fetched_version = models.CharField(max_length=200, blank=True)
    size = models.PositiveBigIntegerField(null=True)
    url = models.CharField(max_length=2000, blank=True)
    readers = ArrayField(
        models.CharField(max_length=200), null=True, help_text="As the source names them."
    )
    applied_readers = ArrayField(
        models.CharField(max_length=200),
        null=True,
        editable=False,
        help_text="Those that the access list of its document was made of.",
    )
    modified_at = models.DateTimeField(null=True)
    failures = models.PositiveSmallIntegerField(
        default=0, help_text="How often in a row this version could not be fetched."
    )
    error = models.TextField(blank=True)

    objects = WorkspaceOwnedQuerySet["DataSourceItem"].as_manager()

    class Meta:
        ordering = ["id"]
        verbose_name = "item of a source"
        verbose_name_plural = "items of sources"
        constraints = [
            models.UniqueConstraint(
                fields=["source", "key", "workspace"], name="datasourceitem_key_unique"
            )
        ]

    def __str__(self) -> str:
        return f"item {self.pk} of source {self.source_id}"


class DataSourceRun(models.Model):
    """One look at a source, with what it found and did."""

    class State(models.TextChoices):
        LISTING = "listing"
        FETCHING = "fetching"
        DELETING = "deleting"
        SUCCEEDED = "succeeded"
        PARTIAL = "partial", "some failed"
        STOPPED = "stopped", "stopped: somebody must look"
        FAILED = "failed"
        CANCELLED = "cancelled"

    class Cause(models.TextChoices):
        SCHEDULE = "schedule"
        PERSON = "person"
        WEBHOOK = "webhook"
        CHANGE = "change", "a file that changed"

    ACTIVE = (State.LISTING, State.FETCHING, State.DELETING)

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    source = models.ForeignKey(DataSource, models.CASCADE, related_name="runs")
    user = models.ForeignKey(User, models.SET_NULL, null=True, blank=True, related_name="+")
    cause = models.CharField(
        max_length=10,
        choices=Cause,
        default=Cause.SCHEDULE,
        db_default=Cause.SCHEDULE,
        help_text="What it was started by.",
    )
    state = models.CharField(max_length=10, choices=State, default=State.LISTING)
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    listed = models.PositiveIntegerField(default=0)
    new = models.PositiveIntegerField(default=0)
    changed = models.PositiveIntegerField(default=0)
    fetched = models.PositiveIntegerField(default=0)
    renamed = models.PositiveIntegerField(default=0)
    deleted = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    bytes = models.PositiveBigIntegerField(default=0, help_text="Fetched.")
    gone = ArrayField(
        models.BigIntegerField(),
        default=list,
        editable=False,
        help_text="Items that a complete listing did not name, to be asked for and deleted.",
    )
    may_delete_any = models.BooleanField(
        default=False, help_text="Somebody has allowed it to delete however many are gone."
    )
    error = models.TextField(blank=True)
    ingestion_runs = ArrayField(
        models.BigIntegerField(), default=list, editable=False, help_text="Of what it fetched."
    )
    started_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = WorkspaceOwnedQuerySet["DataSourceRun"].as_manager()

    class Meta:
        ordering = ["-id"]
        verbose_name = "run of a source"
        verbose_name_plural = "runs of sources"

    def __str__(self) -> str:
        return f"run {self.pk} of {self.source}"

    @property
    def is_finished(self) -> bool:
        return self.finished_at is not None


class DataSourceNotice(QueuedWork):
    """One message about a source, to be sent: a mail to `user`, or without one a call of the site's
    webhook. As a row of a queue it is deleted once it is sent."""

    class State(models.TextChoices):
        WAITING = "waiting"
        RUNNING = "running"
        DEAD = "dead", "given up"

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    source = models.ForeignKey(DataSource, models.CASCADE, related_name="notices")
    user = models.ForeignKey(User, models.CASCADE, null=True, blank=True, related_name="+")
    problem = models.CharField(max_length=10, choices=DataSource.Problem)
    is_over = models.BooleanField(default=False, help_text="It tells that all is well again.")
    since = models.DateTimeField(help_text="When the problem was found.")
    state = models.CharField(max_length=10, choices=State, default=State.WAITING)
    created_at = models.DateTimeField(default=timezone.now)

    objects = WorkspaceOwnedQuerySet["DataSourceNotice"].as_manager()

    class Meta:
        ordering = ["-id"]
        verbose_name = "message about a source"
        verbose_name_plural = "messages about sources"
        indexes = [models.Index(fields=["state", "due_at"], name="datasourcenotice_due_index")]

    def __str__(self) -> str:
        return f"message {self.pk} about {self.source}"
