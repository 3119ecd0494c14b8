"""Errors of the CMS: they name the field that is wrong, and do not repeat personal values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from solotable.errors import AlreadyExists, DataError, SolotableError, TransactionFailed

ModelT = TypeVar("ModelT", bound=BaseModel)


class InvalidInput(DataError):
    """Invalid input; a client sees the message, so it must not repeat the value."""

    def __init__(self, message: str) -> None:
        super().__init__(message, public_message=message)


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


def validate(model: type[ModelT], context: Mapping[str, bool] | None = None, /, **fields: Any) -> ModelT:
    """Return a model of some input, or raise InvalidInput with the field and without its value."""
    try:
        return model.model_validate(fields, context=context)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InvalidInput(f"{model.__name__}.{where}: {first['msg']}.") from None


@contextmanager
def unwrap_failure(*, slug: str | None = None) -> Iterator[None]:
    """Raise the error of the first failed action instead of TransactionFailed.

    With a slug, raise SlugTaken if the first failed action would have created an existing item.
    """
    try:
        yield
    except TransactionFailed as failed:
        causes = [each.error for each in failed.failures if isinstance(each.error, SolotableError)]
        if not causes:
            raise
        if slug is not None and isinstance(causes[0], AlreadyExists):
            # A redirect is stored as an item without an entity.
            raise SlugTaken(slug, redirects=causes[0].found is None) from failed
        raise causes[0] from failed
