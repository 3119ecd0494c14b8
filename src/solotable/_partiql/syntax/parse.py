"""Parse PartiQL statements: SELECT, INSERT, UPDATE (also with FROM first), DELETE, EXISTS.

The parser raises grammar errors before errors for syntax that DynamoDB's PartiQL does not support. `plan`
checks tables, parameters and conditions.
"""

from __future__ import annotations

import re
from typing import Final

from solotable._expressions.syntax.parse_cache import cache_trees
from solotable._partiql.ast import (
    TREE_NAMES,
    Call,
    Expr,
    Operation,
    OrderTerm,
    Parsed,
    Reference,
    RemoveClause,
    Returning,
    SetClause,
    Steps,
)
from solotable.errors import ServiceError, invalid

from .lex import not_well_formed, split_tokens
from .terms import Terms

NO_KEY: Final = "Where clause does not contain a mandatory equality on all key attributes"
_LEFT_OVER = "Unexpected token after expression"
_NO_PATH = "Expected identifier for simple path"
_TABLE_NAME = re.compile(r"[A-Za-z0-9_.-]{3,255}\Z")
_BAD_TABLE_NAME = (
    "Table name should be within the length [3, 255] and only contain 'a-z', 'A-Z', '0-9', '-', '_', '.'."
)
_RETURNING: Final[dict[tuple[str, str], Returning]] = {
    ("all", "old"): "ALL_OLD",
    ("modified", "old"): "UPDATED_OLD",
    ("all", "new"): "ALL_NEW",
    ("modified", "new"): "UPDATED_NEW",
}


@cache_trees
def parse_statement(text: str) -> Parsed:
    """Parse the text of a statement, or raise DynamoDB's error."""
    return _Statements(text).statement()


class _Statements(Terms):
    def __init__(self, text: str) -> None:
        super().__init__(split_tokens(text))

    def statement(self) -> Parsed:
        token = self.token
        word = token.text if token.kind == "keyword" else ""
        match word:
            case "select":
                parsed = self._select()
            case "insert":
                parsed = self._insert()
            case "update":
                parsed = self._update()
            case "delete":
                parsed = self._delete()
            case "from":
                parsed = self._from_first()
            case "exists":
                parsed = self._exists()
            case "create" | "drop":
                raise self._definition(word)
            case _:
                raise self._no_statement()
        self._finish()
        return parsed

    def _finish(self) -> None:
        self.take("symbol", ";")
        if not self.at("end"):
            raise not_well_formed(_LEFT_OVER)
        if self.rejection is not None:
            raise self.rejection

    def _definition(self, word: str) -> ServiceError:
        self.advance()
        what = self.advance()
        if what.kind != "keyword" or what.text not in ("table", "index"):
            return not_well_formed("Unexpected keyword")
        return invalid(f"Unsupported operation: {word.title()}{what.text.title()}")

    def _no_statement(self) -> ServiceError:
        expr = self.expression()
        self._finish()
        match expr:
            case Reference():
                name = "VariableReference" if len(expr.steps) == 1 else "Path"
            case Call():
                name = "Call"
            case Operation():
                name = "NAry"
            case _:
                name = TREE_NAMES.get(type(expr), "Seq")
        return invalid(f"Unsupported operation: {name}")

    def _select(self) -> Parsed:
        self.advance()
        return self._selection()

    def nested_select(self) -> None:
        self._selection()

    def _selection(self) -> Parsed:
        if self.at("keyword", "distinct"):
            self.advance()
            self.reject("Unsupported token in expression: DISTINCT")
        else:
            self.take("keyword", "all")
        if self.at("keyword", "value", "pivot"):
            self.advance()
            self.reject("Select projection doesn't support value or pivot keywords")
        columns = self._columns()
        self.expect("keyword", "from", "Expected FROM after select list")
        table, index = self._source()
        where = self.expression() if self.take("keyword", "where") else None
        self._grouping()
        order = self._order()
        if self.at("keyword", "limit"):
            self.advance()
            self.reject(f"Unsupported clause: LIMIT at {self.expression().spot}")
        return Parsed(
            kind="SELECT",
            table=table,
            index=index,
            parameters=self.parameters,
            columns=columns,
            where=where,
            order=order,
        )

    def _columns(self) -> tuple[Expr, ...] | None:
        if self.take("symbol", "*"):
            return None
        columns = [self._column()]
        while self.take("symbol", ","):
            columns.append(self._column())
        return tuple(columns)

    def _column(self) -> Expr:
        column = self.expression()
        self._alias()
        return column

    def _alias(self) -> None:
        if self.take("keyword", "as"):
            self.identifier("Expected identifier for alias")
        elif self.token.kind in ("name", "quoted"):
            self.advance()
        else:
            return
        self.reject("Aliasing is not supported")

    def _source(self) -> tuple[str, str | None]:
        """Read the table and the index of a SELECT."""
        source = self.expression()
        self._alias()
        if self.take("symbol", ","):
            self.expression()
            self.reject("Only select from a single table or index is supported.")
        if not isinstance(source, Reference):
            self.reject("Unexpected from source")
            return "", None
        return self._table_and_index(source.steps)

    def _table_and_index(self, steps: Steps) -> tuple[str, str | None]:
        names = [step for step in steps if isinstance(step, str)]
        if len(names) < len(steps):
            self.reject("Invalid list expression in source.")
        elif len(names) > 2:
            self.reject("A path may contain at most 2 components in the FROM clause")
        elif not _TABLE_NAME.match(names[0]):
            self.reject(_BAD_TABLE_NAME)
        return names[0], names[1] if len(names) > 1 else None

    def _grouping(self) -> None:
        if self.take("keyword", "group"):
            self.expect("keyword", "by", "Expected BY after GROUP")
            self.expression()
            while self.take("symbol", ","):
                self.expression()
            self.reject("Unsupported clause: GROUP BY")
        if self.take("keyword", "having"):
            self.reject(f"Unsupported clause: HAVING at {self.expression().spot}")

    def _order(self) -> tuple[OrderTerm, ...]:
        if not self.take("keyword", "order"):
            return ()
        self.expect("keyword", "by", "Expected BY after ORDER")
        terms = [self._order_term()]
        while self.take("symbol", ","):
            terms.append(self._order_term())
        return tuple(terms)

    def _order_term(self) -> OrderTerm:
        expr = self.expression()
        if self.take("keyword", "desc"):
            return OrderTerm(expr, ascending=False)
        self.take("keyword", "asc")
        return OrderTerm(expr, ascending=True)

    def _exists(self) -> Parsed:
        self.advance()
        if not self.at("symbol", "("):
            raise not_well_formed("Unexpected keyword")
        self.advance()
        if not self.at("keyword", "select"):
            raise not_well_formed("Unexpected term")
        parsed = self._select()
        self.expect("symbol", ")", "Expected closing parenthesis")
        return Parsed(
            kind="SELECT",
            table=parsed.table,
            index=parsed.index,
            parameters=parsed.parameters,
            columns=parsed.columns,
            where=parsed.where,
            order=parsed.order,
            exists=True,
        )

    def _target(self) -> str:
        """Read the table of an INSERT, UPDATE or DELETE."""
        steps = self.simple_path()
        if len(steps) > 1:
            self.reject("This operation is not supported on an index")
        return self._table_and_index(steps[:1])[0]

    def _insert(self) -> Parsed:
        self.advance()
        self.expect("keyword", "into", "Expected INTO after INSERT")
        steps = self.simple_path()
        if len(steps) > 1:
            self.reject("FROM clause may only contain a single table name in data manipulation statements")
        table, _ = self._table_and_index(steps[:1])
        spot = self._tokens[0].spot
        if self.take("keyword", "value"):
            item = self.expression()
        else:
            if self.at("keyword", "values"):
                self.advance()
            item = self.expression()
            self.reject("Unsupported operation: InsertOp")
        if self.take("keyword", "at"):
            self.expression()
            self.reject(f"AT is not supported in insert statements. at {spot}")
        if self.take("keyword", "on"):
            self._on_conflict()
        if self._returning() is not None:
            self.reject("RETURNING is not supported in INSERT")
        return Parsed(kind="INSERT", table=table, parameters=self.parameters, item=item)

    def _on_conflict(self) -> None:
        self.expect("keyword", "conflict", "Expected CONFLICT")
        self.expect("keyword", "where", "Expected WHERE")
        self.expression()
        self.expect("keyword", "do", "Expected DO")
        self.expect("keyword", "nothing", "Expected NOTHING")
        self.reject("Unsupported clause: ON CONFLICT")

    def _update(self) -> Parsed:
        self.advance()
        table = self._target()
        self._alias()
        changes = self._changes()
        where = self.expression() if self.take("keyword", "where") else None
        return self._updating(table, changes, where)

    def _from_first(self) -> Parsed:
        # DynamoDB: `FROM "T" WHERE key SET ...` is an UPDATE; with the WHERE after the SET it is an error.
        self.advance()
        table = self._target()
        self._alias()
        where = self.expression() if self.take("keyword", "where") else None
        return self._updating(table, self._changes(), where)

    def _updating(
        self, table: str, changes: tuple[SetClause | RemoveClause, ...], where: Expr | None
    ) -> Parsed:
        returning = self._returning()
        return Parsed(
            kind="UPDATE",
            table=table,
            parameters=self.parameters,
            changes=changes,
            where=where,
            returning=returning,
        )

    def _changes(self) -> tuple[SetClause | RemoveClause, ...]:
        changes: list[SetClause | RemoveClause] = []
        while True:
            if self.take("keyword", "set"):
                changes.append(self._set_clause())
                while self.take("symbol", ","):
                    changes.append(self._set_clause())
            elif self.take("keyword", "remove"):
                changes.append(RemoveClause(self.simple_path()))
            elif changes:
                return tuple(changes)
            else:
                raise not_well_formed("Expected data manipulation")

    def _set_clause(self) -> SetClause:
        target = self.simple_path()
        self.expect("symbol", "=", "Expected '=' in SET")
        return SetClause(target, self.expression())

    def _delete(self) -> Parsed:
        self.advance()
        self.expect("keyword", "from", "Expected FROM after DELETE")
        table = self._target()
        self._alias()
        where = self.expression() if self.take("keyword", "where") else None
        returning = self._returning()
        if returning is not None and returning != "ALL_OLD":
            which = "MODIFIED" if returning.startswith("UPDATED") else "ALL"
            self.reject(
                f"Invalid returning clause: RETURNING {which} {returning[-3:]} *. "
                "Only RETURNING ALL OLD * is allowed in DELETE statements."
            )
        return Parsed(
            kind="DELETE", table=table, parameters=self.parameters, where=where, returning=returning
        )

    def _returning(self) -> Returning | None:
        if not self.take("keyword", "returning"):
            return None
        which = self._returning_element()
        while self.take("symbol", ","):
            self._returning_element()
            self.reject("Invalid syntax with multiple returning elements in RETURNING clause")
        return which

    def _returning_element(self) -> Returning:
        first, second = self.advance(), self.advance()
        which = _RETURNING.get((first.text, second.text))
        if which is None or first.kind != "keyword" or second.kind != "keyword":
            raise not_well_formed("Expected ( MODIFIED | ALL ) ( NEW | OLD ) in RETURNING clause")
        if not self.take("symbol", "*"):
            if self.at("end"):
                raise not_well_formed("Unexpected term")
            self.expression()
            self.reject("Expected '*' after ( MODIFIED | ALL ) ( NEW | OLD ) in RETURNING clause")
        return which
