"""Two tables for the tests of daily exports."""

from __future__ import annotations

from solotable import Entity, Key, Table

app = Table("App")
log = Table("Log")


class Note(Entity, table=app):
    """An entity of the first table."""

    key = Key("NOTE#{note_id}", "NOTE")
    note_id: str
    text: str = ""


class Line(Entity, table=log):
    """An entity of the second table."""

    key = Key("LINE#{line_id}", "LINE")
    line_id: str
