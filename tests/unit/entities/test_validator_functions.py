"""Which validators may read other fields, and whether the fields contain validated models."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    PrivateAttr,
    ValidationInfo,
    WrapValidator,
    field_validator,
)
from typing_extensions import TypeAliasType

from solotable import is_stored
from solotable._entities.codecs.validator_functions import adapter_of, has_nested_functions, relates_fields


def _lower(value: str) -> str:
    return value.lower()


def _unless_stored(value: str, info: ValidationInfo) -> str:
    return value if is_stored(info) or info.context else value.lower()


def _from_data(value: str, info: ValidationInfo) -> str:
    return str(info.data["a"])


def _passed_on(value: str, info: ValidationInfo) -> str:
    return _from_data(value, info)


def _wrapped(value: Any, handler: Any) -> Any:
    return handler(value)


Alias = TypeAliasType("Alias", Annotated[str, AfterValidator(_from_data)])


class Inner(BaseModel):
    a: str = ""
    b: Annotated[str, AfterValidator(_from_data)] = ""


class Plain(BaseModel):
    a: Annotated[str, AfterValidator(_lower), AfterValidator(_unless_stored), WrapValidator(_wrapped)] = ""
    inner: Inner | None = None
    _cache: int = PrivateAttr(0)


class InAnnotated(BaseModel):
    a: str = ""
    b: Annotated[str, AfterValidator(_from_data)] = ""


class PassedOn(BaseModel):
    a: str = ""
    b: Annotated[str, AfterValidator(_passed_on)] = ""


class InList(BaseModel):
    a: str = ""
    b: list[Annotated[str, AfterValidator(_from_data)]] = Field(default_factory=list)


class InAlias(BaseModel):
    a: str = ""
    b: Alias = ""
    c: Alias = ""


class InDecorator(BaseModel):
    a: str = ""
    b: str = ""

    @field_validator("b")
    @classmethod
    def _check(cls, value: str, info: ValidationInfo) -> str:
        return _from_data(value, info)


class AfterInit(BaseModel):
    a: str = ""
    _cache: int = PrivateAttr(0)

    def model_post_init(self, _context: Any) -> None:
        self.a = "x"


class Recursive(BaseModel):
    a: str = ""
    inner: Inner
    children: list[Recursive] = Field(default_factory=list)
    names: list[str] = Field(default_factory=list)


@pytest.mark.parametrize("model", [InAnnotated, PassedOn, InList, InAlias, InDecorator, AfterInit, Inner])
def test_validators_that_may_read_other_fields_are_found(model: type[BaseModel]) -> None:
    assert relates_fields(model)


@pytest.mark.parametrize("model", [Plain, Recursive])
def test_other_validators_relate_no_fields(model: type[BaseModel]) -> None:
    assert not relates_fields(model)


def test_fields_with_validated_models_are_found() -> None:
    assert has_nested_functions(Plain, "inner")
    assert not has_nested_functions(Plain, "a")
    assert has_nested_functions(Recursive, "children")
    assert not has_nested_functions(Recursive, "names")


def test_an_adapter_skips_only_functions_that_read_other_fields() -> None:
    adapter = adapter_of(list[Annotated[str, AfterValidator(_lower), AfterValidator(_from_data)]])
    assert adapter.validate_python(["A"]) == ["a"]
    assert adapter_of(Alias).validate_python("A") == "A"
    assert adapter_of(Annotated[str, AfterValidator(_unless_stored)]).validate_python("A") == "a"
