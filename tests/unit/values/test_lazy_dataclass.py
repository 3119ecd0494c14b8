"""Lazy dataclasses behave as the standard library's do; only the time of compilation differs."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeVar

import pytest

from solotable._values.lazy_dataclass import dataclass

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Point(Generic[_T]):
    """A point with every kind of field."""

    limit: ClassVar[int] = 9

    x: _T
    y: int = 2
    tags: Mapping[str, int] = dataclasses.field(default_factory=dict, hash=False)
    note: str | None = dataclasses.field(default=None, compare=False)
    total: int = dataclasses.field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", self.y + 1)


@dataclasses.dataclass(frozen=True, slots=True)
class Original(Generic[_T]):
    """The same, made by the standard library."""

    limit: ClassVar[int] = 9

    x: _T
    y: int = 2
    tags: Mapping[str, int] = dataclasses.field(default_factory=dict, hash=False)
    note: str | None = dataclasses.field(default=None, compare=False)
    total: int = dataclasses.field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", self.y + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Named(Point[int]):
    name: str
    label: str = "none"


@dataclass(frozen=True, slots=True)
class Empty:
    pass


@dataclass(frozen=True, slots=True)
class Loud:  # noqa: PLW1641 - the decorator adds __hash__
    word: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Loud) and self.word.upper() == other.word.upper()

    def __repr__(self) -> str:
        return self.word.upper()


@pytest.mark.parametrize("cls", [Point, Original])
def test_values_defaults_and_fields_are_as_the_original_has_them(cls: type[Point[int]]) -> None:
    one = cls(1, tags={"a": 1}, note="n")
    assert (one.x, one.y, one.tags, one.note, one.total, cls.limit) == (1, 2, {"a": 1}, "n", 3, 9)
    assert repr(one) == f"{cls.__name__}(x=1, y=2, tags={{'a': 1}}, note='n')"
    assert one == cls(1, tags={"a": 1}, note="other") != cls(2)
    assert hash(one) == hash(cls(1))
    assert one.__eq__(1) is NotImplemented
    assert [each.name for each in dataclasses.fields(cls)] == ["x", "y", "tags", "note", "total"]
    assert cls.__match_args__ == ("x", "y", "tags", "note")
    assert cls.__slots__ == ("x", "y", "tags", "note", "total")
    assert dataclasses.replace(one, y=7).total == 8
    assert dataclasses.asdict(one)["tags"] == {"a": 1}
    assert pickle.loads(pickle.dumps(one)) == copy.deepcopy(one) == copy.copy(one) == one  # noqa: S301
    assert not hasattr(one, "__dict__")
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
        one.x = 2  # type: ignore[misc] # what is refused
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'x'"):
        del one.x
    with pytest.raises(TypeError, match=r"__init__\(\) missing 1 required positional argument: 'x'"):
        cls()  # type: ignore[call-arg] # what is refused


def test_signature_names_the_fields_whether_or_not_an_instance_was_made() -> None:
    def fresh() -> Any:
        @dataclass(frozen=True, slots=True, kw_only=True)
        class Fresh:
            a: int
            b: str = "b"
            c: list[int] = dataclasses.field(default_factory=list)

        return Fresh

    made = fresh()
    made(a=1)
    expected = "(*, a: 'int', b: 'str' = 'b', c: 'list[int]' = <factory>)"
    assert str(inspect.signature(fresh())) == str(inspect.signature(made)) == expected


def test_subclass_adds_keyword_fields_behind_those_of_its_base() -> None:
    one = Named(1, 5, name="n")
    assert (one.x, one.total, one.name, one.label) == (1, 6, "n", "none")
    assert vars(Named)["__slots__"] == ("name", "label")
    assert one != Point(1, 5)
    with pytest.raises(TypeError):
        Named(1, 5, {}, None, "n")  # type: ignore[call-arg] # what is refused


def test_dataclass_of_the_standard_library_may_extend_a_lazy_one() -> None:
    @dataclasses.dataclass(frozen=True, slots=True)
    class Extended(Empty):
        more: int

    assert Extended(1) == Extended(1)
    assert repr(Empty()) == "Empty()"
    assert Empty() == Empty()
    assert len({Empty(), Empty()}) == 1


def test_plain_subclass_may_have_attributes_of_another_name() -> None:
    class Open(Point[int]):
        """A class that is not a dataclass itself."""

    one = Open(1)
    one.further = 2  # type: ignore[attr-defined] # a plain subclass has a __dict__
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.y = 2  # type: ignore[misc] # what is refused


def test_methods_that_the_class_defines_stay() -> None:
    assert Loud("a") == Loud("A")
    assert repr(Loud("a")) == "A"
    assert hash(Loud("a")) == hash(Loud("a"))


def test_mutable_class_is_rejected() -> None:
    with pytest.raises(TypeError, match=r"Use dataclasses\.dataclass"):
        dataclass(frozen=False, slots=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Base:
    x: int
    y: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Computed(_Base):
    factor: int

    @property  # type: ignore[misc] # a property replaces a field
    def y(self) -> int:
        return self.x * self.factor


def test_a_property_replaces_an_inherited_field() -> None:
    computed = _Computed(x=2, factor=5)
    assert computed.y == 10
    assert dataclasses.replace(computed, x=3).y == 15
    assert [each.name for each in dataclasses.fields(computed)] == ["x", "factor"]
    assert _Base(x=2).y == 2
