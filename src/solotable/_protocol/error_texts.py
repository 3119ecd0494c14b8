"""Choose the text of an error, by operation and by the year of AWS's texts (ADR 22).

Since mid-2026 a newer validator checks the requests of six item operations. Some of its texts differ, and
some have a count of errors before them. The other operations have the texts of 2025.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

from solotable.errors import Family, ServiceError, invalid

#: AWS's texts of 2025, or those since mid-2026.
ErrorTexts = Literal["2025", "2026"]
LATEST: Final[ErrorTexts] = "2026"
YEARS: Final[tuple[ErrorTexts, ...]] = get_args(ErrorTexts)

_COUNTED = "1 validation error detected: "
_WRITES = frozenset({"PutItem", "UpdateItem", "DeleteItem"})
# Captured in four regions on 2026-10-09: paritysuite/dynamodb-conformance, tier3 valueLayers.
# BatchWriteItem, TransactWriteItems, TransactGetItems and Scan have the older validator; so has PartiQL, as
# far as is known. CreateTable prints its key schema in another form (c_ct_3keys, 2026-09-20).
_NEWER = _WRITES | {"GetItem", "BatchGetItem", "Query", "CreateTable"}
#: The operations that put a count before a family of errors.
_PREFIXED: Final[dict[Family, frozenset[str]]] = {
    # moto 10198, nubo-db/dynoxide 152, ministack 1038, paritysuite captures of 2026-09-20.
    "request": _WRITES,
    # moto 10198, nubo-db/dynoxide 122.
    "select": frozenset({"Query"}),
    # nubo-db/dynoxide 152: the error for a value without a type, or with several, has no count.
    "structure": frozenset(),
    "counted": frozenset(),
}


def choose_text(rejected: ServiceError, operation: str, texts: ErrorTexts) -> ServiceError:
    """Return the error for a request to this operation, in the texts of a year."""
    if texts == "2025" or operation not in _NEWER or rejected.code != "ValidationException":
        return rejected
    text = rejected.message if rejected.newer is None else rejected.newer
    if operation in _PREFIXED[rejected.family]:
        text = _COUNTED + text
    return rejected if text == rejected.message else invalid(text)
