"""URLs that are refused, with what to write instead."""

from __future__ import annotations

import pytest

from solotable import Index, Table, connect
from solotable.errors import DeclarationError

shop = Table("Shop", indexes=[Index("GSI1")])


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("shop.db", "is no database URL; write sqlite:///file.db"),
        ("postgres://host/shop", "is no database URL"),
        ("http:///Shop", "is no database URL"),
        ("sqlite://shop.db", "a file has three slashes: sqlite:///file.db"),
        ("sqlite:/shop.db", "too few slashes; a file has three of them: sqlite:///file.db"),
        ("sqlite://?durability=none", "durability is full or relaxed"),
        ("sqlite://?durabilty=relaxed", "did you mean 'durability'?"),
        ("aws://Shop?regoin=eu-west-1", "did you mean 'region'?"),
        ("http://127.0.0.1:8000/a/b", "more behind its host than the name of a table"),
        ("sqlite://?prefix=a%20", "'a Shop' is no name of a DynamoDB table"),
    ],
)
def test_a_url_that_cannot_be_opened_says_why(url: str, told: str) -> None:
    with pytest.raises(DeclarationError) as refused:
        shop.open(url)
    assert told in str(refused.value)


def test_a_table_has_a_name_that_dynamodb_takes() -> None:
    with pytest.raises(DeclarationError, match="'T' is no name of a DynamoDB table"):
        Table("T").open("sqlite://")
    Table("T").open("http://127.0.0.1:1/Shop?region=eu-west-1").close()


def test_tables_are_named() -> None:
    with pytest.raises(DeclarationError, match="Say which tables to open"):
        connect("sqlite://")
    with pytest.raises(DeclarationError, match="names one table"):
        connect("http://127.0.0.1:1/Shop", shop, Table("Other"))


def test_a_name_is_opened_once() -> None:
    with pytest.raises(DeclarationError, match="Two tables are called 'Shop'"):
        connect("sqlite://", shop, Table("Shop", tenant="org"))
