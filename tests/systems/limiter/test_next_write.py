"""The next write of a bucket: one prepared update for all writes of one form."""

from __future__ import annotations

from typing import Any

from solotable.flow import Item
from solotable.systems.limiter.buckets.writes.next_write import NextWrite

_KEY: Item = {"PK": {"S": "bucket"}}


def _write(number: int, *, lane: str = "~0", name: str = "used_rpm") -> NextWrite:
    write = NextWrite(lane, [number, number, "rpm 1/60", 0])
    write.add(name, number)
    write.at_least(name, 1)
    write.at_most(name, number + 1)
    write.equals("half_rpm", 4)
    write.exists("consumed_rpm")
    write.set("expires", 9)
    return write


def _request(write: NextWrite) -> Any:
    return write.request("Limiter", _KEY)


def test_writes_of_one_form_share_a_prepared_update() -> None:
    one, other = _request(_write(1)), _request(_write(2))
    assert one.template is other.template
    assert one.values != other.values
    assert _request(_write(1, lane="~1")).template is not one.template
    assert _request(_write(1, name="used_tpm")).template is not one.template


def test_a_write_has_its_parts_with_their_values() -> None:
    request = _request(_write(7))
    changed = {action.path[0]: str(action) for action in request.update.actions}
    assert list(changed) == ["at", "writes", "~0", "used_rpm", "expires"]
    assert "'7'" in changed["used_rpm"]
    assert "'9'" in changed["expires"]
    text = str(request.condition)
    for part in (
        "('rules',)",
        "('level',)",
        "('~0',)",
        "'>='",
        "'<='",
        "'8'",
        "'half_rpm'",
        "'consumed_rpm'",
    ):
        assert part in text
    assert (request.returns, request.returns_on_failure) == ("ALL_NEW", True)


def test_removed_lanes_are_part_of_one_request_alone() -> None:
    write = _write(1)
    write.removed = ["~old"]
    request = _request(write)
    assert request.update.actions[-1].path == ("~old",)
    assert request.template is not _request(_write(1)).template
