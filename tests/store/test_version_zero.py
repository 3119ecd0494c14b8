"""Version 0: items of other programs without a version, and the default of modify()."""

from __future__ import annotations

from typing import Annotated

import pytest

from solotable import Database, Entity, Key, Table, Version
from solotable.errors import DataError, VersionConflict
from tests.store.opening import Opening

bins = Table("Bins")


class Bin(Entity, table=bins):
    key = Key("BIN", "{bin_id}")
    bin_id: str
    label: str = ""
    version: Annotated[int, Version()] = 0


@pytest.fixture
def db(opening: Opening) -> Database:
    db = opening(bins)
    db.put(Bin(bin_id="b1"))
    item = opening.only(Bin)
    del item["version"]
    opening.plant(bins, item)
    return db


def test_an_item_without_a_version_is_updated_at_version_0(db: Database) -> None:
    found = db.require(Bin, bin_id="b1")
    assert found.version == 0
    assert db.update(found, set={"label": "x"}).version == 1
    with pytest.raises(VersionConflict, match="expected version 0, found version 1"):
        db.update(found, set={"label": "y"})


def test_an_item_without_a_version_is_deleted_and_checked_at_version_0(db: Database) -> None:
    found = db.require(Bin, bin_id="b1")
    with db.transaction() as tx:
        tx.check(Bin, bin_id="b1", version=0)
        tx.put(Bin(bin_id="b2"))
    assert db.delete(found) == found
    with pytest.raises(VersionConflict, match="expected version 0, the item does not exist"):
        db.delete(found)


def test_the_default_of_modify_is_new(db: Database) -> None:
    def rename(stored: Bin) -> Bin:
        return stored.model_copy(update={"label": "x", "version": 9})

    with pytest.raises(DataError, match="so its version is 0, got 7"):
        db.modify(Bin, rename, bin_id="b3", default=Bin(bin_id="b3", version=7))
    assert db.modify(Bin, rename, bin_id="b3", default=Bin(bin_id="b3")).version == 1
