"""The form of an item as a browser sends it: all of its fields, with what a test changes."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any


class _Fields(HTMLParser):
    """The controls of the form `edit` and their values, as HTML says a browser reads them."""

    def __init__(self) -> None:
        super().__init__()
        self.fields: dict[str, str] = {}
        self._inside = False
        self._select = ""
        self._option: str | None = None
        self._area: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        name = given.get("name") or ""
        if tag == "form":
            self._inside = given.get("id") == "edit"
        if not self._inside:
            return
        if tag == "input" and given.get("type") not in ("radio", "checkbox") and name:
            self.fields[name] = given.get("value") or ""
        elif tag == "select":
            self._select = name
        elif tag == "option" and (self._select not in self.fields or "selected" in given):
            self._option = ""
            self.fields[self._select] = ""
        elif tag == "textarea":
            self._area = name
            self.fields[name] = ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea" and self._area is not None:
            # HTML drops the first line end of a textarea.
            self.fields[self._area] = self.fields[self._area].removeprefix("\n")
            self._area = None
        elif tag == "option":
            self._option = None
        elif tag == "form":
            self._inside = False

    def handle_data(self, data: str) -> None:
        if self._area is not None:
            self.fields[self._area] += data
        elif self._option is not None:
            self.fields[self._select] += data


def read_form(html: str) -> dict[str, str]:
    """Return the fields of the form of an item."""
    # As a browser: line ends are LF in the document.
    parser = _Fields()
    parser.feed(html.replace("\r\n", "\n").replace("\r", "\n"))
    return parser.fields


def number_of(fields: dict[str, Any], name: str) -> str:
    """Return the number of the row of an attribute."""
    return next(key[2:] for key, value in fields.items() if key.startswith("n.") and value == name)
