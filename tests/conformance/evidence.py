"""Who captured the texts that AWS changed in mid-2026: a project, and its number or test.

paritysuite/dynamodb-conformance (nubo-db/dynamodb-conformance before) runs against up to 33 regions of
AWS. Its captures of 2026-09-20 name each request; its tests of 2026-10-09 ran in two to four regions.
"""

from __future__ import annotations

_PARITY = "paritysuite/dynamodb-conformance"
_CAPTURE = f"{_PARITY} capture 2026-09-20"

#: Expressions of PutItem, UpdateItem and DeleteItem.
EXPRESSION = f"moto 10198; nubo-db/dynoxide 152; {_CAPTURE}, u_upd_syntax, b_put_contains_dup"
EMPTY_EXPRESSION = f"moto 10198; {_CAPTURE}, u_upd_empty"
OVERLAP = "moto 10198"
PARENTHESES = f"nubo-db/dynoxide 152; {_CAPTURE}, b_put_redundant_parens"
EXPRESSION_SIZE = "nubo-db/dynoxide 152"
UNUSED = f"moto 10198; {_CAPTURE}, u_upd_unused_ean, u_upd_unused_eav"
EMPTY_MAP = f"moto 10198; {_PARITY} tier3 deleteItem, 2026-10-09"
WITHOUT_EXPRESSION = f"{_PARITY} tier3 putItem and deleteItem, 2026-10-09"
MIXED = f"{_CAPTURE}, b_put_mix_expr, u_upd_mix"

#: Values of the same operations.
EMPTY_SET = f"ministack 1038; moto 10198; {_CAPTURE}, b_put_empty_ss, b_put_empty_ns"
DUPLICATES = f"{_CAPTURE}, b_put_dup_ss; {_PARITY} tier3 valueLayers, 2026-10-09"
FALSE_NULL = f"nubo-db/dynoxide 152; {_CAPTURE}, nullRoundTrip"
NUMBER = f"{_PARITY} tier3 valueLayers, 2026-10-09"
NESTING = f"{_CAPTURE}, o_upd_nested_32_eav"
RETURN_VALUES = f"{_PARITY} tier3 deleteItem, 2026-10-09"
EXPECTED = f"{_PARITY} tier3 putItem and deleteItem, 2026-10-09"

#: Other operations.
SELECT = "moto 10198; nubo-db/dynoxide 122"
QUERY_LIMIT = f"{_PARITY} tier3 query"
BATCH_KEYS = f"{_PARITY} tier3 batchGetItem, 2026-10-09"
EMPTY_BATCH = f"{_PARITY} 157; {_CAPTURE}, o_bg_empty_requestitems"
KEY_SCHEMA = f"nubo-db/dynoxide 11; {_CAPTURE}, c_ct_3keys"

EMPTY_TABLE = f"{_CAPTURE}, o_put_empty_table_bad_rv, o_del_empty_table, o_upd_empty_table (31 of 33 regions)"
RETURN_ENUM = f"{_CAPTURE}, o_put_three_bad_enums, o_del_two_bad_enums, o_upd_two_bad_enums"
CONDITIONAL_OPERATOR = f"{_PARITY} tier3 validation-ordering query, 2026-10-09"

#: The text follows from the rule of ADR 22; no capture of this exact request is known.
INFERRED = "inferred (ADR 22)"
