"""Neighbourhoods: keys, unique slugs in every script, lists, privacy, changes and deletion."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from solotable._protocol.requests import TransactWriteItems
from solotable.errors import NotFound, VersionConflict
from solotable.systems.community.errors import Forbidden, NameTaken
from solotable.systems.community.roles import VISITOR
from solotable.systems.community.services.drafts import NeighbourhoodDraft, NeighbourhoodPatch
from solotable.systems.community.services.neighbourhoods import Neighbourhoods
from solotable.systems.errors import InvalidInput

from .town import ANN, BEN, EVA, OPERATOR, Town


def test_s2_1_all_entities_are_in_one_table_with_a_type_attribute(town: Town) -> None:
    place = town.found()
    town.post(town.site(neighbourhood_id=place.id))
    town.record()
    found = {item["entity_type"]["S"] for item in town.raw()}
    assert {"USER", "NBHD", "MEMBER", "MEMBER_EVENT", "SITE", "SITE_OWNER", "POST", "RECORD"} <= found


def test_s2_2_keys_are_a_type_and_an_identifier(town: Town) -> None:
    place = town.found()
    site = town.site()
    keys = {(item["PK"]["S"], item["SK"]["S"]) for item in town.raw()}
    assert (f"USER#{ANN.did}", "PROFILE") in keys
    assert (f"NBHD#{place.id}", "METADATA") in keys
    assert (f"NBHD#{place.id}", f"MEMBER#{ANN.did}") in keys
    assert (f"USER#{ANN.did}", f"SITE#{site.site_id}") in keys


def test_s2_4_a_neighbourhood_has_the_attributes_of_the_design(town: Town) -> None:
    town.found(description="For residents")
    (item,) = town.items("NBHD")
    assert item["PK"]["S"] == f"NBHD#{item['id']['S']}"
    assert item["slug"] == {"S": "downtown-collective"}
    assert item["member_count"] == {"N": "1"}
    assert item["settings"]["M"].keys() == {"allow_site_creation", "require_email_verification"}
    names = {"name", "description", "creator_did", "created_at", "privacy"}
    assert names <= item.keys()


def test_s2_9_a_taken_name_is_found_by_its_slug(town: Town) -> None:
    place = town.found()
    town.journal.clear()
    taken, used = town.measured(town.neighbourhoods.is_taken("Downtown Collective"))
    assert taken
    assert town.sent() == ["Query"]
    assert used.rcu == 0.5
    assert not town.run(town.neighbourhoods.is_taken("uptown"))
    assert town.run(town.neighbourhoods.by_slug(VISITOR, "DOWNTOWN collective")).id == place.id


@pytest.mark.parametrize(
    "name",
    [
        "downtown-collective",
        "DOWNTOWN COLLECTIVE",
        "Downtown\u00a0Collective",
        "Downtown\u2003Collective",
        "Down\u200btown\u3000Collective\u200d",
        "\uff24owntown Collective",
        "Downtown\u3164 Collective",
        "  downtown__collective!! ",
        "\u202eDowntown Collective",
    ],
)
def test_c2_13_one_slug_has_many_spellings(town: Town, name: str) -> None:
    town.found()
    with pytest.raises(NameTaken) as raised:
        town.found(BEN, name=name)
    assert raised.value.field == "slug"
    assert len(town.items("NBHD")) == 1
    assert len(town.items("MEMBER")) == 1


def test_c2_13_names_in_every_script_have_slugs_that_differ(town: Town) -> None:
    names = ["Köln", "Koln", "Москва", "मुंबई", "मुबई", "東京", "القاهرة", "กรุงเทพ", "Αθήνα", "서울", "ירושלים"]
    slugs = [town.found(ANN, name=name).slug for name in names]
    assert len(set(slugs)) == len(names)
    for name, slug in zip(names, slugs, strict=True):
        assert town.run(town.neighbourhoods.by_slug(VISITOR, name)).slug == slug
        assert town.run(town.neighbourhoods.by_slug(VISITOR, slug)).slug == slug


def test_c2_13_normal_forms_of_one_name_are_one_slug(town: Town) -> None:
    town.found(name="Caf\u00e9")
    with pytest.raises(NameTaken):
        town.found(BEN, name="Cafe\u0301")


@pytest.mark.parametrize("name", ["---", "\u200b", "!!!", "x" * 101, "", " ", "\u3164"])
def test_a_name_without_letters_or_too_long_is_rejected(town: Town, name: str) -> None:
    with pytest.raises((InvalidInput, ValidationError)):
        town.found(name=name)


def test_c2_4_two_creators_of_one_slug_at_the_same_time_have_one_winner(town: Town) -> None:
    draft = NeighbourhoodDraft(name="Downtown Collective")
    town.watched.slip_in(
        TransactWriteItems,
        lambda: town.run_beside(lambda db: Neighbourhoods(db, now=town.now).create(BEN, draft)),
    )
    with pytest.raises(NameTaken):
        town.found(ANN)
    (item,) = town.items("NBHD")
    assert item["creator_did"] == {"S": BEN.did}
    assert len(town.items("MEMBER")) == 1


def test_c2_4_a_slug_moves_with_a_change_and_is_free_afterwards(town: Town) -> None:
    place = town.found()
    other = town.found(BEN, name="Uptown")
    with pytest.raises(NameTaken):
        town.run(town.neighbourhoods.update(BEN, other.id, NeighbourhoodPatch(slug="downtown collective")))
    town.run(town.neighbourhoods.update(ANN, place.id, NeighbourhoodPatch(slug="Midtown")))
    town.run(town.neighbourhoods.update(BEN, other.id, NeighbourhoodPatch(slug="downtown collective")))
    assert town.run(town.neighbourhoods.by_slug(VISITOR, "midtown")).id == place.id


def test_s2_8_public_neighbourhoods_are_listed_newest_first(town: Town) -> None:
    places = []
    for number in range(6):
        town.pass_time(minutes=1)
        places.append(town.found(name=f"Place {number}"))
    town.journal.clear()
    page, used = town.measured(town.neighbourhoods.list(limit=4))
    assert [each.id for each in page] == [place.id for place in reversed(places)][:4]
    # Four shards at half a unit each; a shard that has most of the page is read twice.
    queries = town.sent()
    assert set(queries) == {"Query"}
    assert 4 <= len(queries) <= 6
    assert used.rcu <= 6 * 0.5
    rest = town.run(town.neighbourhoods.list(limit=10, cursor=page.cursor))
    assert [each.id for each in rest] == [places[1].id, places[0].id]


def test_c2_2_a_private_neighbourhood_is_in_no_list_and_moves_with_its_privacy(town: Town) -> None:
    place = town.found(privacy="private")
    (item,) = town.items("NBHD")
    assert "GSI1PK" not in item
    assert list(town.run(town.neighbourhoods.list())) == []
    town.run(town.neighbourhoods.update(ANN, place.id, NeighbourhoodPatch(privacy="public")))
    assert [each.id for each in town.run(town.neighbourhoods.list())] == [place.id]
    town.run(town.neighbourhoods.update(ANN, place.id, NeighbourhoodPatch(privacy="private")))
    assert list(town.run(town.neighbourhoods.list())) == []
    (item,) = town.items("NBHD")
    assert "GSI1PK" not in item
    # A change of a membership writes the neighbourhood and does not put it into the list.
    town.run(town.memberships.invite(ANN, place.id, BEN.require_user()))
    town.join(BEN, place)
    (item,) = town.items("NBHD")
    assert "GSI1PK" not in item
    assert list(town.run(town.neighbourhoods.list())) == []


def test_c2_2_a_visitor_sees_the_name_of_a_private_neighbourhood_and_no_count(town: Town) -> None:
    place = town.found(privacy="private", description="Secret")
    for caller in (VISITOR, BEN):
        for view in (
            town.run(town.neighbourhoods.get(caller, place.id)),
            town.run(town.neighbourhoods.by_slug(caller, place.slug)),
        ):
            assert (view.name, view.description, view.member_count) == ("Downtown Collective", None, None)
            assert (view.creator_did, view.settings, view.role) == (None, None, None)
    assert town.run(town.neighbourhoods.get(ANN, place.id)).role == "creator"
    assert town.run(town.neighbourhoods.get(OPERATOR, place.id)).member_count == 1
    town.join(BEN, place)
    assert town.run(town.neighbourhoods.get(BEN, place.id)).member_count is None


def test_only_admins_change_and_only_the_creator_deletes(town: Town) -> None:
    place = town.found()
    town.join(BEN, place)
    for caller in (BEN, EVA, VISITOR):
        with pytest.raises(Forbidden):
            town.run(town.neighbourhoods.update(caller, place.id, NeighbourhoodPatch(name="x")))
    town.run(town.memberships.change_role(ANN, place.id, BEN.require_user(), "admin"))
    changed = town.run(town.neighbourhoods.update(BEN, place.id, NeighbourhoodPatch(name="New name")))
    assert (changed.name, changed.slug, changed.member_count) == ("New name", "downtown-collective", 2)
    with pytest.raises(VersionConflict):
        town.run(town.neighbourhoods.update(BEN, place.id, NeighbourhoodPatch(name="x"), version=1))
    with pytest.raises(Forbidden):
        town.run(town.neighbourhoods.delete(BEN, place.id))
    town.run(town.neighbourhoods.delete(ANN, place.id))
    with pytest.raises(NotFound):
        town.run(town.neighbourhoods.get(ANN, place.id))
    assert list(town.run(town.neighbourhoods.list())) == []


def test_s2_24_a_deleted_neighbourhood_leaves_its_history(town: Town) -> None:
    place = town.found()
    town.join(BEN, place)
    town.run(town.neighbourhoods.delete(ANN, place.id))
    town.pass_time(days=31)
    assert town.purge().removed == {"Membership": 2, "Neighbourhood": 1}
    assert (town.items("NBHD"), town.items("MEMBER")) == ([], [])
    assert len(town.items("MEMBER_EVENT")) == 2
    assert town.found(BEN).slug == "downtown-collective"


def test_items_of_another_program_hide_nothing(town: Town) -> None:
    """Another program may write to the table, also into the partitions of our indexes."""
    place = town.found(ANN)
    site = town.site(ANN, neighbourhood_id=place.id)
    town.post(site)
    name = town.prefix + town.table.name
    foreign = 0
    for item in town.raw():
        base = {"PK": item["PK"], "SK": {"S": f"{item['SK']['S']}~"}, "color": {"S": "red"}}
        copies = [base]
        for index in range(1, 8):
            if f"GSI{index}PK" in item:
                keys = {f"GSI{index}{side}": item[f"GSI{index}{side}"] for side in ("PK", "SK")}
                copies.append({**base, **keys, "PK": {"S": f"RED#{foreign}#{index}"}})
        for each in copies:
            foreign += 1
            town.engine.call("PutItem", {"TableName": name, "Item": each})  # type: ignore[attr-defined]
    run, did = town.run, ANN.require_user()
    assert [each.id for each in run(town.neighbourhoods.list())] == [place.id]
    assert run(town.neighbourhoods.by_slug(BEN, place.slug)).id == place.id
    assert [each.did for each in run(town.memberships.members(ANN, place.id))] == [did]
    assert [each.neighbourhood.id for each in run(town.memberships.of_user(BEN, did))] == [place.id]
    assert len(run(town.memberships.history(ANN, place.id)).items) == 1
    assert [each.site_id for each in run(town.sites.list(ANN))] == [site.site_id]
    assert len(run(town.posts.list(ANN, site.site_id)).items) == 1
    assert run(town.users.by_handle(BEN, "ann.bsky.social")).did == did
    assert len(run(town.users.list(OPERATOR)).items) == 4
    assert len(run(town.accounts.export(ANN))["sites"]) == 1
    run(town.accounts.delete(ANN))
    town.pass_time(days=31)
    assert town.purge().errors == 0
    assert not [item for item in town.raw() if did in str(item) and "color" not in item]
