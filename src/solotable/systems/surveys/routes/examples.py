"""Examples of every body in the OpenAPI document; a test finds bodies without one."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

from pydantic import BaseModel

from solotable.systems.surveys.entities.access import Member, Tenant
from solotable.systems.surveys.entities.configs import SurveyConfig
from solotable.systems.surveys.entities.files import Document, Image
from solotable.systems.surveys.entities.library import Component, Element, Material, Phrase, Section
from solotable.systems.surveys.entities.surveys import (
    SurveyComponent,
    SurveyElement,
    SurveyMeta,
    SurveySection,
)

_ID = "01JD0QK7V3M8Z6X2T9R4C5B1AE"
_AT = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)
_SHA = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
_STORED: dict[str, Any] = {"tenant_id": "acme", "created": _AT, "updated": _AT, "version": 1}


def _json(model: BaseModel) -> Any:
    return model.model_dump(mode="json")


_SURVEY = _json(
    SurveyMeta(
        **_STORED,
        survey_id=_ID,
        title="12 Mill Lane",
        address="12 Mill Lane\nLeeds",
        client_name="Ada Byron",
        survey_date=date(2026, 11, 12),
        owner="ann",
        section_count=1,
    )
)
_SECTION = _json(
    SurveySection(**_STORED, survey_id=_ID, section_id=_ID, name="Roof", order="V", condition="Fair")
)
_ELEMENT = _json(
    SurveyElement(
        **_STORED,
        survey_id=_ID,
        element_id=_ID,
        section_id=_ID,
        name="Covering",
        order="V",
        condition="Poor",
        defects=[_ID],
        measurements={"area": "150 m2"},
    )
)
_COMPONENT = _json(
    SurveyComponent(
        **_STORED,
        survey_id=_ID,
        component_id=_ID,
        element_id=_ID,
        name="Tiles",
        order="V",
        material="Clay",
    )
)
_PHRASE = _json(
    Phrase(**_STORED, phrase_id=_ID, kind="Defect", name="Cracked tiles", text="Several tiles are cracked.")
)
_IMAGE = _json(
    Image(
        **_STORED, image_id=_ID, sha256=_SHA, name="roof.jpg", mime="image/jpeg", size=90210, status="stored"
    )
)
_DOCUMENT = _json(
    Document(
        **_STORED,
        document_id=_ID,
        body_id=_ID,
        name="Terms",
        mime="text/plain",
        size=4,
        owner="ann",
        sha256=_SHA,
    )
)
_CONFIG = _json(
    SurveyConfig(
        tenant_id="acme", created=_AT, survey_id=_ID, config_id=_ID, parts=1, sha256=_SHA, taken_by="ann"
    )
)
_TEMPLATE = {
    "section_id": _ID,
    "name": "Roof",
    "order": "V",
    "description": "Roofs and chimneys",
    "elements": [
        {
            "element_id": _ID,
            "name": "Covering",
            "order": "V",
            "components": [
                {"component_id": _ID, "name": "Tiles", "order": "V", "materials": [{"name": "Clay"}]}
            ],
        }
    ],
}
_LISTED = {name: _SURVEY[name] for name in ("survey_id", "title", "status", "owner", "version")}
_TENANT = _json(Tenant(id="acme", name="Acme Surveyors", created=_AT, updated=_AT, version=1))
_MEMBER = _json(Member(tenant_id="acme", user_id="ben", name="Ben", created=_AT, version=1))

EXAMPLES: dict[str, Any] = {
    "SurveyMeta": _SURVEY,
    "SurveySummary": _LISTED,
    "TenantSurvey": {"tenant_id": "acme", **_LISTED},
    "NewSurvey": {"title": "12 Mill Lane", "client_name": "Ada Byron", "from_library": True},
    "SurveyPatch": {"title": "12 Mill Lane, Leeds", "status": "in_progress"},
    "AccessChange": {"editors": ["ben"], "viewers": ["cy"]},
    "WholeSurvey": {
        "survey": _SURVEY,
        "sections": [{"section": _SECTION, "elements": [{"element": _ELEMENT, "components": [_COMPONENT]}]}],
        "orphans": {"elements": [], "components": []},
    },
    "Batch": {"changes": [{"kind": "section", "id": _ID, "version": 1, "set": {"condition": "Good"}}]},
    "BatchResult": {"survey": [], "sections": [_SECTION], "elements": [], "components": []},
    "FormStatus": {
        "survey_id": _ID,
        "sections": [
            {
                "section_id": _ID,
                "name": "Roof",
                "elements": 2,
                "complete_elements": 1,
                "missing": [
                    {
                        "kind": "element",
                        "part_id": _ID,
                        "name": "Covering",
                        "field": "condition",
                        "advice": "Give its condition.",
                    }
                ],
            }
        ],
    },
    "SurveyConfig": _CONFIG,
    "Configuration": {"sections": [_TEMPLATE], "phrases": []},
    "SurveySection": _SECTION,
    "SectionDraft": {"name": "Roof", "condition": "Fair"},
    "SectionPatch": {"notes": "Two slipped tiles above the door."},
    "SurveyElement": _ELEMENT,
    "ElementDraft": {"section_id": _ID, "name": "Covering"},
    "ElementPatch": {"condition": "Poor", "defects": [_ID]},
    "SurveyComponent": _COMPONENT,
    "ComponentDraft": {"element_id": _ID, "name": "Tiles", "material": "Clay"},
    "ComponentPatch": {"age": "15 years"},
    "Move": {"after": None},
    "LinkDraft": {"days": 7},
    "CreatedLink": {"path": "/reports/eyJ0.c2ln", "expires": _AT.isoformat()},
    "Deleted": {"deleted": 3},
    "Section": _json(Section(**_STORED, section_id=_ID, name="Roof", order="V", created_by="ada")),
    "LibrarySectionDraft": {"name": "Roof"},
    "LibrarySectionPatch": {"description": "Roofs and chimneys"},
    "Element": _json(Element(**_STORED, element_id=_ID, section_id=_ID, name="Covering", order="V")),
    "LibraryElementDraft": {"section_id": _ID, "name": "Covering"},
    "LibraryElementPatch": {"name": "Coverings"},
    "Component": _json(
        Component(
            **_STORED,
            component_id=_ID,
            element_id=_ID,
            name="Tiles",
            order="V",
            materials=[Material(name="Clay")],
        )
    ),
    "LibraryComponentDraft": {"element_id": _ID, "name": "Tiles", "materials": [{"name": "Clay"}]},
    "LibraryComponentPatch": {"materials": [{"name": "Clay"}, {"name": "Slate"}]},
    "Phrase": _PHRASE,
    "PhraseDraft": {"kind": "Defect", "name": "Cracked tiles", "text": "Several tiles are cracked."},
    "PhrasePatch": {"text": "Many tiles are cracked."},
    "Image": _IMAGE,
    "ImageSummary": {
        name: _IMAGE[name] for name in ("image_id", "name", "caption", "mime", "size", "status", "version")
    },
    "ImageDraft": {"sha256": _SHA, "name": "roof.jpg", "mime": "image/jpeg", "size": 90210},
    "ImagePatch": {"caption": "The roof from the garden"},
    "RegisteredImage": {"image": _IMAGE, "is_new": True},
    "Document": _DOCUMENT,
    "DocumentSummary": {
        name: _DOCUMENT[name] for name in ("document_id", "name", "mime", "size", "owner", "version")
    },
    "Tenant": _TENANT,
    "TenantSummary": {"id": "acme", "name": "Acme Surveyors", "version": 1},
    "TenantDraft": {"id": "acme", "name": "Acme Surveyors"},
    "TenantPatch": {"name": "Acme & Sons"},
    "ErasedTenant": {"done": True, "removed": 4711},
    "Member": _MEMBER,
    "MemberDraft": {"user_id": "ben", "name": "Ben"},
    "RoleChange": {"role": "admin"},
    "MigrateRequest": {"seconds": 10, "rate": 500},
    "TableFlag": {"percent": 50},
    "MigrationState": {
        "state": "Running",
        "writes": "source",
        "reads_percent": 0,
        "copied_percent": 100,
        "copied": 4711,
        "total": 4711,
        "lag_seconds": 0,
    },
    "SyncState": {
        "tenant_id": "acme",
        "user_id": "ann",
        "surveys": [
            {"survey_id": "mill-lane", "role": "owner", "version": 42, "changed": "2026-11-17T14:31:00Z"}
        ],
        "pending": 0,
        "failed": 0,
    },
    "Verification": {"equal": True, "expected": 90210, "actual": 90210},
}
