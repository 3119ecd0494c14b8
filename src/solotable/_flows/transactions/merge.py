"""Merge additions to counters into another action on the same item of a transaction.

A DynamoDB transaction can write an item once. A parent and its counted children, created in one
transaction, would write the parent several times.
"""

from __future__ import annotations

from dataclasses import replace

from solotable._expressions.ast import Add, And, Update
from solotable._protocol.requests import ConditionCheck, DeleteItem, PutItem, UpdateItem, WriteAction
from solotable._values import Item, add


def merge_addition(action: WriteAction, addition: UpdateItem) -> WriteAction | None:
    """Return an action that includes an addition to its item; None if they cannot be merged.

    A delete needs no addition. A put has the sum in its item.
    """
    match action:
        case DeleteItem():
            return action
        case PutItem():
            return replace(action, item=_add_to_item(action.item, addition.update), size=None)
        case UpdateItem():
            paths = {each.path for each in action.update.actions}
            if all(each.path not in paths for each in addition.update.actions):
                actions = (*action.update.actions, *addition.update.actions)
                return replace(action, update=replace(action.update, actions=actions))
            return _sum_additions(action, addition)
        case ConditionCheck():
            assert addition.condition is not None
            return UpdateItem(
                table=action.table,
                key=action.key,
                update=addition.update,
                condition=And((addition.condition, action.condition)),
                returns_on_failure=action.returns_on_failure,
            )


def _add_to_item(item: Item, update: Update) -> Item:
    changed = dict(item)
    for action in update.actions:
        assert isinstance(action, Add)
        name = str(action.path[0])
        changed[name] = {"N": add(changed.get(name, {"N": "0"})["N"], action.value["N"])}
    return changed


def _sum_additions(action: UpdateItem, addition: UpdateItem) -> UpdateItem | None:
    """Return two additions to the same attributes as one; None if another action changes an attribute."""
    by_path = {each.path: each for each in action.update.actions}
    for each in addition.update.actions:
        first = by_path.get(each.path)
        if not isinstance(each, Add) or (first is not None and not isinstance(first, Add)):
            return None
        value = each.value if first is None else {"N": add(first.value["N"], each.value["N"])}
        by_path[each.path] = Add(each.path, value)
    return replace(action, update=replace(action.update, actions=tuple(by_path.values())))
