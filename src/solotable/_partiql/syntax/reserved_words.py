"""Reserved words of PartiQL for DynamoDB.

Statements must put attributes with these names in double quotes.
"""

from __future__ import annotations

from typing import Final

#: Words that are operators; the other reserved words are only forbidden as names.
OPERATORS: Final = frozenset({"and", "or", "not", "is", "in", "between", "like"})

_RESERVED = """
absolute action add all allocate alter and any are as asc assertion at authorization avg bag begin
between bit bit_length blob bool boolean by cascade cascaded case cast catalog char char_length
character character_length check clob close coalesce collate collation column commit conflict connect
connection constraint constraints continue convert corresponding count create cross current
current_date current_time current_timestamp current_user cursor date date_add date_diff deallocate dec
decimal declare default deferrable deferred delete desc describe descriptor diagnostics disconnect
distinct do domain double drop else end escape except exception exec execute exists external extract
false fetch first float for foreign found from full get global go goto grant group having identity
immediate in index indicator initially inner input insensitive insert int integer intersect interval
into is isolation join key language last left let level like limit list local lower match max min
missing modified module names national natural nchar new next no not nothing null nullif numeric
octet_length of old on only open option or order outer output overlaps pad partial pivot position
precision prepare preserve primary prior privileges procedure public read real references relative
remove restrict returning revoke right rollback rows schema scroll section select session session_user
set sexp size smallint some space sql sqlcode sqlerror sqlstate string struct substring sum symbol
system_user table temporary then time timestamp to transaction translate translation trim true tuple
union unique unknown unpivot update upper usage user using value values varchar varying view when
whenever where with work write zone
"""
RESERVED: Final = frozenset(_RESERVED.split())

#: The type names of `IS`, with DynamoDB's type.
TYPE_NAMES: Final = {
    "missing": "MISSING",
    "null": "NULL",
    "bool": "BOOL",
    "boolean": "BOOL",
    "blob": "B",
    "string": "S",
    "numeric": "N",
    "struct": "M",
    "tuple": "M",
    "list": "L",
}
UNSUPPORTED_TYPE_NAMES: Final = {
    "bag": "BAG",
    "char": "CHARACTER",
    "character": "CHARACTER",
    "character varying": "CHARACTER_VARYING",
    "clob": "CLOB",
    "date": "DATE",
    "dec": "DECIMAL",
    "decimal": "DECIMAL",
    "double precision": "DOUBLE_PRECISION",
    "float": "FLOAT",
    "int": "INTEGER",
    "int4": "INTEGER4",
    "int8": "INTEGER8",
    "integer": "INTEGER",
    "real": "REAL",
    "sexp": "SEXP",
    "smallint": "SMALLINT",
    "symbol": "SYMBOL",
    "time": "TIME",
    "timestamp": "TIMESTAMP",
    "varchar": "CHARACTER_VARYING",
}
