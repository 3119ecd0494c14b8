"""Declarations whose names collide with the store are rejected when the class is defined."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import pytest
from pydantic import ConfigDict, create_model

from solotable import AsyncStore, Entity, Key, Store, Table
from solotable._entities.declare.build import RESERVED_PARTS
from solotable._store.unit_of_work import BatchWork, TransactionWork
from solotable.errors import DeclarationError

names = Table("ReservedNames")
_NAMED = inspect.Parameter.POSITIONAL_OR_KEYWORD


def _declare(base: type, **fields: Any) -> None:
    create_model("Doc", __base__=base, __cls_kwargs__={"table": names}, **fields)


def test_the_reserved_parts_are_the_arguments_of_the_verbs() -> None:
    found: set[str] = set()
    verbs: set[str] = set()
    for owner in (Store, AsyncStore, TransactionWork, BatchWork):
        for name, method in inspect.getmembers(owner, inspect.isfunction):
            parameters = [*inspect.signature(method).parameters.values()][1:]
            if name.startswith("_") or not any(each.name == "key" for each in parameters):
                continue
            verbs.add(name)
            found |= {each.name for each in parameters if each.kind in (each.KEYWORD_ONLY, _NAMED)}
    assert found == RESERVED_PARTS
    assert verbs >= {"get", "update", "upsert", "delete", "modify", "collection", "check", "history", "hold"}


@pytest.mark.parametrize("name", sorted(RESERVED_PARTS))
def test_a_part_of_the_primary_key_cannot_be_named_like_an_option(name: str) -> None:
    base = type("Base", (Entity,), {"key": Key("DOC", f"{{{name}}}"), "__module__": __name__})
    with pytest.raises(DeclarationError, match=f"part '{name}'"):
        _declare(base, **{name: (str, ...)})


@pytest.mark.parametrize("name", ["plan", "unknown_attributes", "keep_unknown"])
def test_a_field_cannot_hide_a_method_of_entity(name: str) -> None:
    base = type("Base", (Entity,), {"key": Key("DOC", "{doc}"), "__module__": __name__})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(DeclarationError, match=f"hides {name}"):
            create_model(
                "Doc", __base__=base, __cls_kwargs__={"table": names}, doc=(str, ...), **{name: (str, "")}
            )  # type: ignore[call-overload] # fields by name


def test_extra_fields_that_would_be_lost_are_rejected() -> None:
    with pytest.raises(DeclarationError, match="extra='allow'"):

        class Loose(Entity, table=names):
            model_config = ConfigDict(extra="allow")
            key = Key("LOOSE", "{name}")
            name: str
