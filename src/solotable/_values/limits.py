"""DynamoDB's limits, each under one name."""

from __future__ import annotations

from typing import Final

LARGEST_ITEM: Final = 409_600
LONGEST_ATTRIBUTE_NAME: Final = 65_535
#: Levels of lists and maps in an attribute's value.
DEEPEST_VALUE: Final = 32
#: Bytes of items after which a page of Query or Scan ends.
LARGEST_PAGE: Final = 1_048_576
#: Bytes of items after which BatchGetItem leaves the rest unprocessed.
LARGEST_BATCH_REPLY: Final = 16_777_216
LARGEST_REQUEST: Final = 16_777_216
LARGEST_TRANSACTION: Final = 4_194_304

#: Bytes of an expression's text.
LARGEST_EXPRESSION: Final = 4_096
MOST_OPERATORS: Final = 300
#: Comparisons of a write with what it has read; a comparison and its AND are two operators.
MOST_COMPARISONS: Final = 140
MOST_IN_OPERANDS: Final = 100
#: Parts of a document path.
DEEPEST_PATH: Final = 32
LARGEST_LIST_INDEX: Final = 2**31 - 1
LONGEST_PLACEHOLDER: Final = 255

MOST_BATCH_WRITES: Final = 25
MOST_BATCH_GETS: Final = 100
MOST_BATCH_STATEMENTS: Final = 25
MOST_TRANSACTION_ACTIONS: Final = 100
MOST_SEGMENTS: Final = 1_000_000
MOST_LISTED_TABLES: Final = 100
MOST_LISTED_STREAMS: Final = 100
MOST_LISTED_BACKUPS: Final = 100
MOST_STREAM_RECORDS: Final = 1_000

LONGEST_PARTITION_KEY: Final = 2_048
LONGEST_SORT_KEY: Final = 1_024
#: Names of tables and of indexes.
SHORTEST_TABLE_NAME: Final = 3
LONGEST_TABLE_NAME: Final = 255
LONGEST_TABLE_ARN: Final = 1_024
LONGEST_TOKEN: Final = 36
TOKEN_SECONDS: Final = 600
LONGEST_STATEMENT: Final = 8_192

MOST_LOCAL_INDEXES: Final = 5
MOST_GLOBAL_INDEXES: Final = 20
MOST_INDEX_KEY_PARTS: Final = 4
MOST_PROJECTED_ATTRIBUTES: Final = 100
MOST_PROVISIONED_UNITS: Final = 1_000_000_000_000
MOST_TAGS: Final = 50
LONGEST_TAG_KEY: Final = 128
LONGEST_TAG_VALUE: Final = 256
#: Bytes of a resource policy.
LARGEST_POLICY: Final = 20_480
LONGEST_RESOURCE_ARN: Final = 1_283
LONGEST_REVISION: Final = 255
MOST_LISTED_INSIGHTS: Final = 100

#: Bytes of one read unit and of one write unit.
READ_STEP: Final = 4_096
WRITE_STEP: Final = 1_024
