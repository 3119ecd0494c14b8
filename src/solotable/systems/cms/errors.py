"""How the CMS refuses: with the one reason that the caller can do something about, never with a value."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from solotable.errors import DataError, SolotableError, TransactionFailed

ModelT = TypeVar("ModelT", bound=BaseModel)


class Refused(DataError):
    """What a caller gave cannot be taken; the message is theirs to read, so it repeats no value."""

    def __init__(self, message: str) -> None:
        super().__init__(message, told=message)


def made(model: type[ModelT], **fields: Any) -> ModelT:
    """Return a model of what a caller gave, or a refusal that names the field and not its value."""
    try:
        return model(**fields)
    except ValidationError as refused:
        first = refused.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise Refused(f"{model.__name__}.{where}: {first['msg']}.") from None


@contextmanager
def first_reason() -> Iterator[None]:
    """Raise the first reason of a failed transaction instead of the failure of the whole."""
    try:
        yield
    except TransactionFailed as failed:
        reasons = [each.error for each in failed.failures if isinstance(each.error, SolotableError)]
        if not reasons:
            raise
        raise reasons[0] from failed
