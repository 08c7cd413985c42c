"""Application configuration."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "accounts"

    def ready(self) -> None:
        from django.contrib.auth.signals import user_logged_in  # noqa: PLC0415 (as apps are ready)

        from accounts import checks  # noqa: F401, PLC0415 (it registers itself)
        from accounts.sign_in import mark_seen  # noqa: PLC0415

        user_logged_in.connect(mark_seen, dispatch_uid="accounts.sign_in")
