"""A provider of OpenID Connect for tests, in a process of its own: strict with its client, and made
to answer wrongly by `Provider.tell`. Run as a script it serves; `running_provider` starts it.
"""

import json
import secrets
import subprocess
import sys
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import time
from typing import Any
from urllib.parse import parse_qs, parse_qsl, unquote, urlencode, urlsplit
from urllib.request import Request, urlopen

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT_ID, CLIENT_SECRET = "ragsite", "a secret between the two"
ANNA = {
    "sub": "248289761001",
    "preferred_username": "anna",
    "given_name": "Anna",
    "family_name": "Berg",
    "email": "anna@firm.example",
    "email_verified": True,
    "groups": ["harbour"],
}


def _new_key() -> RSAKey:
    return RSAKey.generate_key(2048, parameters={"kid": secrets.token_hex(4)}, private=True)


@dataclass
class State:
    """What is told by tests: claims of the person, changes of the ID token (None removes a claim),
    and faults by name.
    """

    claims: dict[str, Any] = field(default_factory=lambda: dict(ANNA))
    token: dict[str, Any] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    key: RSAKey = field(default_factory=_new_key)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    access: set[str] = field(default_factory=set)


class Handler(BaseHTTPRequestHandler):
    """One request."""

    state = State()
    protocol_version = "HTTP/1.1"

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def log_message(self, *args: Any) -> None:
        """Nothing."""

    def answer(self, body: Any, status: int = 200, **headers: str) -> None:
        text = body if isinstance(body, str) else json.dumps(body)
        content = text.encode()
        self.send_response(status)
        kind = "text/html" if isinstance(body, str) else "application/json"
        for name, value in {"Content-Type": kind, **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = dict(parse_qsl(url.query))
        if "down" in self.state.faults:
            self.answer({"error": "down"}, 503)
        elif url.path == "/.well-known/openid-configuration":
            self.answer(self.description())
        elif url.path == "/keys":
            self.answer({"keys": [self.state.key.as_dict(private=False)]})
        elif url.path == "/authorize":
            self.authorize(query)
        elif url.path == "/userinfo":
            self.userinfo()
        else:
            self.answer({"error": "not found"}, 404)

    def description(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "jwks_uri": f"{self.issuer}/keys",
            "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"],
            "code_challenge_methods_supported": ["S256"],
            **self.state.metadata,
        }

    def authorize(self, query: dict[str, str]) -> None:
        """A page with one button; pressed, it leads back with a code."""
        wanted = {"client_id": CLIENT_ID, "response_type": "code", "code_challenge_method": "S256"}
        wrong = [name for name, value in wanted.items() if query.get(name) != value]
        wrong += [
            name for name in ("nonce", "state", "code_challenge") if len(query.get(name, "")) < 16
        ]
        if wrong or "openid" not in query.get("scope", "").split():
            self.answer(f"wrong: {wrong}", 400)
            return
        back = {"state": query["state"]}
        if "cancel" in self.state.faults:
            back["error"] = "access_denied"
        else:
            back["code"] = secrets.token_urlsafe(16)
            self.state.codes[back["code"]] = query
        target = f"{query['redirect_uri']}?{urlencode(back)}"
        if "page" in self.state.faults:
            self.answer(
                f"<!doctype html><title>Firm</title><a href='{target}'>Continue as Anna</a>"
            )
        else:
            self.answer("", 302, Location=target)

    def userinfo(self) -> None:
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if token not in self.state.access:
            self.answer({"error": "invalid_token"}, 401)
            return
        other = {"sub": "somebody else"} if "other_userinfo" in self.state.faults else {}
        self.answer({**self.state.claims, **other})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode()
        if self.path == "/tell":
            self.tell(json.loads(body))
        elif "down" in self.state.faults or "token_down" in self.state.faults:
            self.answer({"error": "down"}, 503)
        else:
            self.token({name: values[0] for name, values in parse_qs(body).items()})

    def tell(self, told: dict[str, Any]) -> None:
        if told.pop("reset", False):
            Handler.state = State(key=self.state.key)
        if told.pop("rotate", False):
            self.state.key = _new_key()
        for name, value in told.items():
            setattr(self.state, name, value)
        self.answer({})

    def token(self, sent: dict[str, str]) -> None:
        """Codes are good once, for the client and the verifier that they were made for."""
        basic = b64decode(self.headers.get("Authorization", "").removeprefix("Basic ")).decode()
        client = (
            tuple(map(unquote, basic.partition(":")[::2]))
            if basic
            else (
                sent.get("client_id"),
                sent.get("client_secret"),
            )
        )
        begun = self.state.codes.pop(sent.get("code", ""), None)
        verifier = sha256(sent.get("code_verifier", "").encode()).digest()
        challenge = urlsafe_b64encode(verifier).decode().rstrip("=")
        if client != (CLIENT_ID, CLIENT_SECRET):
            self.answer({"error": "invalid_client"}, 401)
        elif (
            begun is None
            or challenge != begun["code_challenge"]
            or sent.get("redirect_uri") != begun["redirect_uri"]
        ):
            self.answer({"error": "invalid_grant"}, 400)
        else:
            access = secrets.token_urlsafe(16)
            self.state.access.add(access)
            answer = {"access_token": access, "token_type": "Bearer", "expires_in": 300}
            if "no_id_token" not in self.state.faults:
                answer["id_token"] = self.id_token(begun["nonce"])
            self.answer(answer)

    def id_token(self, nonce: str) -> str:
        now = int(time())
        standard = {
            "iss": self.issuer,
            "aud": CLIENT_ID,
            "iat": now,
            "exp": now + 300,
            "nonce": nonce,
        }
        slim = {"sub": self.state.claims["sub"]}
        own = slim if "slim" in self.state.faults else self.state.claims
        claims = {**standard, **own, **self.state.token}
        claims = {name: value for name, value in claims.items() if value is not None}
        if "unsigned" in self.state.faults:
            parts = ({"alg": "none", "typ": "JWT"}, claims)
            coded = [
                urlsafe_b64encode(json.dumps(each).encode()).decode().rstrip("=") for each in parts
            ]
            return f"{coded[0]}.{coded[1]}."
        if "symmetric" in self.state.faults:
            from joserfc.jwk import OctKey

            return jwt.encode({"alg": "HS256"}, claims, OctKey.import_key(CLIENT_SECRET * 2))
        key = _new_key() if "other_key" in self.state.faults else self.state.key
        kid = self.state.key.kid if "other_key" in self.state.faults else key.kid
        return jwt.encode({"alg": "RS256", "kid": str(kid)}, claims, key)


@dataclass(frozen=True)
class Provider:
    """The running process, for tests."""

    issuer: str

    def tell(self, **told: Any) -> None:
        """Change what it answers; `reset` and `rotate` (another key) are true or absent."""
        body = json.dumps(told).encode()
        with urlopen(Request(f"{self.issuer}/tell", data=body)) as answer:
            assert answer.status == 200


@contextmanager
def running_provider() -> Iterator[Provider]:
    """The process, on a free port, until the block ends."""
    process = subprocess.Popen(
        [sys.executable, "-m", "accounts.tests.oidc_provider"],
        cwd=Path(__file__).resolve().parents[2],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        yield Provider(f"http://127.0.0.1:{port}")
    finally:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


if __name__ == "__main__":
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        sys.stdout.write(f"{server.server_address[1]}\n")
        sys.stdout.flush()
        server.serve_forever()
