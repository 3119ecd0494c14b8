"""Random expressions with their placeholders."""

from __future__ import annotations

from tests.conformance.harness import Json

from .values import ATTRIBUTES, Values

_FUNCTIONS = ["attribute_exists", "attribute_not_exists"]
_COMPARATORS = ["=", "<>", "<", "<=", ">", ">="]
_ADDED: list[Json] = [{"N": "1"}, {"N": "-0.5"}, {"SS": ["b", "c"]}, {"NS": ["2", "3"]}]
_DELETED: list[Json] = [{"SS": ["a"]}, {"NS": ["1", "2"]}]
#: Attributes that usually hold such a value.
_TAKES = {"N": ("y", "z", "gs", "ln", "m"), "SS": ("ss", "z"), "NS": ("ns", "z")}
_TYPES = ["S", "N", "B", "SS", "NS", "BS", "M", "L", "NULL", "BOOL"]
_RESERVED = ("name", "status", "missing")
#: The key of every index and of every table: attributes and their types.
KEYS = {
    "Indexed": ("pk:S", "sk:S"),
    "NumberSort": ("pk:S", "sk:N"),
    "Streamed": ("pk:S", "sk:S"),
    "Multi": ("id:S",),
    "gall": ("gp:S", "gs:N"),
    "gkeys": ("gp:S",),
    "ginc": ("gp:S", "sk:S"),
    "lall": ("pk:S", "ls:S"),
    "lkeys": ("pk:S", "ln:N"),
    "linc": ("pk:S", "ls:S"),
    "multi": ("p1:S", "p2:N", "s1:S", "s2:N", "s3:B"),
    "pair": ("p1:S", "p2:N"),
}


class Scope:
    """The placeholders of one request, and the expressions that use them."""

    def __init__(self, values: Values) -> None:
        self._made = values
        self._random = values.random
        self._names: dict[str, str] = {}
        self._values: Json = {}

    def into(self, payload: Json) -> None:
        if self._names:
            payload["ExpressionAttributeNames"] = self._names
        if self._values:
            payload["ExpressionAttributeValues"] = self._values

    def name(self, name: str) -> str:
        placeholder = f"#n{len(self._names)}"
        self._names[placeholder] = name
        return placeholder

    def put(self, value: Json) -> str:
        placeholder = f":v{len(self._values)}"
        self._values[placeholder] = value
        return placeholder

    def path(self, *heads: str) -> str:
        head = self._random.choice(heads or ATTRIBUTES)
        hidden = self._random.random() < (0.95 if head in _RESERVED else 0.4)
        text = self.name(head) if hidden else head
        if head == "m" and self._random.random() < 0.7:
            text += self._random.choice([".a", ".b", ".c.d", ".q", "[0]"])
        if head == "l" and self._random.random() < 0.7:
            text += self._random.choice(["[0]", "[1]", "[9]", ".a"])
        return text

    def operand(self) -> str:
        roll = self._random.random()
        if roll < 0.5:
            return self.path()
        if roll < 0.6:
            return f"size({self.path()})"
        return self.put(self._made.value(1))

    def condition(self, depth: int = 2) -> str:
        roll = self._random.random()
        if depth and roll < 0.25:
            operator = self._random.choice(["AND", "OR"])
            return f"{self.condition(depth - 1)} {operator} {self.condition(depth - 1)}"
        if depth and roll < 0.32:
            return f"NOT {self.condition(depth - 1)}"
        if depth and roll < 0.4:
            return f"({self.condition(depth - 1)})"
        match self._random.randrange(7):
            case 0:
                return f"{self._random.choice(_FUNCTIONS)}({self.path()})"
            case 1:
                return f"attribute_type({self.path()}, {self.put({'S': self._random.choice(_TYPES)})})"
            case 2:
                return f"begins_with({self.path()}, {self.put({'S': self._made.text()})})"
            case 3:
                return f"contains({self.path()}, {self.operand()})"
            case 4:
                return f"{self.operand()} BETWEEN {self.put({'N': '1'})} AND {self.put({'N': '5'})}"
            case 5:
                return f"{self.path()} IN ({self.operand()}, {self.operand()})"
            case _:
                return f"{self.path()} {self._random.choice(_COMPARATORS)} {self.operand()}"

    def projection(self) -> str:
        return ", ".join(self.path() for _ in range(self._random.randint(1, 3)))

    def update(self) -> str:
        clauses = []
        for clause in self._random.sample(["SET", "REMOVE", "ADD", "DELETE"], self._random.randint(1, 2)):
            actions = [self._action(clause) for _ in range(self._random.randint(1, 2))]
            clauses.append(f"{clause} {', '.join(actions)}")
        return " ".join(clauses)

    def _action(self, clause: str) -> str:
        fits = self._random.random() < 0.7
        match clause:
            case "SET":
                return f"{self.path()} = {self._set_value()}"
            case "REMOVE":
                return self.path()
            case "ADD":
                value = self._random.choice(_ADDED)
                heads = _TAKES[next(iter(value))] if fits else ()
                return f"{self.path(*heads)} {self.put(value)}"
            case _:
                value = self._random.choice(_DELETED)
                heads = _TAKES[next(iter(value))] if fits else ()
                return f"{self.path(*heads)} {self.put(value)}"

    def _set_value(self) -> str:
        match self._random.randrange(6):
            case 0:
                number = self.put({"N": self._made.number()})
                return f"{self.path('y', 'z', 'gs', 'm')} {self._random.choice('+-')} {number}"
            case 1:
                return f"if_not_exists({self.path()}, {self.put(self._made.value(1))})"
            case 2:
                return (
                    f"list_append({self.path('l', 'l', 'l', 'z')}, {self.put({'L': [self._made.value(0)]})})"
                )
            case 3:
                return self.path()
            case _:
                return self.put(self._made.value(1))

    def key_condition(self, source: str) -> str:
        """Return a condition on the key of a table or index, rarely one that it cannot serve."""
        keys = [key.split(":") for key in KEYS[source]]
        count = 2 if source in ("multi", "pair") else 1
        terms = [f"{name} = {self._key_value(name, kind)}" for name, kind in keys[:count]]
        for name, kind in keys[count:]:
            if self._random.random() < 0.3:
                break
            terms.append(self._sort_condition(name, kind))
        if self._random.random() < 0.05:
            self._random.shuffle(terms)
            terms = terms[:3]
        return " AND ".join(terms)

    def _key_value(self, name: str, kind: str) -> str:
        if name == "pk":
            return self.put({"S": self._random.choice(["p", "q"])})
        match kind:
            case "N":
                return self.put({"N": self._made.number()})
            case "B":
                return self.put({"B": self._random.choice(["YQ==", "YWI=", "/w=="])})
            case _:
                return self.put({"S": self._random.choice(["a", "b", "ab", "c"])})

    def _sort_condition(self, name: str, kind: str) -> str:
        match self._random.randrange(5):
            case 0:
                return f"{name} BETWEEN {self._key_value(name, kind)} AND {self._key_value(name, kind)}"
            case 1 if kind != "N":
                return f"begins_with({name}, {self._key_value(name, kind)})"
            case 2:
                return f"{name} = {self._key_value(name, kind)}"
            case _:
                return (
                    f"{name} {self._random.choice(['=', '<', '<=', '>', '>='])} {self._key_value(name, kind)}"
                )
