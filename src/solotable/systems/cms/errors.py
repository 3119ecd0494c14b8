"""Errors of the CMS."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from solotable.errors import AlreadyExists, TransactionFailed
from solotable.systems.errors import first_error


class SlugTaken(AlreadyExists):
    """Another page or product has the slug, or a redirect from it."""

    field = "slug"

    def __init__(self, slug: str, *, redirects: bool = False) -> None:
        message = f"The slug {slug!r} is taken; choose another one."
        if redirects:
            message = (
                f"The slug {slug!r} redirects to another one; delete that redirect or choose another slug."
            )
        super().__init__(message)


@contextmanager
def unwrap_slug_failure(slug: str) -> Iterator[None]:
    """Raise the error of the first failed action; SlugTaken if it would have created an existing item."""
    try:
        yield
    except TransactionFailed as failed:
        cause = first_error(failed)
        if isinstance(cause, AlreadyExists):
            # A redirect is stored as an item without an entity.
            raise SlugTaken(slug, redirects=cause.found is None) from failed
        raise cause from failed
