"""Apply an update to an item, and return a new item.

Every path refers to the item before the update, whatever the order of the actions. The engine checks key
attributes, index keys and the item's size.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Union

from solotable._values import AttributeValue, Item, add, levels, sort_members, subtract
from solotable._values.limits import DEEPEST_VALUE, LARGEST_ITEM
from solotable.errors import ServiceError, invalid

from .ast import (
    Action,
    Add,
    Arithmetic,
    Assign,
    Attr,
    Const,
    Delete,
    IfNotExists,
    ListAppend,
    Path,
    Remove,
    SetOperand,
    Update,
)
from .evaluate import fetch
from .project import project

TOO_LARGE = "Item size to update has exceeded the maximum allowed size"
_UNFIT_PATH = "The document path provided in the update expression is invalid for update"
_UNFIT_TYPE = "An operand in the update expression has an incorrect data type"
_UNFIT_LEGACY_TYPE = "Type mismatch for attribute to update"
_MISSING = "The provided expression refers to an attribute that does not exist in the item"
_TOO_DEEP = "Nesting Levels have exceeded supported limits"
#: Nesting depth of lists and maps, counted from the attribute's value.
_DEEPEST = DEEPEST_VALUE - 1
#: Each element takes at least one byte, so no item holds more elements than the largest has bytes.
_MOST_ELEMENTS = LARGEST_ITEM

# The value after an edit, None if it was removed.
_Outcome = Union[AttributeValue, None]
_Edits = dict[Union[str, int], Union["_Edits", "_Leaf"]]


class _Leaf:
    __slots__ = ("outcome",)

    def __init__(self, outcome: _Outcome) -> None:
        self.outcome = outcome


def apply_update(update: Update, item: Item) -> Item:
    """Return the item after the update, or raise DynamoDB's error if the update does not fit the item.

    A missing item is passed as its key alone, and only if the update creates it. A list that no item can
    hold raises before it is built.
    """
    result = dict(item)
    nested: list[tuple[Path, _Outcome]] = []
    elements = 0
    for action in update.actions:
        path = action.path
        if isinstance(action, Assign) and isinstance(action.operand, ListAppend):
            elements += _count_appended(action.operand, item)
            if elements > _MOST_ELEMENTS:
                raise invalid(TOO_LARGE)
        if len(path) > 1:
            nested.append((path, _compute_nested_outcome(action, item, update)))
        elif (outcome := _compute_outcome(action, item, update)) is not None:
            result[path[0]] = outcome  # type: ignore[index] # the first part of a path is a name
        else:
            result.pop(path[0], None)  # type: ignore[arg-type] # the same
    if nested:
        _write_nested(result, item, nested)
    return result


def updated_values(update: Update, item: Item, before: Item) -> Item:
    """Return the values at the paths of the update: of the item before it for UPDATED_OLD, after it for
    UPDATED_NEW. {} if there are none.
    """
    # DynamoDB: looks up the paths as written. So an element that was set past a list's end is missing,
    # and an element that moved to a removed index is returned.
    del before
    return project(tuple(action.path for action in update.actions), item)


def paths_of_update(update: Update) -> Iterator[Path]:
    """Yield every path that the update writes or reads, in written order."""
    for action in update.actions:
        yield action.path
        if isinstance(action, Assign):
            yield from _operand_paths(action.operand)


def _operand_paths(operand: SetOperand) -> Iterator[Path]:
    match operand:
        case Attr(path):
            yield path
        case IfNotExists(path, default):
            yield path
            yield from _operand_paths(default)
        case Arithmetic(_, left, right) | ListAppend(left, right):
            yield from _operand_paths(left)
            yield from _operand_paths(right)
        case Const():
            pass


def _compute_outcome(action: Action, item: Item, update: Update) -> _Outcome:
    if isinstance(action, Assign):
        operand = action.operand
        return operand.value if isinstance(operand, Const) else _evaluate_operand(operand, item)
    if isinstance(action, Remove):
        return None
    return _change_value(action, item, legacy=update.legacy)


def _compute_nested_outcome(action: Action, item: Item, update: Update) -> _Outcome:
    path = action.path
    parent = fetch(path[:-1], item)
    if parent is None or ("M" if isinstance(path[-1], str) else "L") not in parent:
        raise invalid(_UNFIT_PATH)
    outcome = _compute_outcome(action, item, update)
    if isinstance(action, Assign) and outcome is not None and len(path) - 1 + levels(outcome) > _DEEPEST:
        raise invalid(_TOO_DEEP)
    return outcome


def _evaluate_operand(operand: SetOperand, item: Item) -> AttributeValue:
    match operand:
        case Const(value):
            return value
        case Attr(path):
            found = fetch(path, item)
            if found is None:
                raise invalid(_MISSING)
            return found
        case IfNotExists(path, default):
            found = fetch(path, item)
            return _evaluate_operand(default, item) if found is None else found
        case Arithmetic(operator, left, right):
            augend = _evaluate_content("N", left, item)
            addend = _evaluate_content("N", right, item)
            return {"N": add(augend, addend) if operator == "+" else subtract(augend, addend)}
        case ListAppend(left, right):
            return {"L": [*_evaluate_content("L", left, item), *_evaluate_content("L", right, item)]}


def _count_appended(append: ListAppend, item: Item) -> int:
    """Return how many elements the result of a list_append has, without building it."""
    return len(_evaluate_content("L", append.left, item)) + len(_evaluate_content("L", append.right, item))


def _evaluate_content(kind: str, operand: SetOperand, item: Item) -> str:
    value = _evaluate_operand(operand, item)
    if kind not in value:
        raise invalid(_UNFIT_TYPE)
    content: str = value[kind]
    return content


def _change_value(action: Add | Delete, item: Item, *, legacy: bool) -> _Outcome:
    """Return the value after ADD or DELETE; None removes the attribute."""
    found = fetch(action.path, item)
    if found is None:
        return action.value if isinstance(action, Add) else None
    value = action.value
    if "N" in value and "N" in found and isinstance(action, Add):
        return {"N": add(found["N"], value["N"])}
    ((kind, content),) = value.items()
    if kind not in found:
        raise _type_mismatch(legacy=legacy)
    present = found[kind]
    if isinstance(action, Delete):
        gone = set(content)
        left = [member for member in present if member not in gone]
        return {kind: left} if left else None
    if kind == "L":
        # DynamoDB: only the legacy ADD, which appends.
        return {"L": [*present, *content]}
    return {kind: sort_members(kind, list({*present, *content}))}


def _type_mismatch(*, legacy: bool) -> ServiceError:
    return invalid(_UNFIT_LEGACY_TYPE if legacy else _UNFIT_TYPE)


def _write_nested(result: Item, item: Item, outcomes: list[tuple[Path, _Outcome]]) -> None:
    """Write the outcomes of nested paths into the result."""
    nested: dict[str, _Edits] = {}
    for path, outcome in outcomes:
        edits = nested.setdefault(str(path[0]), {})
        for step in path[1:-1]:
            inner = edits.setdefault(step, {})
            assert isinstance(inner, dict)  # no path lies within another
            edits = inner
        edits[path[-1]] = _Leaf(outcome)
    for name, edits in nested.items():
        result[name] = _apply_edits(item[name], edits)


def _apply_edits(value: AttributeValue, edits: _Edits) -> AttributeValue:
    if "M" in value:
        members = dict(value["M"])
        for step, edit in edits.items():
            if isinstance(edit, dict):
                members[step] = _apply_edits(members[step], edit)
            elif edit.outcome is None:
                members.pop(step, None)
            else:
                members[step] = edit.outcome
        return {"M": members}
    elements: list[_Outcome] = list(value["L"])
    # DynamoDB: elements set past the end are appended in the order of their indexes.
    for step, edit in sorted(edits.items()):
        assert isinstance(step, int)
        if isinstance(edit, dict):
            inner = elements[step]
            assert inner is not None
            elements[step] = _apply_edits(inner, edit)
        elif step < len(value["L"]):
            elements[step] = edit.outcome
        else:
            elements.append(edit.outcome)
    return {"L": [element for element in elements if element is not None]}
