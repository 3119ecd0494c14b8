"""The words of a rejected request, by operation and by the year of AWS's texts (ADR 22).

Since mid-2026 a newer validator reads the requests of six item operations, and words some rejections
otherwise; a part of them carries a count of errors. The other operations kept the texts of 2025.
This module decides between the texts that a rejection carries. It finds no fault itself.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

from solotable.errors import Family, ServiceError, invalid

#: The texts of AWS as they were in 2025, or as they are since mid-2026.
ErrorTexts = Literal["2025", "2026"]
LATEST: Final[ErrorTexts] = "2026"
YEARS: Final[tuple[ErrorTexts, ...]] = get_args(ErrorTexts)

_COUNTED = "1 validation error detected: "
_WRITES = frozenset({"PutItem", "UpdateItem", "DeleteItem"})
# Captured in four regions on 2026-10-09: paritysuite/dynamodb-conformance, tier3 valueLayers.
# BatchWriteItem, TransactWriteItems, TransactGetItems and Scan have the older validator; nothing
# newer is known of PartiQL. CreateTable prints its key schema in another form (c_ct_3keys, 2026-09-20).
_NEWER = _WRITES | {"GetItem", "BatchGetItem", "Query", "CreateTable"}
#: Which operations put a count before which family of rejections.
_PREFIXED: Final[dict[Family, frozenset[str]]] = {
    # moto 10198, nubo-db/dynoxide 152, ministack 1038, paritysuite captures of 2026-09-20.
    "request": _WRITES,
    # moto 10198, nubo-db/dynoxide 122.
    "select": frozenset({"Query"}),
    # nubo-db/dynoxide 152: a value without a type, or with several, is rejected bare.
    "structure": frozenset(),
    "counted": frozenset(),
}


def reworded(rejected: ServiceError, operation: str, texts: ErrorTexts) -> ServiceError:
    """Return the rejection of a request to this operation, in the texts of a year."""
    if texts == "2025" or operation not in _NEWER or rejected.code != "ValidationException":
        return rejected
    text = rejected.message if rejected.newer is None else rejected.newer
    if operation in _PREFIXED[rejected.family]:
        text = _COUNTED + text
    return rejected if text == rejected.message else invalid(text)
