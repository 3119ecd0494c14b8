"""S2.28: `avatar_url` becomes `profile_images` over a rolling deploy, with both releases running."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from solotable import Database, Entity, Key, Table, connect
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import PutItem, Scan
from solotable._values import Item
from solotable.errors import NewerSchemaVersion
from solotable.jobs.backfill import backfill, report
from solotable.systems.community.entities.users import ProfileImages, User
from solotable.systems.community.table import community
from tests.killing import Start

from .releases import DIDS, OldUser, new_url, old_community, old_url, write_new, write_old
from .town import ANN, BEN, Town

URL = "https://img.example/a.png"
WRITES = 40


def stored(**attributes: Any) -> Item:
    """Return an item of the written design, with its attributes only."""
    texts = {"did": "did:plc:seed", "display_name": "Seed", "bio": "", "location": ""}
    return {
        "PK": {"S": "USER#did:plc:seed"},
        "SK": {"S": "PROFILE"},
        "entity_type": {"S": "USER"},
        **{name: {"S": text} for name, text in texts.items()},
        **attributes,
    }


IMAGES = {"M": {"avatar": {"M": {"url": {"S": URL}, "size": {"S": "large"}}}}}


@pytest.mark.parametrize(
    "attributes",
    [
        {"avatar_url": {"S": URL}},
        {"profile_images": IMAGES},
        {"avatar_url": {"S": URL}, "profile_images": IMAGES},
    ],
    ids=["old", "new", "both"],
)
def test_s2_28_an_item_with_either_or_both_attributes_reads_the_same(
    town: Town, attributes: dict[str, Any]
) -> None:
    town.engine.handle(PutItem(table=f"{town.prefix}community", item=stored(**attributes)))
    user = town.blocking.require(User, did="did:plc:seed")
    assert user.profile_images.model_dump() == {"avatar": {"url": URL, "size": "large"}}
    changed = town.blocking.update(user, set={"bio": "x"})
    assert changed.profile_images == user.profile_images
    (item,) = (each for each in town.items("USER") if each["did"] == {"S": "did:plc:seed"})
    assert item["avatar_url"] == {"S": URL}
    assert item["profile_images"] == IMAGES


def test_s2_28_each_release_reads_what_the_other_wrote_and_removed(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'town.db'}"
    with connect(url, old_community) as old, connect(url, community) as new:
        old.create(OldUser(did=DIDS[0], display_name="A", avatar_url=URL))
        assert new_url(new, DIDS[0]) == URL
        write_new(new, DIDS[0], URL + "?2")
        assert old_url(old, DIDS[0]) == URL + "?2"
        write_old(old, DIDS[0], URL + "?3")
        assert new_url(new, DIDS[0]) == URL + "?3"
        # The old release removes the picture; what the new one had copied does not bring it back.
        write_old(old, DIDS[0], None)
        assert new_url(new, DIDS[0]) is None
        write_new(new, DIDS[0], URL)
        write_new(new, DIDS[0], None)
        assert old_url(old, DIDS[0]) is None


def test_s2_28_both_releases_write_while_the_backfill_runs(tmp_path: Path, start: Start) -> None:
    url = f"sqlite:///{tmp_path / 'town.db'}?durability=relaxed"
    with connect(url, old_community) as old, connect(url, community) as new:
        for did in DIDS:
            old.create(OldUser(did=did, display_name="A", avatar_url=URL))
        running = [
            start("-m", "tests.systems.community.releases", release, url, str(WRITES))
            for release in ("old", "new")
        ]
        for program in running:
            program.wait_for_lines(3)
        runs = 0
        while any(program.process.poll() is None for program in running):
            assert backfill(new.admin(), User, budget=1_000, restart=True).tally.failed == 0
            runs += 1
        lines = [line.split(" ") for program in running for line in program.end()]
        assert len(lines) == 2 * WRITES
        assert runs > 0
        for did in DIDS:
            writes = {int(version): image for each, version, image in lines if each == did}
            # Every write has its own version: none was lost. The newest one is what both releases read.
            of_did = [line for line in lines if line[0] == did]
            assert len(writes) == len(of_did)
            last = max(writes) if writes else 0
            assert new.require(User, did=did, consistent=True).version == (last or 1)
            expected = {"None": None}.get(writes.get(last, URL), writes.get(last, URL))
            assert (old_url(old, did), new_url(new, did)) == (expected, expected)
        backfill(new.admin(), User, budget=1_000, restart=True)
        assert report(new.admin(), User, budget=1_000).by_schema_version == {2: len(DIDS)}


def test_s2_28_the_last_step_removes_the_old_attribute(tmp_path: Path) -> None:
    last_community = Table(
        "community", tag="entity_type", ttl="expires_at", stream=True, indexes=community.indexes.values()
    )

    class LastUser(Entity, table=last_community, tag="USER", schema_version=2):
        key = Key("USER#{did}", "PROFILE")
        did: str
        display_name: str
        profile_images: ProfileImages = ProfileImages()
        version: int = 0
        move_avatar = User.move_avatar

    url = f"sqlite:///{tmp_path / 'town.db'}"
    with connect(url, community) as new, connect(url, last_community) as last:
        for caller in (ANN, BEN):
            new.create(User(did=caller.require_user(), display_name="A"))
        write_new(new, ANN.require_user(), URL)
        assert _attributes(new) == {"avatar_url", "avatar_copied"}
        assert backfill(last.admin(), LastUser, budget=1_000).tally.failed == 0
        assert _attributes(new) == set()
        assert last.require(LastUser, did=ANN.require_user()).profile_images.avatar is not None
        with connect(url, old_community) as old, pytest.raises(NewerSchemaVersion):
            old.get(OldUser, did=ANN.require_user())


def _attributes(db: Database) -> set[str]:
    """Return which attributes of the old release are stored."""
    found = decode_items(db.engine.handle(Scan(table="community")).items or ())
    return {name for item in found for name in item} & {"avatar_url", "avatar_copied"}
