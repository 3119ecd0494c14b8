"""Additions to an item that a transaction writes anyway, or adds to more than once, become one action.

DynamoDB takes an item once in a transaction, and a survey may be created with its sections and its
counter in one.
"""

from __future__ import annotations

from dataclasses import replace

from solotable._expressions.ast import Add, And, Update
from solotable._protocol.requests import ConditionCheck, DeleteItem, PutItem, UpdateItem, WriteAction
from solotable._values import Item, add


def with_addition(action: WriteAction, addition: UpdateItem) -> WriteAction | None:
    """Return an action that also does an addition to the same item; None if it cannot.

    An item that is deleted needs no addition, and one that is put has it in its value.
    """
    match action:
        case DeleteItem():
            return action
        case PutItem():
            return replace(action, item=_added(action.item, addition.update))
        case UpdateItem():
            paths = {each.path for each in action.update.actions}
            if all(each.path not in paths for each in addition.update.actions):
                actions = (*action.update.actions, *addition.update.actions)
                return replace(action, update=replace(action.update, actions=actions))
            return _summed(action, addition)
        case ConditionCheck():
            assert addition.condition is not None
            return UpdateItem(
                table=action.table,
                key=action.key,
                update=addition.update,
                condition=And((addition.condition, action.condition)),
                returns_on_failure=action.returns_on_failure,
            )


def _added(item: Item, update: Update) -> Item:
    changed = dict(item)
    for action in update.actions:
        assert isinstance(action, Add)
        name = str(action.path[0])
        changed[name] = {"N": add(changed.get(name, {"N": "0"})["N"], action.value["N"])}
    return changed


def _summed(action: UpdateItem, addition: UpdateItem) -> UpdateItem | None:
    """Return two additions to the same numbers as one."""
    by_path = {each.path: each for each in action.update.actions}
    for each in addition.update.actions:
        there = by_path.get(each.path)
        if not isinstance(each, Add) or (there is not None and not isinstance(there, Add)):
            return None
        value = each.value if there is None else {"N": add(there.value["N"], each.value["N"])}
        by_path[each.path] = Add(each.path, value)
    return replace(action, update=replace(action.update, actions=tuple(by_path.values())))
