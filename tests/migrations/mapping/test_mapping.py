"""Mappings: rules from source items to entities, the way back, and the check before a start."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from solotable import FROM_SCOPE, Counted, Counter, Entity, Index, Key, Table, Unique, Version, new_id
from solotable._values import Item, dump_item, item_size
from solotable.errors import DeclarationError
from solotable.migrations.mapping import Mapping, Part, Source, stable_id
from tests.migrations.stored_items import put_items, stored_items

shop = Table("Shop", indexes=[Index("GSI1")])


class Customer(Entity, table=shop):
    key = Key("CUSTOMER#{customer_id}", "CUSTOMER")
    by_city = Key("CITY#{city}", "{customer_id}", index="GSI1")

    customer_id: str
    email: Annotated[str, Unique()]
    city: str = "Unknown"
    orders: Annotated[int, Counter()] = 0
    version: Annotated[int, Version()] = 0


class Order(Entity, table=shop):
    key = Key("CUSTOMER#{customer_id}", "ORDER#{order_id}")
    counted = Counted(Customer, "orders")

    customer_id: str
    order_id: str
    total: int = 0


class Profile(Entity, table=shop):
    key = Key("PROFILE#{user_id}", "PROFILE")
    by_name = Key("NAMES", "{name}#{user_id}", index="GSI1")

    user_id: str
    name: str = ""
    bio: str = ""
    theme: str = "light"


def smallest() -> Mapping:
    mapping = Mapping(shop, Source("Users", key="id"))

    @mapping.rule("Users")
    def customer(item: dict[str, Any]) -> Iterator[Entity]:
        yield Customer(customer_id=item["id"], email=item["email"], city=item.get("city", "Unknown"))

    @mapping.inverse("Users", Customer)
    def user(customer: Customer) -> dict[str, Any]:
        return {"id": customer.customer_id, "email": customer.email, "city": customer.city}

    return mapping


def user(number: int, **values: Any) -> Item:
    return dump_item({"id": f"u{number}", "email": f"u{number}@example.com", **values})


def test_an_item_becomes_the_item_that_the_store_would_write_with_its_lock_and_index_keys() -> None:
    outputs = smallest().outputs("Users", user(1, city="Leeds"))
    assert outputs.dead == ()
    with shop.open("sqlite://") as db:
        db.create(Customer(customer_id="u1", email="u1@example.com", city="Leeds"))
        stored = stored_items(db, "Shop")
    assert sorted(map(str, (output.item for output in outputs.items.values()))) == sorted(map(str, stored))


def test_outputs_are_the_same_whenever_the_rule_runs() -> None:
    mapping = smallest()
    assert mapping.outputs("Users", user(1)) == mapping.outputs("Users", user(1))
    assert stable_id("Users", "u1") != stable_id("Users", "u2")


def test_a_failing_rule_a_bad_key_and_an_oversized_output_are_dead_letters_with_key_and_cause() -> None:
    mapping = smallest()
    missing = mapping.outputs("Users", dump_item({"id": "u1"}))
    assert missing.items == {}
    assert missing.dead[0].key == {"id": {"S": "u1"}}
    assert "KeyError: 'email'" in missing.dead[0].cause
    large = mapping.outputs("Users", user(2, email="x" * 410_000))
    assert "at most 409,600" in large.dead[0].cause
    long = mapping.outputs("Users", dump_item({"id": "u" * 2048, "email": "a@example.com"}))
    assert "at most 2048 in a partition key" in long.dead[0].cause
    raw = Mapping(shop, Source("Users", key="id"))
    raw.rule("Users", raw=True)(lambda item: [{"PK": item["id"], "SK": {"S": ""}}])
    assert "empty value in its key attribute 'SK'" in raw.outputs("Users", user(1)).dead[0].cause


def test_two_items_that_give_one_key_are_named() -> None:
    mapping = Mapping(shop, Source("Users", key="id"), Source("Guests", key="guest"))

    @mapping.rule("Users")
    def users(item: dict[str, Any]) -> Iterator[Entity]:
        yield Customer(customer_id=item["id"], email=item["email"])

    @mapping.rule("Guests")
    def guests(item: dict[str, Any]) -> Iterator[Entity]:
        yield Customer(customer_id=item["user"], email=f"{item['guest']}@example.com")

    report = mapping.check({"Users": [user(1)], "Guests": [dump_item({"guest": "g1", "user": "u1"})]})
    assert [problem.kind for problem in report.problems] == ["one key from two items"]
    assert "Guests {'guest': {'S': 'g1'}}" in str(report.problems[0])
    assert "also comes from Users {'id': {'S': 'u1'}}" in str(report.problems[0])
    with pytest.raises(DeclarationError, match="also comes from Users"):
        report.raise_if_bad()


def test_two_items_with_one_unique_value_are_named() -> None:
    same = [user(1, email="a@example.com"), user(2, email="a@example.com")]
    (problem,) = smallest().check({"Users": same}).problems
    assert problem.kind == "one key from two items"
    assert "UNIQUE#Customer#email" in problem.text


def test_a_rule_that_makes_random_ids_is_refused() -> None:
    mapping = Mapping(shop, Source("Users", key="id"))

    @mapping.rule("Users")
    def users(item: dict[str, Any]) -> Iterator[Entity]:
        yield Order(customer_id=item["id"], order_id=new_id())

    (problem,) = mapping.check({"Users": [user(1)]}).problems
    assert problem.kind == "not deterministic"


def test_a_rule_that_reads_the_clock_is_refused_with_the_attribute() -> None:
    mapping = Mapping(shop, Source("Users", key="id"))

    @mapping.rule("Users")
    def users(item: dict[str, Any]) -> Iterator[Entity]:
        yield Customer(customer_id=item["id"], email=item["email"], city=str(datetime.now(UTC)))

    (problem,) = mapping.check({"Users": [user(1)]}).problems
    assert "GSI1PK, city" in problem.text


def test_an_inverse_leads_back_to_the_item_and_one_that_loses_a_field_is_refused() -> None:
    mapping = smallest()
    report = mapping.check({"Users": [user(1, city="Leeds"), user(2)]})
    assert report.ok
    assert (report.reversed, report.identical) == (2, 1)

    @mapping.inverse("Users", Customer)
    def loses(customer: Customer) -> dict[str, Any]:
        return {"id": customer.customer_id, "email": customer.email}

    (problem,) = mapping.check({"Users": [user(1, city="Leeds")]}).problems
    assert problem.kind == "inverse"
    assert "GSI1PK, city" in problem.text


def nested() -> Mapping:
    mapping = Mapping(shop, Source("Baskets", key=("user", "basket")))

    @mapping.rule("Baskets")
    def baskets(item: dict[str, Any]) -> Iterator[Entity]:
        lines = item.get("lines", [])
        yield Customer(customer_id=item["basket"], email=item["user"], orders=len(lines))
        for line in lines:
            yield Order(customer_id=item["basket"], order_id=line["id"], total=line["total"])

    @mapping.inverse(
        "Baskets",
        Customer,
        Order,
        key=lambda entity: {"user": "u1", "basket": entity.customer_id},
        read=lambda db, key: db.all(
            Customer.key.query(customer_id=key["basket"]) | Order.key.query(customer_id=key["basket"])
        ),
    )
    def basket(entities: list[Any]) -> dict[str, Any] | None:
        heads = [each for each in entities if isinstance(each, Customer)]
        if not heads:
            return None
        lines = [{"id": each.order_id, "total": each.total} for each in entities if isinstance(each, Order)]
        return {"user": heads[0].email, "basket": heads[0].customer_id, "lines": lines}

    return mapping


BASKET = dump_item(
    {"user": "u1", "basket": "b1", "lines": [{"id": "l1", "total": 5}, {"id": "l2", "total": 7}]}
)


def test_one_item_becomes_several_entities_and_the_way_back_gathers_them() -> None:
    mapping = nested()
    outputs = mapping.outputs("Baskets", BASKET).items
    assert [output.entity for output in outputs.values()] == ["Customer", "_unique", "Order", "Order"]
    report = mapping.check({"Baskets": [BASKET]})
    assert report.problems == []
    assert report.identical == 1
    back = mapping.reversed()
    line = next(output for output in outputs.values() if output.entity == "Order")
    (found,) = back.outputs("Shop", line.item).items.values()
    assert found.kind == "gather"
    assert (found.table, found.key) == ("Baskets", {"user": {"S": "u1"}, "basket": {"S": "b1"}})
    with shop.open("sqlite://") as db:
        assert back.gather(found, db) is None


def test_a_counter_that_differs_from_the_entities_of_its_item_is_refused() -> None:
    mapping = Mapping(shop, Source("Baskets", key="basket"))

    @mapping.rule("Baskets")
    def baskets(item: dict[str, Any]) -> Iterator[Entity]:
        yield Customer(customer_id=item["basket"], email=item["user"])
        yield Order(customer_id=item["basket"], order_id="1")

    (problem,) = mapping.check({"Baskets": [BASKET]}).problems
    assert problem.text == "Customer.orders is 0, but the rule yields 1"


def test_a_counter_of_children_of_another_source_is_counted_at_the_switch() -> None:
    mapping = Mapping(shop, Source("Users", key="id"), Source("Orders", key="id"))

    @mapping.rule("Users")
    def users(item: dict[str, Any]) -> Iterator[Entity]:
        yield Customer(customer_id=item["id"], email=item["email"])

    @mapping.rule("Orders")
    def orders(item: dict[str, Any]) -> Iterator[Entity]:
        yield Order(customer_id=item["user"], order_id=item["id"])

    samples = {"Users": [user(1)], "Orders": [dump_item({"id": str(n), "user": "u1"}) for n in range(3)]}
    (problem,) = mapping.check(samples).problems
    assert "declare mapping.recounts(Customer, 'orders')" in problem.text
    mapping.recounts(Customer, "orders")
    assert mapping.check(samples).ok
    with shop.open("sqlite://") as db:
        for source, items in samples.items():
            for item in items:
                put_items(db, "Shop", (each.item for each in mapping.outputs(source, item).items.values()))
        assert mapping.recount(db) == 1
        assert db.require(Customer, customer_id="u1").orders == 3
        assert mapping.recount(db) == 0


def two_parts() -> Mapping:
    mapping = Mapping(shop, Source("Accounts", key="id"), Source("Texts", key="owner"))

    @mapping.rule("Accounts", parts={Profile: ["name"]})
    def accounts(item: dict[str, Any]) -> Iterator[Part]:
        yield Part(Profile, {"user_id": item["id"]}, {"name": item["name"]})

    @mapping.rule("Texts", parts={Profile: ["bio"]})
    def texts(item: dict[str, Any]) -> Iterator[Part]:
        yield Part(Profile, {"user_id": item["owner"]}, {"bio": item["bio"]})

    return mapping


def test_parts_of_two_sources_make_the_item_that_the_store_would_write() -> None:
    mapping = two_parts()
    accounts = mapping.outputs("Accounts", dump_item({"id": "1", "name": "Ada"}))
    texts = mapping.outputs("Texts", dump_item({"owner": "1", "bio": "Counts"}))
    assert accounts.items.keys() == texts.items.keys()
    (one,), (other,) = accounts.items.values(), texts.items.values()
    assert one.kind == other.kind == "part"
    assert one.owned == {"name", "GSI1PK", "GSI1SK"}
    assert other.owned == {"bio"}
    assert {**one.item, **other.item} == Profile(user_id="1", name="Ada", bio="Counts").to_item()
    samples = {
        "Accounts": [dump_item({"id": "1", "name": "Ada"})],
        "Texts": [dump_item({"owner": "1", "bio": ""})],
    }
    assert mapping.check(samples).ok


def test_a_field_from_two_sources_is_refused() -> None:
    mapping = two_parts()
    with pytest.raises(DeclarationError, match=r"Profile\.name comes from 'Accounts' and from 'Texts'"):

        @mapping.rule("Texts", parts={Profile: ["bio", "name"]})
        def texts(item: dict[str, Any]) -> Iterator[Part]:
            yield Part(Profile, {"user_id": "1"}, {})


class OldUser(BaseModel):
    id: str
    email: str
    city: str = Field(default="Unknown", max_length=20)


def test_a_source_model_validates_an_item_before_its_rule_and_its_error_shows_no_value() -> None:
    mapping = Mapping(shop, Source("Users", key="id", model=OldUser))

    @mapping.rule("Users")
    def users(old: OldUser) -> Iterator[Entity]:
        yield Customer(customer_id=old.id, email=old.email, city=old.city)

    assert mapping.outputs("Users", user(1)).items
    (dead,) = mapping.outputs("Users", user(2, city="secret" * 10)).dead
    assert dead.cause == "OldUser: city: String should have at most 20 characters"


tenants = Table("App", tenant="tenant_id")


class Task(Entity, table=tenants):
    key = Key("TENANT#{tenant_id}", "TASK#{task_id}")

    tenant_id: str = FROM_SCOPE
    task_id: str
    title: Annotated[str, Unique()]


def test_one_tenant_moves_out_with_its_locks_and_no_other() -> None:
    moved = Table("Moved")
    mapping = Mapping(moved, Source(tenants, tenant="acme"))
    mapping.copy("App")
    with tenants.open("sqlite://") as db:
        for tenant in ("acme", "acme2"):
            db.tenant(tenant).create(Task(task_id="t1", title="Sweep"))
        stored = stored_items(db, "App")
    assert len(stored) == 4
    outputs = [output for item in stored for output in mapping.outputs("App", item).items.values()]
    assert sorted(output.key["PK"]["S"] for output in outputs) == [
        "TENANT#acme",
        "UNIQUE#acme#Task#title#Sweep",
    ]
    assert all(mapping.reversed().outputs("Moved", output.item).items for output in outputs)


def test_a_declared_table_gets_another_shape_of_itself() -> None:
    mapping = Mapping(shop, Source(tenants))

    @mapping.rule("App", Task)
    def tasks(task: Task) -> Iterator[Entity]:
        yield Order(customer_id=task.tenant_id, order_id=task.task_id)

    outputs = mapping.outputs("App", Task(tenant_id="acme", task_id="t1", title="Sweep").to_item())
    assert [output.key["SK"] for output in outputs.items.values()] == [{"S": "ORDER#t1"}]
    assert (
        mapping.outputs("App", {"PK": {"S": "UNIQUE#x"}, "SK": {"S": "U"}, "_type": {"S": "_unique"}}).items
        == {}
    )


def test_a_mapping_says_what_is_missing() -> None:
    mapping = Mapping(shop, Source("Users", key="id"))
    with pytest.raises(DeclarationError, match="has no rule"):
        mapping.check({"Users": []})
    with pytest.raises(DeclarationError, match="did you mean 'Users'"):
        mapping.rule("User")
    with pytest.raises(DeclarationError, match="has no inverse"):
        mapping.reversed()
    with pytest.raises(DeclarationError, match="needs key="):
        Source("Users")


def test_an_output_knows_its_size() -> None:
    mapping = Mapping(shop, Source("Users", key="id"))

    @mapping.rule("Users")
    def customer(item: dict[str, Any]) -> Iterator[Entity]:
        yield Customer(customer_id=item["id"], email="é@example.com", city="Zürich")

    sizes = {
        output.entity: (output.size, item_size(output.item))
        for output in mapping.outputs("Users", dump_item({"id": "1"})).items.values()
    }
    assert sizes["Customer"][0] == sizes["Customer"][1]
