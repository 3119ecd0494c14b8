"""A client process of the shop: writes through a router until its standard input ends, and tells each reply.

`python -m tests.migrations.router.customer NAME OLD NEW LEASE [MOMENT]`; each line is a JSON object. At the
moment "fork", a child goes on with the open router beside its parent; at "stop", the process stops itself in
its next write, after the router has chosen the side.
"""

from __future__ import annotations

import itertools
import json
import os
import select
import signal
import sys
import time
from random import Random
from typing import Any

from solotable import Table
from solotable._connect import over
from solotable.engines import sqlite
from solotable.errors import SolotableError
from solotable.migrations.migration import Migration
from solotable.migrations.router import Router, RouterOptions, StoreSide
from tests.killing import tell
from tests.waiting import jitter

from .shop import OldShop, Order, User, mapping, shop

#: The number of the write before which a moment comes, and again after as many.
_MOMENT = 8


def open_migration(old_file: str, new_file: str) -> Migration:
    """Open the migration of two files, as every process of the test does."""
    old = over(sqlite.open(old_file, durability="relaxed"), (Table("Unused"),))
    new = over(sqlite.open(new_file, durability="relaxed"), (shop,))
    return Migration("shop", mapping, sources=old.engine, target=new)


class Customer:
    """Writes orders of its own, deletes some of them, and counts visits that all customers share."""

    def __init__(self, name: str, router: Router[Any]) -> None:
        self._name = name
        self._router = router
        self._number = 0
        self.stops_in_write = False

    def act(self) -> None:
        """Write once, and tell what happened."""
        self._number += 1
        match self._number % 4:
            case 0:
                self._told("visit", "shared", lambda side: side.modify(User, _visit, user_id="shared"))
            case 1:
                number = f"{self._number - 8:06}"
                if self._number > 9:
                    key = {"user_id": self._name, "number": number}
                    self._told("delete", number, lambda side: side.delete(Order, **key))
            case _:
                order = Order(user_id=self._name, number=f"{self._number:06}", total=self._number)
                self._told("put", order.number, lambda side: side.put(order))

    def _told(self, verb: str, key: str, operation: Any) -> None:
        flips = 0

        def routed(side: Any) -> Any:
            nonlocal flips
            routing = self._router._parts.dispatcher.route.known
            flips = 0 if routing is None else routing.flips
            if self.stops_in_write:
                self.stops_in_write = False
                os.kill(os.getpid(), signal.SIGSTOP)
            return operation(side)

        started = time.monotonic()
        try:
            self._router.write(routed)
        except SolotableError as error:
            self._tell(verb="error", key=key, error=f"{type(error).__name__}: {error}")
            return
        self._tell(verb=verb, key=key, flips=flips, start=started, end=time.monotonic())

    def tell_pauses(self) -> None:
        """Tell how long writes waited."""
        self._tell(verb="pauses", seconds=list(self._router.status().pauses.seconds))

    def _tell(self, **event: Any) -> None:
        tell(json.dumps({"client": self._name, **event}))


def _visit(user: User) -> User:
    return user.model_copy(update={"visits": user.visits + 1})


def main(name: str, old_file: str, new_file: str, lease: str, moment: str = "") -> None:
    """Act until the test closes the standard input; then tell the pauses."""
    migration = open_migration(old_file, new_file)
    options = RouterOptions(lease_seconds=float(lease), wait_seconds=200.0)
    child: int | None = None
    with Router(migration, old=OldShop, new=StoreSide, options=options) as router:
        customer = Customer(name, router)
        for number in itertools.count():
            if number == _MOMENT and moment == "fork":
                child = os.fork()
                customer = customer if child else Customer(f"{name}-child", router)
            if number in (_MOMENT, 2 * _MOMENT) and moment == "stop":
                customer.stops_in_write = True
            if select.select([sys.stdin], [], [], 0)[0]:
                break
            customer.act()
            jitter(Random(f"{name} {number}"), 0.01)
        customer.tell_pauses()
    if child:
        assert os.waitpid(child, 0)[1] == 0


if __name__ == "__main__":
    main(*sys.argv[1:])
