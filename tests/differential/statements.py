"""Random PartiQL statements."""

from __future__ import annotations

from tests.conformance.harness import Json

from .values import Values

_NAMES = ["x", "y", "z", "m", "l", "ss", "gp"]
_SHOWN = ["*", "*", "pk", "pk, sk", "x, y", "m.a", "m.c.d", "l[0]"]
_CONDITIONS = [
    "x = {}",
    "y < {}",
    "y BETWEEN {} AND {}",
    "x IN [{}, {}]",
    "begins_with(x, {})",
    "contains(ss, {})",
    "attribute_type(x, 'S')",
    "size(x) > 1",
    "x IS MISSING",
    "y IS NOT MISSING",
    "z IS NULL",
    "NOT x = {}",
    "x <> {} OR y >= {}",
    "(x = {} AND y = {})",
    "m.a = {}",
    "l[0] = {}",
]
_CHANGES = [
    "SET x = {}",
    "SET y = y + 1",
    "SET y = {} SET x = {}",
    "SET m.a = {}",
    "SET l = list_append(l, [{}])",
    "REMOVE x",
    "REMOVE m.b",
    "REMOVE l[0]",
    "SET x = {} REMOVE y",
    "SET ss = set_add(ss, <<'b', 'c'>>)",
    "SET ss = set_delete(ss, <<'a'>>)",
]
_RETURNED = ["ALL OLD", "ALL NEW", "MODIFIED OLD", "MODIFIED NEW"]


class Statements:
    """Makes statements whose values are sometimes literals and sometimes parameters."""

    def __init__(self, values: Values) -> None:
        self._made = values
        self._random = values.random

    def any(self) -> Json:
        """Return one statement with its parameters, as BatchExecuteStatement takes it."""
        return self._random.choices(
            [self.select, self.insert, self.update, self.delete], weights=[4, 2, 3, 1]
        )[0]()

    def select(self) -> Json:
        parameters: list[Json] = []
        source = self._random.choice(['"Indexed"', '"NumberSort"', '"Indexed"."gall"', '"Indexed"."lkeys"'])
        text = f"SELECT {self._random.choice(_SHOWN)} FROM {source}"
        conditions = []
        if self._random.random() < 0.7:
            conditions.append("pk = " + self._value({"S": self._random.choice(["p", "q"])}, parameters))
        if self._random.random() < 0.5:
            conditions.append(self._fill(self._random.choice(_CONDITIONS), parameters))
        if conditions:
            text += " WHERE " + " AND ".join(conditions)
        if self._random.random() < 0.15:
            text += f" ORDER BY {self._random.choice(['sk', 'pk', 'gs', 'sk DESC'])}"
        return _statement(text, parameters)

    def get(self) -> Json:
        """Return a statement that selects one item."""
        parameters: list[Json] = []
        table = self._random.choice(["Indexed", "NumberSort"])
        text = f'SELECT {self._random.choice(_SHOWN)} FROM "{table}"{self._where(table, parameters)}'
        return _statement(text, parameters)

    def insert(self) -> Json:
        parameters: list[Json] = []
        table = self._random.choice(["Indexed", "NumberSort"])
        members = [
            f"'{name}': {self._value(value, parameters)}" for name, value in self._made.item(table).items()
        ]
        return _statement(f'INSERT INTO "{table}" VALUE {{{", ".join(members)}}}', parameters)

    def update(self) -> Json:
        parameters: list[Json] = []
        table = self._random.choice(["Indexed", "NumberSort"])
        text = f'UPDATE "{table}" {self._fill(self._random.choice(_CHANGES), parameters)}'
        text += self._where(table, parameters)
        if self._random.random() < 0.4:
            text += f" RETURNING {self._random.choice(_RETURNED)} *"
        return _statement(text, parameters)

    def delete(self) -> Json:
        parameters: list[Json] = []
        table = self._random.choice(["Indexed", "NumberSort"])
        text = f'DELETE FROM "{table}"{self._where(table, parameters)}'
        if self._random.random() < 0.3:
            text += " RETURNING ALL OLD *"
        return _statement(text, parameters)

    def _where(self, table: str, parameters: list[Json]) -> str:
        key = self._made.key(table)
        terms = [f"{name} = {self._value(value, parameters)}" for name, value in key.items()]
        if self._random.random() < 0.05:
            terms.pop()
        if self._random.random() < 0.3:
            terms.append(self._fill(self._random.choice(_CONDITIONS), parameters))
        return " WHERE " + " AND ".join(terms)

    def _fill(self, pattern: str, parameters: list[Json]) -> str:
        name = next((name for name in _NAMES if pattern.startswith((name, f"({name}", f"SET {name} "))), "x")
        first, *rest = pattern.split("{}")
        return first + "".join(self._value(self._made.fitting(name), parameters) + part for part in rest)

    def _value(self, value: Json, parameters: list[Json]) -> str:
        if self._random.random() < 0.5 or (text := literal(value)) is None:
            parameters.append(value)
            return "?"
        return text


def _statement(text: str, parameters: list[Json]) -> Json:
    return {"Statement": text, "Parameters": parameters} if parameters else {"Statement": text}


def literal(value: Json) -> str | None:
    """Write the value in PartiQL; None for binaries, which have no literal."""
    ((kind, content),) = value.items()
    match kind:
        case "S":
            return "'{}'".format(content.replace("'", "''"))
        case "N":
            return str(content)
        case "BOOL":
            return str(content).lower()
        case "NULL":
            return "NULL"
        case "SS":
            return "<<{}>>".format(", ".join(f"'{member}'" for member in content))
        case "NS":
            return "<<{}>>".format(", ".join(content))
        case "L":
            members = [literal(member) for member in content]
            return None if None in members else "[{}]".format(", ".join(map(str, members)))
        case "M":
            named = {name: literal(member) for name, member in content.items()}
            if None in named.values():
                return None
            return "{{{}}}".format(", ".join(f"'{name}': {text}" for name, text in named.items()))
        case _:
            return None
