"""ImportTable: the items of a bucket's objects in a new table, and what is rejected."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from solotable.errors import ServiceError

from .shop import KEYS, Shop, open_shop


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    with open_shop(tmp_path) as opened:
        yield opened


def write(shop: Shop, name: str, content: str | bytes) -> None:
    path = shop.folder / "vault" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def lines(*items: Any) -> str:
    return "".join(json.dumps({"Item": item}) + "\n" for item in items)


def counts(described: dict[str, Any]) -> tuple[str, int, int, int]:
    return (
        described["ImportStatus"],
        described["ProcessedItemCount"],
        described["ImportedItemCount"],
        described["ErrorCount"],
    )


def test_an_export_is_imported_again(shop: Shop) -> None:
    for number in range(600):
        shop.put(f"o{number}", n=number)
    folder = shop.export(S3Prefix="daily")["ExportManifest"].rpartition("/")[0]
    described = shop.import_(f"{folder}/data/", InputCompressionType="GZIP")
    assert counts(described) == ("COMPLETED", 600, 600, 0)
    assert shop.items() == shop.items("Shop")
    table = shop.call("DescribeTable", TableName="Copy")["Table"]
    assert (table["TableStatus"], table["ItemCount"]) == ("ACTIVE", 600)


def test_the_root_of_an_export_fails_and_its_items_are_imported(shop: Shop) -> None:
    shop.put("a", n=1)
    folder = shop.export()["ExportManifest"].rpartition("/")[0]
    described = shop.import_(f"{folder}/", InputCompressionType="GZIP")
    # Four manifests, as on AWS, and the definition of the table, which solotable adds.
    assert counts(described) == ("FAILED", 6, 1, 5)
    assert described["FailureCode"] == "ItemValidationError"
    assert list(shop.items()) == ["a"]


def test_a_rejected_item_fails_the_import_and_the_others_stay(shop: Shop) -> None:
    write(shop, "data/1.json", lines({"id": {"S": "a"}}, {"n": {"N": "1"}}, {"id": {"S": "b"}}))
    described = shop.import_("data/")
    assert counts(described) == ("FAILED", 3, 2, 1)
    assert sorted(shop.items()) == ["a", "b"]


def test_a_line_that_is_not_json_ends_its_object(shop: Shop) -> None:
    write(shop, "data/1.json", lines({"id": {"S": "a"}}) + "garbage\n" + lines({"id": {"S": "b"}}))
    write(shop, "data/2.json", lines({"id": {"S": "c"}}))
    assert counts(shop.import_("data/")) == ("FAILED", 3, 2, 1)
    assert sorted(shop.items()) == ["a", "c"]


def test_a_prefix_is_the_begin_of_a_key_and_not_a_folder(shop: Shop) -> None:
    write(shop, "data/1.json", lines({"id": {"S": "a"}}))
    write(shop, "data.bak", "garbage")
    assert counts(shop.import_("data")) == ("FAILED", 2, 1, 1)
    parameters = {"TableName": "One", **KEYS}
    described = shop.import_("data/1.json", TableCreationParameters=parameters)
    assert counts(described) == ("COMPLETED", 1, 1, 0)


def test_csv_has_keys_of_their_type_and_text_otherwise(shop: Shop) -> None:
    keys = {
        "AttributeDefinitions": [
            {"AttributeName": "id", "AttributeType": "S"},
            {"AttributeName": "n", "AttributeType": "N"},
        ],
        "KeySchema": [
            {"AttributeName": "id", "KeyType": "HASH"},
            {"AttributeName": "n", "KeyType": "RANGE"},
        ],
        "BillingMode": "PAY_PER_REQUEST",
    }
    write(shop, "rows.csv.gz", gzip.compress(b'a;1;"two\nlines; one cell"\nb;x;bad\n'))
    described = shop.import_(
        "rows",
        InputFormat="CSV",
        InputCompressionType="GZIP",
        InputFormatOptions={"Csv": {"Delimiter": ";", "HeaderList": ["id", "n", "text"]}},
        TableCreationParameters={"TableName": "Copy", **keys},
    )
    assert counts(described) == ("FAILED", 2, 1, 1)
    assert shop.items() == {"a": {"id": {"S": "a"}, "n": {"N": "1"}, "text": {"S": "two\nlines; one cell"}}}
    assert described["InputFormatOptions"]["Csv"]["Delimiter"] == ";"


def test_csv_without_options_has_its_header_in_the_first_line(shop: Shop) -> None:
    write(shop, "rows.csv", "id,n\na,1\nb,2\n")
    assert counts(shop.import_("rows", InputFormat="CSV")) == ("COMPLETED", 2, 2, 0)
    assert shop.items()["b"] == {"id": {"S": "b"}, "n": {"S": "2"}}


@pytest.mark.parametrize(
    "content",
    [b"plain", gzip.compress(b"{}" * 9_000, mtime=0)[:-20], b"\x1f\x8b\x08garbage"],
    ids=["plain", "short", "damaged"],
)
def test_an_object_that_cannot_be_unpacked_is_one_error(shop: Shop, content: bytes) -> None:
    write(shop, "data", content)
    described = shop.import_("data", InputCompressionType="GZIP")
    assert counts(described) == ("FAILED", 1, 0, 1)


def test_a_line_that_unpacks_to_gigabytes_is_one_error(shop: Shop) -> None:
    write(shop, "bomb.gz", gzip.compress(b" " * 40_000_000))
    assert counts(shop.import_("bomb", InputCompressionType="GZIP")) == ("FAILED", 1, 0, 1)


def test_an_empty_prefix_completes_with_an_empty_table(shop: Shop) -> None:
    assert counts(shop.import_("nothing/")) == ("COMPLETED", 0, 0, 0)
    assert shop.items() == {}


def test_a_bucket_that_does_not_exist_creates_no_table(shop: Shop) -> None:
    described = shop.import_("", S3BucketSource={"S3Bucket": "absent"})
    assert described["FailureCode"] == "S3NoSuchBucket"
    assert "Copy" not in shop.call("ListTables")["TableNames"]


def test_the_name_of_a_table_is_taken(shop: Shop) -> None:
    with pytest.raises(ServiceError, match="Table already exists: Shop") as rejected:
        shop.import_("", TableCreationParameters={"TableName": "Shop", **KEYS})
    assert rejected.value.code == "ResourceInUseException"


def test_a_client_token_names_one_table(shop: Shop) -> None:
    described = shop.import_("", ClientToken="t")
    with pytest.raises(ServiceError) as rejected:
        shop.import_("", ClientToken="t", TableCreationParameters={"TableName": "Other", **KEYS})
    assert rejected.value.code == "ImportConflictException"
    with pytest.raises(ServiceError, match="Table already exists"):
        shop.import_("", ClientToken="t")
    shop.call("DeleteTable", TableName="Copy")
    reply = shop.call("ListImports", TableArn=described["TableArn"])
    assert [each["ImportArn"] for each in reply["ImportSummaryList"]] == [described["ImportArn"]]


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"InputFormat": "ION"}, "InputFormat ION is not supported by solotable"),
        ({"InputCompressionType": "ZSTD"}, "InputCompressionType ZSTD is not supported by solotable"),
        ({"InputFormatOptions": {"Csv": {}}}, "Unsupported InputFormatOptions for the given input format"),
    ],
)
def test_what_solotable_lacks_is_rejected_by_name(shop: Shop, members: dict[str, Any], message: str) -> None:
    with pytest.raises(ServiceError, match=message):
        shop.import_("", **members)
