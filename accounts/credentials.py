"""Models of how people come in: identities of other servers, second factors, sessions.

They are people's and not a workspace's, so that no policy of row-level security hides them: every
read here names its user.
"""

from typing import Any

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.sessions.models import Session
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy


class SignInMethod(models.TextChoices):
    """How somebody came in."""

    PASSWORD = "password", gettext_lazy("password")
    PASSKEY = "passkey", gettext_lazy("passkey")
    OIDC = "oidc", gettext_lazy("OpenID Connect")
    SAML = "saml", gettext_lazy("SAML")
    PROXY = "proxy", gettext_lazy("proxy")
    LINK = "link", gettext_lazy("one-time link")


#: Other servers know these people: passwords and second factors are theirs.
EXTERNAL_METHODS = (SignInMethod.OIDC, SignInMethod.SAML, SignInMethod.PROXY)


class Identity(models.Model):
    """A person as another server knows them: by issuer and subject, never by an address of mail."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="identities", editable=False
    )
    method = models.CharField(max_length=10, choices=SignInMethod, editable=False)
    issuer = models.CharField(
        max_length=500, editable=False, help_text=gettext_lazy("The issuer of the identity.")
    )
    subject = models.CharField(
        max_length=255, editable=False, help_text=gettext_lazy("The person's id at the issuer.")
    )
    groups = ArrayField(
        models.CharField(max_length=150),
        default=list,
        blank=True,
        editable=False,
        help_text=gettext_lazy("The last claims from the issuer."),
    )
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = gettext_lazy("identities")
        constraints = [
            models.UniqueConstraint(
                fields=["issuer", "subject"], name="identity_issuer_subject_unique"
            )
        ]

    def __str__(self) -> str:
        return f"{self.subject} of {self.issuer}"


class SecondFactor(models.Model):
    """What somebody shows besides a password, or, if it is a passkey, in place of one."""

    class Kind(models.TextChoices):
        TOTP = "totp", gettext_lazy("authenticator app")
        PASSKEY = "passkey", gettext_lazy("passkey")
        RECOVERY = "recovery", gettext_lazy("recovery codes")

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="second_factors", editable=False
    )
    kind = models.CharField(max_length=10, choices=Kind)
    name = models.CharField(max_length=100, blank=True)
    secret = models.BinaryField(
        default=bytes,
        help_text=gettext_lazy("The encrypted secret of an app, or a passkey's public key."),
    )
    #: The last time step of an app, or a passkey's counter: neither is taken twice.
    counter = models.BigIntegerField(default=0)
    codes = ArrayField(
        models.CharField(max_length=64),
        default=list,
        blank=True,
        help_text=gettext_lazy("SHA-256 of the remaining recovery codes."),
    )
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["user", "kind"],
                condition=~models.Q(kind="passkey"),
                name="secondfactor_user_kind_unique",
            )
        ]

    def __str__(self) -> str:
        return self.name or str(self.get_kind_display())


class LoginSession(models.Model):
    """Whose a session is, and from where: for the list from which people end them."""

    session = models.OneToOneField(Session, models.CASCADE, related_name="+", editable=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="login_sessions", editable=False
    )
    method = models.CharField(max_length=10, choices=SignInMethod, editable=False)
    address = models.CharField(max_length=45, editable=False)
    agent = models.CharField(max_length=300, blank=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    last_seen_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["-last_seen_at"]

    def __str__(self) -> str:
        return f"{self.get_method_display()} · {self.address}"


def has_second_factor(user: Any) -> bool:
    """Whether `user` has an authenticator app or a passkey; recovery codes alone are none."""
    kinds = (SecondFactor.Kind.TOTP, SecondFactor.Kind.PASSKEY)
    return bool(SecondFactor.objects.filter(user=user, kind__in=kinds).exists())
