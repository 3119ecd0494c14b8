"""Render trees as expression text with placeholders, the inverse of `parse` and `bind`.

Every name and value gets a placeholder, so reserved words, dots and spaces in names are safe. A tree that
DynamoDB's language cannot express (PartiQL's own nodes, legacy actions, sums of sums) raises
DeclarationError. DynamoDB itself rejects invalid expressions.
"""

from __future__ import annotations

from typing import Any, Final

from solotable._values import AttributeValue
from solotable.errors import DeclarationError

from .ast import (
    Action,
    Add,
    And,
    Arithmetic,
    Assign,
    Attr,
    BeginsWith,
    Between,
    Compare,
    Condition,
    Const,
    Contains,
    Delete,
    Exists,
    IfNotExists,
    In,
    KeyCondition,
    KeyTerm,
    ListAppend,
    Not,
    Operand,
    Or,
    Path,
    Projection,
    Remove,
    Same,
    SetOperand,
    Size,
    TypeIs,
    Update,
)

_HASHED: Final = frozenset({"S", "N", "B", "BOOL", "NULL"})


class Placeholders:
    """The placeholders of one request: one for each name and each value, in order of first use."""

    __slots__ = ("_names", "_tokens", "_values")

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._tokens: dict[tuple[str, Any], str] = {}
        self._values: dict[str, AttributeValue] = {}

    def name(self, name: str) -> str:
        """Return the placeholder of an attribute's name."""
        token = self._names.get(name)
        if token is None:
            token = self._names[name] = f"#{len(self._names)}"
        return token

    def value(self, value: AttributeValue) -> str:
        """Return the placeholder of a value; values of different types have different placeholders."""
        ((kind, content),) = value.items()
        identity = (kind, content if kind in _HASHED else repr(content))
        token = self._tokens.get(identity)
        if token is None:
            token = self._tokens[identity] = f":{len(self._tokens)}"
            self._values[token] = value
        return token

    def path(self, path: Path) -> str:
        """Return a path's text."""
        first, *rest = path
        text = self.name(str(first))
        for part in rest:
            text += f"[{part}]" if isinstance(part, int) else f".{self.name(part)}"
        return text

    def add_to(self, members: dict[str, Any]) -> None:
        """Add the maps of placeholders to a request's members; DynamoDB rejects empty maps."""
        if self._names:
            members["ExpressionAttributeNames"] = {token: name for name, token in self._names.items()}
        if self._values:
            members["ExpressionAttributeValues"] = self._values


def render_condition(node: Condition, tokens: Placeholders) -> str:
    """Return the text of a condition or filter."""
    match node:
        case And(terms) | Or(terms):
            return _render_junction(node, terms, tokens)
        case Not(Exists(path)):
            return f"attribute_not_exists({tokens.path(path)})"
        case Not(Not(condition)):
            return render_condition(condition, tokens)
        case Not(condition):
            text = render_condition(condition, tokens)
            return f"NOT ({text})" if _find_operator(condition) else f"NOT {text}"
        case Exists(path):
            return f"attribute_exists({tokens.path(path)})"
        case Same():
            raise DeclarationError("Only PartiQL can compare two conditions; combine them with AND and OR.")
        case _:
            return _render_test(node, tokens)


def render_key_condition(key: KeyCondition, tokens: Placeholders) -> str:
    """Return the text of a key condition."""
    return " AND ".join(_render_key_term(term, tokens) for term in key)


def render_projection(projection: Projection, tokens: Placeholders) -> str:
    """Return the text of a projection."""
    return ", ".join(tokens.path(path) for path in projection)


def render_update(update: Update, tokens: Placeholders) -> str | None:
    """Return the text of an update, None for one without actions.

    The text has each section once, so actions are grouped by section. Their order does not matter: every
    action reads the item before the update.
    """
    # DynamoDB: an update that only removes does not create an item.
    creates = not update.actions or not all(isinstance(one, (Remove, Delete)) for one in update.actions)
    if creates is not update.creates:
        raise DeclarationError(
            "An update creates a missing item unless all its actions are REMOVE or DELETE; "
            "add a condition on the key to prevent or require the item."
        )
    sections: dict[str, list[str]] = {}
    for action in update.actions:
        section, text = _render_action(action, tokens)
        sections.setdefault(section, []).append(text)
    return " ".join(f"{section} {', '.join(texts)}" for section, texts in sections.items()) or None


def _find_operator(node: Condition) -> type[And | Or] | None:
    """Return the operator that joins the outermost terms of a condition's text, if any."""
    while True:
        match node:
            case Not(Not(inner)):
                node = inner
            case And((only,)) | Or((only,)):
                node = only
            case And() | Or():
                return type(node)
            case _:
                return None


def _render_junction(node: And | Or, terms: tuple[Condition, ...], tokens: Placeholders) -> str:
    if not terms:
        raise DeclarationError("AND and OR need at least one term; leave the condition out.")
    if len(terms) == 1:
        return render_condition(terms[0], tokens)
    texts = []
    for term in terms:
        text = render_condition(term, tokens)
        # AND binds more tightly than OR; terms of the same operator need no parentheses.
        loose = isinstance(node, And) and _find_operator(term) is Or
        texts.append(f"({text})" if loose else text)
    return (" AND " if isinstance(node, And) else " OR ").join(texts)


def _render_test(
    node: Compare | Between | In | TypeIs | BeginsWith | Contains,
    tokens: Placeholders,
) -> str:
    match node:
        case Compare(comparator, left, right):
            return f"{_render_operand(left, tokens)} {comparator} {_render_operand(right, tokens)}"
        case Between(operand, low, high):
            first = _render_operand(operand, tokens)
            return f"{first} BETWEEN {_render_operand(low, tokens)} AND {_render_operand(high, tokens)}"
        case In(operand, options):
            first = _render_operand(operand, tokens)
            return f"{first} IN ({', '.join(_render_operand(option, tokens) for option in options)})"
        case TypeIs(operand, kind):
            return f"attribute_type({_render_operand(operand, tokens)}, {tokens.value({'S': kind})})"
        case BeginsWith(operand, prefix):
            return f"begins_with({_render_operand(operand, tokens)}, {_render_operand(prefix, tokens)})"
        case Contains(operand, member):
            return f"contains({_render_operand(operand, tokens)}, {_render_operand(member, tokens)})"


def _render_operand(operand: Operand, tokens: Placeholders) -> str:
    match operand:
        case Attr(path):
            return tokens.path(path)
        case Const(value):
            return tokens.value(value)
        case Size(inner):
            return f"size({tokens.path(inner.path)})"


def _render_key_term(term: KeyTerm, tokens: Placeholders) -> str:
    name = tokens.name(term.name)
    values = [tokens.value(value) for value in term.values]
    match term.operator:
        case "BETWEEN":
            return f"{name} BETWEEN {values[0]} AND {values[1]}"
        case "begins_with":
            return f"begins_with({name}, {values[0]})"
        case operator:
            return f"{name} {operator} {values[0]}"


def _render_action(action: Action, tokens: Placeholders) -> tuple[str, str]:
    path = tokens.path(action.path)
    match action:
        case Assign():
            return "SET", f"{path} = {_render_assignment(action.operand, tokens)}"
        case Remove():
            return "REMOVE", path
        case Add():
            if action.to_list:
                raise DeclarationError("Only AttributeUpdates can ADD to a list; use SET with list_append.")
            return "ADD", f"{path} {tokens.value(action.value)}"
        case Delete():
            return "DELETE", f"{path} {tokens.value(action.value)}"


def _render_assignment(operand: SetOperand, tokens: Placeholders) -> str:
    match operand:
        case Arithmetic(operator, left, right):
            return f"{_render_argument(left, tokens)} {operator} {_render_argument(right, tokens)}"
        case ListAppend(left, right):
            return f"list_append({_render_argument(left, tokens)}, {_render_argument(right, tokens)})"
        case _:
            return _render_argument(operand, tokens)


def _render_argument(operand: SetOperand, tokens: Placeholders) -> str:
    match operand:
        case Attr(path):
            return tokens.path(path)
        case Const(value):
            return tokens.value(value)
        case IfNotExists(path, default):
            return f"if_not_exists({tokens.path(path)}, {_render_argument(default, tokens)})"
        case _:
            raise DeclarationError(
                "A sum or list_append must be the whole value of a SET; DynamoDB does not nest them."
            )
