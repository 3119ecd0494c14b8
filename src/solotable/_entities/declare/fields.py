"""Field markers for `Annotated[...]`, the default of a tenant field, and ULIDs.

The module reads no clock and no random numbers: the caller passes both to `Ulids`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Final, Literal

from solotable._values.lazy_dataclass import dataclass
from solotable._values.limits import LONGEST_ATTRIBUTE_NAME
from solotable.errors import DeclarationError

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = tuple(high + low for high in _CROCKFORD for low in _CROCKFORD)
_RANDOM_BYTES = 10
_LARGEST_RANDOM = 2**80 - 1
_LARGEST_MS = 2**48 - 1


@dataclass(frozen=True, slots=True)
class Version:
    """Make an int field the version for optimistic locking: every write checks it and adds one."""


@dataclass(frozen=True, slots=True)
class TTL:
    """Make a datetime or int field the time to live, stored as epoch seconds.

    A datetime is truncated to the second: DynamoDB's time to live has no fractions.
    """


@dataclass(frozen=True, slots=True)
class Json:
    """Store a field of any type as one JSON string."""


@dataclass(frozen=True, slots=True)
class Created:
    """Let the store set a datetime field when the item is first written.

    A field that is part of a key has the key's precision: `{created:s}` truncates it to the second.
    """


@dataclass(frozen=True, slots=True)
class Updated:
    """Let the store set a datetime field on every write, with the precision of `Created`."""


#: The units of times in microseconds.
STEPS: Final = {"s": 1_000_000, "ms": 1_000, "us": 1}


def truncate(value: Any, step: int) -> Any:
    """Return a datetime without what is finer than `step` microseconds; other values stay as they are."""
    if step <= 1 or not isinstance(value, datetime) or not value.microsecond % step:
        return value
    return value.replace(microsecond=value.microsecond // step * step)


@dataclass(frozen=True, slots=True)
class _TimeFormat:
    """The common part of Iso and Epoch: Pydantic truncates values to the declared precision."""

    precision: str

    @property
    def step(self) -> int:
        """The precision in microseconds."""
        return STEPS[self.precision]

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        schema = handler(source)
        if self.precision == "us":
            return schema
        from pydantic_core.core_schema import no_info_after_validator_function

        return no_info_after_validator_function(self.truncate, schema)

    def truncate(self, value: Any) -> Any:
        """Return a datetime with the declared precision; None stays None."""
        return truncate(value, self.step)


@dataclass(frozen=True, slots=True)
class Iso(_TimeFormat):
    """Store a datetime as ISO 8601 text in UTC, with this precision and this form of the offset.

    Finer values are truncated when the entity is created, assigned or updated. In a template, `{created}`
    has the same text. `offset=""` writes no offset, and reads text without one as UTC.
    """

    precision: Literal["s", "ms", "us"] = "us"
    offset: Literal["Z", "+00:00", "+0000", ""] = "Z"

    def __post_init__(self) -> None:
        if self.precision not in STEPS:
            raise DeclarationError(f"Iso({self.precision!r}): the precision is 's', 'ms' or 'us'.")
        if self.offset not in ("Z", "+00:00", "+0000", ""):
            raise DeclarationError(
                f"Iso(offset={self.offset!r}): the offset is 'Z', '+00:00', '+0000' or '' for none."
            )


@dataclass(frozen=True, slots=True)
class Epoch(_TimeFormat):
    """Store a datetime as a number: whole seconds ("s") or milliseconds ("ms") since 1970.

    Finer values are truncated when the entity is created, assigned or updated.
    """

    precision: Literal["s", "ms"] = "s"

    def __post_init__(self) -> None:
        if self.precision not in ("s", "ms"):
            raise DeclarationError(f"Epoch({self.precision!r}): the unit is 's' or 'ms'.")


@dataclass(frozen=True, slots=True)
class Counter:
    """Make a number a counter that only children with a `Counted` trait change."""


@dataclass(frozen=True, slots=True)
class Unique:
    """Require unique values among a tenant's entities, with a lock item in the same transaction.

    With `within`, values are unique among entities with equal `within` fields, such as a parent's id.
    `normalise` decides which strings are equal: "exact" bytes, "nfc" (Unicode's composed form, the default)
    or "casefold".
    """

    within: tuple[str, ...] = ()
    normalise: Literal["exact", "nfc", "casefold"] = "nfc"


@dataclass(frozen=True, slots=True)
class Attr:
    """Give the field another attribute name in the stored item, or none.

    With `stored=False` the item has no attribute for the field: the primary key contains its value.

    >>> Attr("n").name
    'n'
    """

    name: str | None = None
    stored: bool = True

    def __post_init__(self) -> None:
        if self.name is None:
            if self.stored:
                raise DeclarationError("Attr() has no effect; pass an attribute name, or stored=False.")
            return
        if not self.stored:
            raise DeclarationError(
                f"Attr({self.name!r}, stored=False) names an attribute that is not stored; remove the name."
            )
        if not self.name:
            raise DeclarationError("Attr('') is empty; pass an attribute name.")
        size = len(self.name.encode("utf-8", "surrogatepass"))
        if size > LONGEST_ATTRIBUTE_NAME:
            raise DeclarationError(
                f"Attr({self.name[:20]!r}...) has {size} bytes; a name has {LONGEST_ATTRIBUTE_NAME} at most."
            )


class _FromScope(str):
    """The placeholder that a store replaces by the tenant of its scope; it has one instance."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "FROM_SCOPE"

    def __reduce__(self) -> str:
        # A name makes copies and pickles return the single instance.
        return "FROM_SCOPE"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        # JSON schemas of the entity, such as in OpenAPI, show the default as a str.
        return handler(str)


#: The default of the tenant field, which the store fills in: `tenant_id: str = FROM_SCOPE`.
FROM_SCOPE: Final[Any] = _FromScope()


def is_from_scope(value: object) -> bool:
    """Return whether a value is the placeholder for the tenant, not an ordinary empty str."""
    return isinstance(value, _FromScope)


def new_ulid(now_ms: int, entropy: bytes) -> str:
    """Return the ULID of a time in milliseconds and ten random bytes.

    >>> new_ulid(1469918176385, bytes(10))
    '01ARYZ6S410000000000000000'
    """
    if not 0 <= now_ms <= _LARGEST_MS:
        raise ValueError(f"A ULID's time is 0 to {_LARGEST_MS} milliseconds, not {now_ms}.")
    if len(entropy) != _RANDOM_BYTES:
        raise ValueError(f"A ULID has {_RANDOM_BYTES} random bytes, not {len(entropy)}.")
    return _text(now_ms << 80 | int.from_bytes(entropy, "big"))


def _text(number: int) -> str:
    # Two characters at a time: 13 steps of ten bits.
    return "".join([_PAIRS[number >> shift & 1023] for shift in range(120, -1, -10)])


class Ulids:
    """Generate ascending ULIDs, also within one millisecond and after the clock is set back.

    `clock` returns seconds since the epoch, `entropy(n)` n random bytes. `lock` guards the last ULID, so that
    threads can share this object. Use it as a default factory: it takes no arguments.
    """

    __slots__ = ("_clock", "_entropy", "_last_ms", "_lock", "_random")

    def __init__(
        self,
        clock: Callable[[], float],
        entropy: Callable[[int], bytes],
        lock: AbstractContextManager[Any],
    ) -> None:
        self._clock = clock
        self._entropy = entropy
        self._lock = lock
        self._last_ms = -1
        self._random = 0

    def __call__(self) -> str:
        now_ms = int(self._clock() * 1000)
        with self._lock:
            if now_ms > self._last_ms:
                self._start(now_ms)
            else:
                # A random step instead of 1 makes ids hard to guess, and different in forked processes.
                self._random += 1 + int.from_bytes(self._entropy(4), "big")
                if self._random > _LARGEST_RANDOM:
                    self._start(self._last_ms + 1)
            number = self._last_ms << 80 | self._random
        if not 0 <= number < 2**128:
            raise ValueError(f"A ULID's time is 0 to {_LARGEST_MS} milliseconds, not {now_ms}.")
        return _text(number)

    def _start(self, now_ms: int) -> None:
        self._last_ms = now_ms
        self._random = int.from_bytes(self._entropy(_RANDOM_BYTES), "big")
