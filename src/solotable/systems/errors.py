"""What the systems do with errors: name the wrong field without its value, and the first failed write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from solotable.errors import DataError, SolotableError, TransactionFailed

ModelT = TypeVar("ModelT", bound=BaseModel)


class InvalidInput(DataError):
    """Invalid input; a client sees the message, so it must not repeat the value."""

    def __init__(self, message: str) -> None:
        super().__init__(message, public_message=message)


def validate(model: type[ModelT], context: Mapping[str, bool] | None = None, /, **fields: Any) -> ModelT:
    """Return a model of some input, or raise InvalidInput with the field and without its value."""
    try:
        return model.model_validate(fields, context=context)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InvalidInput(f"{model.__name__}.{where}: {first['msg']}.") from None


@contextmanager
def unwrap_failure() -> Iterator[None]:
    """Raise the error of the first failed action instead of TransactionFailed."""
    try:
        yield
    except TransactionFailed as failed:
        raise first_error(failed) from failed


def first_error(failed: TransactionFailed) -> SolotableError:
    """Return the error of the first failed action, or the failure itself if no action has one."""
    causes = (each.error for each in failed.failures)
    return next((cause for cause in causes if isinstance(cause, SolotableError)), failed)
