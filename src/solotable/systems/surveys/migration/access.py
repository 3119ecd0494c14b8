"""Titles of surveys on both sides of the migration: the smallest data access that a router needs."""

from __future__ import annotations

import json
from typing import Any, Protocol

from solotable import ANY, flow
from solotable.flow.conditions import equals
from solotable.flow.requests import GetItem, PutItem
from solotable.systems.surveys.entities.surveys import SurveyMeta


class SurveyTitles(Protocol):
    """What the application reads and writes."""

    def title(self, survey_id: str) -> flow.Flow[str | None]:
        """Return the title of a survey; None if it does not exist."""
        ...

    def rename(self, survey_id: str, title: str) -> flow.Flow[None]:
        """Change the title of a survey."""
        ...


class OldTitles:
    """Titles in the JSON document of a survey, in the table Surveys."""

    def __init__(self, scope: flow.Scope) -> None:
        self._scope = scope

    def title(self, survey_id: str) -> flow.Flow[str | None]:
        """Return the title of a survey; None if it does not exist."""
        item = yield from self._item(survey_id)
        return None if item is None else _document(item).get("title", "Untitled")

    def rename(self, survey_id: str, title: str) -> flow.Flow[None]:
        """Change the title of a survey, unless another writer changes its document at the same time."""
        return flow.retry_conflicts(self._scope, lambda: self._rename(survey_id, title))

    def _rename(self, survey_id: str, title: str) -> flow.Flow[None]:
        item = yield from self._item(survey_id)
        if item is None:
            return
        content = json.dumps({**_document(item), "title": title})
        unchanged = equals("content", item["content"]["S"])
        request = PutItem(table="Surveys", item={**item, "content": {"S": content}}, condition=unchanged)
        yield from flow.send(self._scope, request)

    def _item(self, survey_id: str) -> flow.Flow[flow.Item | None]:
        request = GetItem(table="Surveys", key={"id": {"S": survey_id}}, consistent=True)
        reply = yield from flow.send(self._scope, request)
        return None if reply.item is None else flow.decode_item(reply.item)


def _document(item: flow.Item) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(item["content"]["S"])
    return found


class NewTitles:
    """Titles of SurveyMeta, in the one table."""

    def __init__(self, scope: flow.Scope) -> None:
        self._scope = scope

    def title(self, survey_id: str) -> flow.Flow[str | None]:
        """Return the title of a survey; None if it does not exist."""
        found = yield from flow.get(self._scope, SurveyMeta, survey_id=survey_id)
        return None if found is None else found.title

    def rename(self, survey_id: str, title: str) -> flow.Flow[None]:
        """Change the title of a survey."""
        yield from flow.update(
            self._scope, SurveyMeta, survey_id=survey_id, set={"title": title}, version=ANY
        )
