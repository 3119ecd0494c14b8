"""Signers from botocore's credentials, and new ones after a server reports that they have expired.

botocore decides where credentials come from and when to refresh them.
"""

from __future__ import annotations

from typing import Any, Final

from solotable.errors import NotConfigured

from .sigv4 import AccessKey, Signer

NO_CREDENTIALS: Final = (
    "No AWS credentials. Looked in: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, the profile, single "
    "sign-on, credential_process, the container's role, the instance's role. "
    "Try: aws configure; local databases (sqlite:///file.db) need none."
)
EXPIRED: Final = (
    "The AWS credentials have expired, and their source has no newer ones. "
    "Try: aws sso login, or a new session token in the environment."
)


class SignerSource:
    """Creates signers for one host from a botocore session's credentials, or from a fixed key."""

    def __init__(self, session: Any, *, region: str, host: str, key: AccessKey | None = None) -> None:
        self._session = session
        self._region = region
        self._host = host
        self._fixed_key = key
        self._credentials: Any = None
        self._last: tuple[Any, Signer] | None = None

    def would_block(self) -> bool:
        """Whether `current` fetches credentials, which may block."""
        if self._fixed_key is not None:
            return False
        needed = getattr(self._credentials, "refresh_needed", None)
        return self._credentials is None or (needed is not None and bool(needed()))

    def current(self) -> Signer:
        """Return the signer for the current credentials, or raise NotConfigured."""
        if self._fixed_key is not None:
            return self._signer(self._fixed_key, self._fixed_key)
        if self._credentials is None:
            self._credentials = self._session.get_credentials()
            if self._credentials is None:
                raise NotConfigured(NO_CREDENTIALS)
        try:
            frozen = self._credentials.get_frozen_credentials()
        except RuntimeError as fault:
            # botocore: the credentials that it has just fetched have expired too.
            raise NotConfigured(EXPIRED) from fault
        last = self._last
        if last is not None and last[0] == frozen:
            return last[1]
        return self._signer(
            frozen, AccessKey(id=frozen.access_key, secret=frozen.secret_key, token=frozen.token or None)
        )

    def renew(self, expired: Signer) -> Signer | None:
        """Load the credentials again; return None if they are the expired ones."""
        if self._fixed_key is not None:
            return None
        found = self._session.get_component("credential_provider").load_credentials()
        if found is None:
            return None
        self._credentials = found
        signer = self.current()
        return None if signer.key == expired.key else signer

    def _signer(self, source: Any, key: AccessKey) -> Signer:
        last = self._last
        if last is not None and last[0] == source:
            return last[1]
        if not key.is_sendable:
            raise NotConfigured(
                "The AWS credentials contain line breaks, surrounding spaces or non-ASCII characters; "
                "set them without."
            )
        signer = Signer(key, region=self._region, host=self._host)
        # One assignment, so that no lock is needed: concurrent threads create equal signers.
        self._last = (source, signer)
        return signer
