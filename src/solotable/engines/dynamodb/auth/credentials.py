"""Who signs: botocore's credentials as signers, and new ones when a server says that they have expired.

Where credentials come from, and when those that expire are fetched anew, is botocore's business.
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
    "The AWS credentials have expired, and there are no newer ones where they came from. "
    "Try: aws sso login, or a new session token in the environment."
)


class Signers:
    """Makes signers for one host from a botocore session's credentials, or from a key that is given."""

    def __init__(self, session: Any, *, region: str, host: str, key: AccessKey | None = None) -> None:
        self._session = session
        self._region = region
        self._host = host
        self._given = key
        self._credentials: Any = None
        self._last: tuple[Any, Signer] | None = None

    def would_wait(self) -> bool:
        """Whether `current` is going to ask somebody for credentials."""
        if self._given is not None:
            return False
        needed = getattr(self._credentials, "refresh_needed", None)
        return self._credentials is None or (needed is not None and bool(needed()))

    def current(self) -> Signer:
        """Return the signer of now, or raise NotConfigured when there is none."""
        if self._given is not None:
            return self._signer(self._given, self._given)
        if self._credentials is None:
            self._credentials = self._session.get_credentials()
            if self._credentials is None:
                raise NotConfigured(NO_CREDENTIALS)
        try:
            frozen = self._credentials.get_frozen_credentials()
        except RuntimeError as fault:
            # botocore: those that it has just fetched have expired as well.
            raise NotConfigured(EXPIRED) from fault
        last = self._last
        if last is not None and last[0] == frozen:
            return last[1]
        return self._signer(
            frozen, AccessKey(id=frozen.access_key, secret=frozen.secret_key, token=frozen.token or None)
        )

    def renewed(self, expired: Signer) -> Signer | None:
        """Look for credentials everywhere again; None when they are still the ones that have expired."""
        if self._given is not None:
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
                "The AWS credentials hold line breaks, spaces at an end or letters that no key has; "
                "set them again without."
            )
        signer = Signer(key, region=self._region, host=self._host)
        # Replaced as a whole: two threads at once make two signers that are equal.
        self._last = (source, signer)
        return signer
