"""What the table really contained at each version, and the checks of every commit and every pull."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from solotable._entities.synced import SPACE_VERSION
from solotable._entities.traits.soft_delete import DELETED_AT
from solotable._flows.sync.spaces import Space
from solotable._values import Item, load
from tests.store.syncing import Replica

from .domain import table
from .hostile import Images, Key

TENANTS = ("acme", "beta")
PROJECT = "project/p1"
SPACES = ("", PROJECT)
#: By the start of the sort key: the start of the client's key, and the fields of the value.
_VISIBLE = {
    "JOURNAL": ("journal/", ("name", "signatures")),
    "TODO": ("todo/", ("name", "text")),
    "CARD": ("card/", ("name", "text")),
    "PROJECT": ("note/p1/", ("project", "name", "text")),
}
#: Mutations that may be rejected or not.
_CONDITIONAL = ("create",)

View = dict[str, dict[str, Any]]


class Violation(AssertionError):
    """An invariant of sync does not hold."""


def require(condition: bool, text: str, *details: object) -> None:
    """Raise Violation if a condition is false."""
    if not condition:
        raise Violation(": ".join((text, *(str(each) for each in details))))


@dataclass(frozen=True)
class State:
    """One version of a space."""

    epoch: str
    view: View
    #: By group and client.
    lasts: Mapping[tuple[str, str], int]


@dataclass
class Oracle:
    """The history of a table, from its commits alone; it does not read the log of a space."""

    items: dict[Key, Item]
    history: dict[tuple[str, str], dict[int, State]] = field(default_factory=dict)
    heads: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)
    #: The names and arguments of all mutations, by tenant, client and id.
    made: dict[tuple[str, str, int], tuple[str, dict[str, str]]] = field(default_factory=dict)
    #: The rejected mutations so far, by tenant and client.
    rejected: dict[tuple[str, str], set[int]] = field(default_factory=dict)
    lasts: dict[tuple[str, str, str], int] = field(default_factory=dict)
    #: The first commit of each group, by tenant and group: its time and its user.
    owners: dict[tuple[str, str], tuple[float, str]] = field(default_factory=dict)
    #: The signatures of writers whose writes were acknowledged, by tenant.
    acknowledged: dict[str, set[str]] = field(default_factory=lambda: {tenant: set() for tenant in TENANTS})
    resets: int = 0

    def __post_init__(self) -> None:
        self._partitions = {
            Space(table, tenant, name).partition: (tenant, name) for tenant in TENANTS for name in SPACES
        }

    def committed(self, images: Images, now: float) -> None:
        """Check one write, and note the versions that it made."""
        moved = dict(self._moved(images))
        for key, (before, after) in images.items():
            place = _place(key)
            if place is not None and before != after:
                require(place in moved, "a synced item changed without a version", key)
                is_seen = after is not None and not all(_is_hidden(each) for each in (before, after))
                is_stamped = after is not None and after.get(SPACE_VERSION) == {"N": str(moved[place][0])}
                require(is_stamped or not is_seen, "an item without the version of its write", key)
        clients = dict(self._clients(images, now))
        for tenant in {tenant for tenant, _, _ in clients}:
            own = {key[1:]: ids for key, ids in clients.items() if key[0] == tenant}
            # Rejected mutations change no item, and still need a version.
            require((tenant, "") in moved, "ids were confirmed without a version", own)
            self._check_confirmed(tenant, own, images)
        for tenant in {tenant for tenant, _ in moved}:
            self._check_signatures(tenant)
        for (tenant, name), (version, epoch) in moved.items():
            known = self.history.setdefault((tenant, name), {})
            last = self.heads.get((tenant, name), (0, ""))[0]
            lasts = dict(known[last].lasts) if last else {}
            lasts |= {
                (group, client): new for (each, group, client), (_, new) in clients.items() if each == tenant
            }
            known[version] = State(epoch, self.view(tenant, [name]), lasts)
            self.heads[tenant, name] = version, epoch

    def _moved(self, images: Images) -> Iterable[tuple[tuple[str, str], tuple[int, str]]]:
        for (partition, sort), (_, after) in images.items():
            if sort != "HEAD" or partition not in self._partitions:
                continue
            place = self._partitions[partition]
            require(after is not None, "a head was deleted", place)
            assert after is not None
            version, epoch = int(after["version"]["N"]), after["epoch"]["S"]
            old, old_epoch = self.heads.get(place, (0, epoch))
            require(version == old + 1 or (epoch != old_epoch and version > old), "a head jumped", place, old)
            yield place, (version, epoch)

    def _clients(self, images: Images, now: float) -> Iterable[tuple[tuple[str, str, str], tuple[int, int]]]:
        """Yield the tenant, group and client of each record that confirms ids, with its last ids."""
        for (partition, sort), (before, after) in images.items():
            tenant, name = self._partitions.get(partition, ("", "?"))
            if name == "" and sort.startswith("GROUP#") and after is not None:
                self.owners.setdefault((tenant, sort[6:]), (now, after["user"]["S"]))
            if name != "" or not sort.startswith("CLIENT#"):
                continue
            require(after is not None, "the record of a client was deleted", sort)
            assert after is not None
            _, group, client = sort.split("#")
            old, new = (0 if each is None else int(each["last"]["N"]) for each in (before, after))
            require(new >= old, "a last mutation id went down", client, old, new)
            self.lasts[tenant, group, client] = new
            kept = load(after["rejected"]) if "rejected" in after else []
            ids = self.rejected.setdefault((tenant, client), set())
            ids |= {int(each["id"]) for each in kept}
            if new > old or before is None:
                yield (tenant, group, client), (old, new)

    def _check_confirmed(
        self, tenant: str, clients: Mapping[tuple[str, str], tuple[int, int]], images: Images
    ) -> None:
        signed = Counter(self._signatures(tenant))
        names = Counter(
            self.made[tenant, client, each][1]["name"]
            for (_, client), (old, new) in clients.items()
            for each in range(old + 1, new + 1)
        )
        for (_, client), (old, new) in clients.items():
            for each in range(old + 1, new + 1):
                name, arguments = self.made[tenant, client, each]
                is_rejected = each in self.rejected.get((tenant, client), ())
                is_applied = signed[f"{client}:{each}"] > 0
                require(
                    is_rejected != is_applied, "confirmed, and neither applied nor rejected", client, each
                )
                if name not in _CONDITIONAL:
                    require(is_rejected == (name == "refuse"), "a wrong rejection", name, client, each)
                elif names[arguments["name"]] == 1:
                    key = (f"TENANT#{tenant}", f"TODO#{arguments['name']}")
                    existed = images[key][0] is not None if key in images else key in self.items
                    require(is_rejected == existed, "decided on old data", name, client, each)

    def _check_signatures(self, tenant: str) -> None:
        """Check that every mutation is in the journals once, in order, and not without its id."""
        for journal in self._journals(tenant):
            seen: dict[str, int] = {}
            for signature in journal:
                client, _, number = signature.partition(":")
                # Writers are many programs, so only the ids of clients have an order.
                is_next = client == "w" or int(number) > seen.get(client, 0)
                require(is_next, "out of order or twice", tenant, signature)
                seen[client] = int(number)
        counts = Counter(self._signatures(tenant))
        require(all(count == 1 for count in counts.values()), "applied twice", tenant)
        require(self.acknowledged[tenant] <= counts.keys(), "an acknowledged write is lost", tenant)
        for (each, _, client), last in self.lasts.items():
            if each == tenant:
                rejected = self.rejected.get((tenant, client), set())
                wanted = {f"{client}:{number}" for number in range(1, last + 1) if number not in rejected}
                got = {signature for signature in counts if signature.startswith(f"{client}:")}
                require(got == wanted, "effects without ids, or ids without effects", client, got ^ wanted)

    def _journals(self, tenant: str) -> Iterable[list[str]]:
        for (partition, sort), item in self.items.items():
            if partition == f"TENANT#{tenant}" and sort.startswith("JOURNAL#"):
                yield item["signatures"]["S"].split()

    def _signatures(self, tenant: str) -> Iterable[str]:
        for journal in self._journals(tenant):
            yield from journal

    def view(self, tenant: str, spaces: Iterable[str]) -> View:
        """Return what clients see of the committed items."""
        places = {(tenant, name) for name in spaces}
        return {
            prefix + value["name"]: value
            for key, item in self.items.items()
            if _place(key) in places and DELETED_AT not in item
            for prefix, fields in [_VISIBLE[key[1].partition("#")[0]]]
            for value in [{name: item[name]["S"] if name in item else "" for name in fields}]
        }

    def check_pull(self, replica: Replica, allowed: Iterable[str]) -> None:
        """Check that a replica is the space at exactly the version of its cookie."""
        tenant, cookie = replica.tenant, replica.cookie
        got = {key: value for key, value in replica.data.items() if not key.startswith("control/")}
        own = {client for each, group, client in self.lasts if (each, group) == (tenant, replica.group)}
        require(replica.confirmed.keys() <= own, "ids of a foreign client", replica.confirmed)
        for key in replica.data.keys() - got.keys() - {"control/sync"}:
            _, _, client, number = key.split("/")
            require(
                client in own and int(number) in self.rejected[tenant, client], "a foreign rejection", key
            )
        if "next" in cookie:
            return
        require(set(cookie["spaces"]) <= {*allowed}, "a space that the user must not read", cookie, allowed)
        wanted: View = {}
        lasts: dict[str, int] = {}
        for name, (version, epoch) in cookie["spaces"].items():
            if not version:
                continue
            state = self.history.get((tenant, name), {}).get(version)
            require(state is not None, "a cookie without a version", cookie)
            assert state is not None
            if state.epoch != epoch:
                # The next pull loads everything.
                return
            wanted |= state.view
            for (group, client), last in state.lasts.items():
                if group == replica.group:
                    lasts[client] = max(last, lasts.get(client, 0))
        if got != wanted:
            raise Violation(f"not the version of its cookie {json.dumps(cookie)}: {_difference(got, wanted)}")
        if not self.resets:
            require(replica.confirmed == lasts, "ids of another version", replica.confirmed, lasts, cookie)


def _place(key: Key) -> tuple[str, str] | None:
    """Return the tenant and the space of a synced item."""
    partition, sort = key
    kind = sort.partition("#")[0]
    if not partition.startswith("TENANT#") or kind not in _VISIBLE:
        return None
    return partition.removeprefix("TENANT#"), PROJECT if kind == "PROJECT" else ""


def _is_hidden(item: Item | None) -> bool:
    return item is None or DELETED_AT in item


def _difference(got: View, wanted: View) -> str:
    keys = sorted(key for key in got.keys() | wanted.keys() if got.get(key) != wanted.get(key))
    return "; ".join(f"{key} is {got.get(key)}, expected {wanted.get(key)}" for key in keys)
