"""Second factors: authenticator apps (TOTP, RFC 6238), passkeys (WebAuthn), recovery codes.

Whoever shows a passkey that has checked them by a PIN or a finger needs no password. Begin with
`confirm_code` and `confirm_passkey`.
"""

import json
import re
import secrets
from base64 import b32encode
from hashlib import sha256
from time import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.utils.translation import gettext

from accounts.audit import Action, Kind, record_change
from accounts.credentials import SecondFactor
from accounts.models import User
from accounts.rate_limits import LoginAttempt
from common.encryption import decrypt, encrypt
from common.errors import Conflict, Forbidden, InvalidInput
from common.rls import bypass_rls

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.twofactor.totp import TOTP
    from fido2.server import Fido2Server

#: Of an app: bytes of its secret, seconds of a code, and how many codes before and after count.
SECRET_BYTES, STEP_SECONDS, STEPS_AROUND = 20, 30, 1
DIGITS = 6
RECOVERY_CODES, RECOVERY_BYTES = 10, 10
MAX_PASSKEYS, MAX_NAME_CHARACTERS = 20, 100
#: In the session: an app's new secret, encrypted, and the challenge of a passkey.
NEW_SECRET_KEY, CHALLENGE_KEY = "new_totp_secret", "passkey_challenge"
Kinds = SecondFactor.Kind


class WrongFactor(Forbidden):
    """The code or the passkey is not the user's, or was used before."""

    code = "second_factor_wrong"


# --- authenticator apps ------------------------------------------------------------------------


def new_secret(request: HttpRequest) -> tuple[str, str]:
    """Of an app that is being set up: its secret in letters, to be typed, and its address, for a QR
    code. It stays the same until it is confirmed.
    """
    stored = request.session.get(NEW_SECRET_KEY)
    secret = decrypt(bytes.fromhex(stored)) if stored else secrets.token_bytes(SECRET_BYTES)
    if not stored:
        request.session[NEW_SECRET_KEY] = encrypt(secret).hex()
    user: Any = request.user
    address = _totp(secret).get_provisioning_uri(user.get_username(), request.get_host())
    letters = re.search(r"secret=([A-Z2-7]+)", address)
    assert letters is not None
    return letters[1], address


@transaction.atomic
def add_app(request: HttpRequest, *, code: str) -> SecondFactor:
    """Confirm the new app by a code of it; it takes the place of a former one. Raises
    InvalidInput.
    """
    stored = request.session.get(NEW_SECRET_KEY)
    secret = decrypt(bytes.fromhex(stored)) if stored else b""
    step = _step_of_code(secret, code) if secret else None
    if step is None:
        raise InvalidInput(
            gettext(
                "This is not the current code of the app. Wait for the next one, and check"
                " the clock of the device."
            ),
            field="code",
        )
    user: Any = request.user
    SecondFactor.objects.filter(user=user, kind=Kinds.TOTP).delete()
    factor = SecondFactor.objects.create(
        user=user, kind=Kinds.TOTP, secret=encrypt(secret), counter=step
    )
    del request.session[NEW_SECRET_KEY]
    _record(Action.MADE, factor)
    return factor


def _totp(secret: bytes) -> "TOTP":
    from cryptography.hazmat.primitives.hashes import SHA1  # noqa: PLC0415 (few processes need it)
    from cryptography.hazmat.primitives.twofactor.totp import TOTP  # noqa: PLC0415

    return TOTP(secret, DIGITS, SHA1(), STEP_SECONDS)  # noqa: S303 (what every app speaks)


def _step_of_code(secret: bytes, code: str) -> int | None:
    """The time step whose code this is, around now."""
    digits = re.sub(r"\s", "", code)
    if len(digits) != DIGITS or not digits.isascii():
        return None
    now, totp = int(time()) // STEP_SECONDS, _totp(secret)
    around = range(now - STEPS_AROUND, now + STEPS_AROUND + 1)
    matching = [
        step
        for step in around
        if constant_time_compare(totp.generate(step * STEP_SECONDS).decode(), digits)
    ]
    return matching[0] if matching else None


# --- recovery codes ----------------------------------------------------------------------------


@transaction.atomic
def new_recovery_codes(*, user: User) -> list[str]:
    """New codes, each of which is good once; former ones are void. None can be read again."""
    codes = [_as_code(secrets.token_bytes(RECOVERY_BYTES)) for _ in range(RECOVERY_CODES)]
    SecondFactor.objects.filter(user=user, kind=Kinds.RECOVERY).delete()
    factor = SecondFactor.objects.create(
        user=user, kind=Kinds.RECOVERY, codes=[_digest(code) for code in codes]
    )
    _record(Action.MADE, factor)
    return codes


def _as_code(random: bytes) -> str:
    """80 random bits as four groups of four letters and digits."""
    letters = b32encode(random).decode()
    return "-".join(letters[start : start + 4] for start in range(0, len(letters), 4))


def _digest(code: str) -> str:
    """80 random bits need no salt and no slow hash."""
    letters = re.sub(r"[\s-]", "", code).upper()
    return sha256(letters.encode(errors="surrogatepass")).hexdigest()


def confirm_code(request: HttpRequest, user: User, code: str) -> None:
    """Take a code of the user's app, or a recovery code: each once. Raises WrongFactor, and
    TooManyRequests after too many wrong ones.
    """
    attempt = LoginAttempt(account=f"second factor of {user.pk}", request=request)
    attempt.check()
    with transaction.atomic():
        # Locked, so that no code is taken by two requests.
        factors = SecondFactor.objects.select_for_update().filter(user=user)
        for factor in factors.filter(kind__in=(Kinds.TOTP, Kinds.RECOVERY)):
            if _takes_code(factor, code):
                factor.last_used_at = timezone.now()
                factor.save()
                return
    attempt.fail()
    raise WrongFactor(
        gettext("This code is wrong or was already used. Wait for the next code in your app.")
    )


def _takes_code(factor: SecondFactor, code: str) -> bool:
    """Whether the code is the factor's, which then does not take it again."""
    if factor.kind == Kinds.TOTP:
        step = _step_of_code(decrypt(factor.secret), code)
        if step is None or step <= factor.counter:
            return False
        factor.counter = step
        return True
    digest = _digest(code)
    if digest not in factor.codes:
        return False
    factor.codes.remove(digest)
    return True


# --- passkeys ----------------------------------------------------------------------------------


def passkey_options(request: HttpRequest, user: User | None = None) -> str:
    """What the browser is to sign, as JSON: with a passkey of `user`, else with any of this site
    that checks its owner. The challenge stays in the session and is good once.
    """
    from fido2.webauthn import UserVerificationRequirement as Verification  # noqa: PLC0415

    options, state = _server(request).authenticate_begin(
        credentials=None if user is None else [_credential(each) for each in _passkeys(user)],
        user_verification=Verification.REQUIRED if user is None else Verification.PREFERRED,
    )
    request.session[CHALLENGE_KEY] = {**state, "at": time()}
    return json.dumps(dict(options)["publicKey"])


def new_passkey_options(request: HttpRequest) -> str:
    """What the browser is to make a passkey from, as JSON."""
    from fido2.webauthn import (  # noqa: PLC0415
        PublicKeyCredentialUserEntity,
        ResidentKeyRequirement,
        UserVerificationRequirement,
    )

    user: Any = request.user
    name = user.get_username()
    options, state = _server(request).register_begin(
        PublicKeyCredentialUserEntity(
            id=_handle(user), name=name, display_name=user.get_full_name() or name
        ),
        credentials=[_credential(each) for each in _passkeys(user)],
        resident_key_requirement=ResidentKeyRequirement.PREFERRED,
        user_verification=UserVerificationRequirement.PREFERRED,
    )
    request.session[CHALLENGE_KEY] = {**state, "at": time()}
    return json.dumps(dict(options)["publicKey"])


def add_passkey(request: HttpRequest, *, name: str, answer: str) -> SecondFactor:
    """Keep the public key that the browser's answer brings. Raises WrongFactor, InvalidInput and
    Conflict.
    """
    user: Any = request.user
    name = name.strip()
    if not name or len(name) > MAX_NAME_CHARACTERS or not name.isprintable():
        raise InvalidInput(gettext("Give the passkey a name, such as “laptop”."), field="name")
    if _passkeys(user).count() >= MAX_PASSKEYS:
        raise Conflict(gettext("You have reached the limit of passkeys. Remove unused ones."))
    try:
        made = _server(request).register_complete(_challenge(request), json.loads(answer))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _wrong_passkey() from error
    assert made.credential_data is not None
    factor = SecondFactor.objects.create(
        user=user,
        kind=Kinds.PASSKEY,
        name=name,
        secret=bytes(made.credential_data),
        counter=made.counter,
    )
    _record(Action.MADE, factor)
    return factor


def confirm_passkey(request: HttpRequest, answer: str, user: User | None = None) -> User:
    """Whose passkey signed the challenge: `user`'s, else whoever's it is. Raises WrongFactor, and
    TooManyRequests after too many wrong ones.
    """
    from fido2.webauthn import AuthenticationResponse  # noqa: PLC0415

    # Without a user only the address counts: nobody is to lock others out.
    whose = None if user is None else f"second factor of {user.pk}"
    attempt = LoginAttempt(account=whose, request=request)
    attempt.check()
    try:
        response = AuthenticationResponse.from_dict(json.loads(answer))
        owner = user if user is not None else _user_of_handle(response.response.user_handle)
        with transaction.atomic():
            own = list(_passkeys(owner).select_for_update())
            keys = {_credential(each).credential_id: each for each in own}
            used = _server(request).authenticate_complete(
                _challenge(request), [_credential(each) for each in own], response
            )
            factor = keys[used.credential_id]
            counter = response.response.authenticator_data.counter
            if counter and counter <= factor.counter:
                raise ValueError("a copy of the passkey")
            factor.counter, factor.last_used_at = counter, timezone.now()
            factor.save(update_fields=["counter", "last_used_at"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        attempt.fail()
        raise _wrong_passkey() from error
    return owner


def _server(request: HttpRequest) -> "Fido2Server":
    """The site as passkeys know it: by its host, reached by exactly this address."""
    from fido2.server import Fido2Server  # noqa: PLC0415
    from fido2.webauthn import PublicKeyCredentialRpEntity  # noqa: PLC0415

    site = f"{request.scheme}://{request.get_host()}"
    host = urlsplit(site).hostname or ""
    return Fido2Server(
        PublicKeyCredentialRpEntity(id=host, name="ragsite"),
        verify_origin=lambda origin: origin == site,
    )


def _challenge(request: HttpRequest) -> dict[str, Any]:
    """The state of the challenge, which is good once and for ten minutes. Raises KeyError."""
    state: dict[str, Any] = request.session.pop(CHALLENGE_KEY)
    if not 0 <= time() - state.pop("at") <= 600:
        raise KeyError(CHALLENGE_KEY)
    return state


def _passkeys(user: User) -> Any:
    return SecondFactor.objects.filter(user=user, kind=Kinds.PASSKEY)


def _credential(factor: SecondFactor) -> Any:
    from fido2.webauthn import AttestedCredentialData  # noqa: PLC0415

    return AttestedCredentialData(bytes(factor.secret))


def _handle(user: User) -> bytes:
    """How a passkey names its user: by a number that says nothing of the person."""
    return str(user.pk).encode()


def _user_of_handle(handle: bytes | None) -> User:
    """Raises ValueError."""
    user = User.objects.filter(pk=int((handle or b"").decode()[:18]), is_active=True).first()
    if user is None:
        raise ValueError("no user")
    return user


def _wrong_passkey() -> WrongFactor:
    return WrongFactor(gettext("This passkey was not accepted. Try again, or use another way."))


# --- all of them -------------------------------------------------------------------------------


def remove_factor(*, factor: SecondFactor) -> None:
    """Delete it; recovery codes go with the last other one."""
    with transaction.atomic():
        _record(Action.DELETED, factor)
        user = factor.user
        factor.delete()
        rest = SecondFactor.objects.filter(user=user)
        if not rest.exclude(kind=Kinds.RECOVERY).exists():
            rest.delete()


def _record(action: Action, factor: SecondFactor) -> None:
    with bypass_rls():  # the audit log has entries of no workspace
        record_change(
            action=action,
            kind=Kind.FACTOR,
            workspace_id=None,
            object_id=factor.pk,
            values={"kind": SecondFactor.Kind(factor.kind), "user": factor.user_id},
        )
