"""The library of a tenant: sections, elements and components as templates, and phrases (S4.11, S4.12).

Corrections of the written design:

- Q4 reads all three kinds in one request: they share a partition of `GSI1`, in the order of their kinds.
- C4.19: no index finds the phrases of an element, because associations are lists. Each association is a
  separate item, `PHRASEOF#<kind>#<id>#<phrase>`, in the transaction of its phrase.
- A section is deleted only while it has no elements, an element only while it has no components: their
  counters say so in the condition of the delete.
- The kind of a phrase is in its key, so a change of the kind is a delete and a create in one transaction.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field

from solotable import FROM_SCOPE, Counted, Counter, Entity, Key, Query, Synced, new_id, pattern
from solotable.systems.surveys.formats.texts import Name, PhraseText, ShortText
from solotable.systems.surveys.table import OF_TENANT, surveyor

from .stored import NOT_SENT, Id, Order, Stored

LIBRARY = "TENANT#{tenant_id}#LIBRARY"
#: The space of the phrases, which every user of the tenant sees.
PHRASES_SPACE = "phrases"
PhraseKind = Literal["Defect", "Condition"]
#: What a phrase can be associated with.
TargetKind = Literal["ELEMENT", "COMPONENT", "MATERIAL"]
TargetIds = Annotated[list[Id], Field(max_length=30)]


class Material(BaseModel):
    """A material that a component can have."""

    name: Name


class Section(Stored, table=surveyor):
    """A section of the library."""

    key = Key(OF_TENANT, "SECTION#{section_id}")
    in_library = Key(LIBRARY, "SECTION#{order}#{section_id}", index="GSI1")
    by_time = Key(OF_TENANT, "{updated:us}#LIBRARY#SECTION#{section_id}", index="GSI4")

    section_id: Id = Field(default_factory=new_id)
    name: Name
    order: Order
    description: PhraseText = ""
    created_by: str = ""
    element_count: Annotated[int, Counter()] = 0

    @pattern
    @classmethod
    def library(cls) -> Query[Component | Element | Section]:
        """The whole library, in one range (Q4)."""
        return Component.in_library.query() | Element.in_library.query() | cls.in_library.query()


class Element(Stored, table=surveyor):
    """An element of the library, in a section."""

    key = Key(OF_TENANT, "ELEMENT#{element_id}")
    in_library = Key(LIBRARY, "ELEMENT#{section_id}#{order}#{element_id}", index="GSI1")
    by_order = Key("TENANT#{tenant_id}#LIBRARY#{section_id}", "ELEMENT#{order}#{element_id}", index="GSI2")
    by_time = Key(OF_TENANT, "{updated:us}#LIBRARY#ELEMENT#{element_id}", index="GSI4")
    elements = Counted(Section, "element_count")

    element_id: Id = Field(default_factory=new_id)
    section_id: Id
    name: Name
    order: Order
    description: PhraseText = ""
    component_count: Annotated[int, Counter()] = 0

    @pattern
    @classmethod
    def of_section(cls, section_id: str) -> Query[Self]:
        """The elements of a section of the library, in order."""
        return cls.by_order.query(section_id=section_id)


class Component(Stored, table=surveyor):
    """A component of the library, in an element, with its materials."""

    key = Key(OF_TENANT, "COMPONENT#{component_id}")
    in_library = Key(LIBRARY, "COMPONENT#{element_id}#{order}#{component_id}", index="GSI1")
    by_order = Key(
        "TENANT#{tenant_id}#LIBRARY#{element_id}", "COMPONENT#{order}#{component_id}", index="GSI2"
    )
    by_time = Key(OF_TENANT, "{updated:us}#LIBRARY#COMPONENT#{component_id}", index="GSI4")
    components = Counted(Element, "component_count")

    component_id: Id = Field(default_factory=new_id)
    element_id: Id
    name: Name
    order: Order
    materials: Annotated[list[Material], Field(max_length=100)] = Field(default_factory=list)

    @pattern
    @classmethod
    def of_element(cls, element_id: str) -> Query[Self]:
        """The components of an element of the library, in order."""
        return cls.by_order.query(element_id=element_id)


class Phrase(Stored, table=surveyor):
    """A text that surveyors choose for a defect or a condition."""

    key = Key(OF_TENANT, "PHRASE#{kind}#{phrase_id}")
    by_kind = Key("TENANT#{tenant_id}#PHRASE#{kind}", "{name}#{phrase_id}", index="GSI1")
    by_time = Key(OF_TENANT, "{updated:us}#PHRASE#{kind}#{phrase_id}", index="GSI4")

    #: The kind is in the key of the item, so a phrase of another kind is another key for clients too.
    sync = Synced(space=PHRASES_SPACE, key="phrase/{kind}/{phrase_id}", exclude=NOT_SENT)

    phrase_id: Id = Field(default_factory=new_id)
    kind: PhraseKind
    name: Name
    text: PhraseText
    level2: ShortText = ""
    element_ids: TargetIds = Field(default_factory=list)
    component_ids: TargetIds = Field(default_factory=list)
    material_ids: TargetIds = Field(default_factory=list)

    @pattern
    @classmethod
    def of_kind(cls, kind: PhraseKind) -> Query[Self]:
        """The phrases of a kind, by name (Q5)."""
        return cls.by_kind.query(kind=kind)


class PhraseLink(Entity, table=surveyor):
    """The association of a phrase with an element, a component or a material (C4.19)."""

    key = Key(OF_TENANT, "PHRASEOF#{target_kind}#{target_id}#{phrase_id}")

    tenant_id: str = FROM_SCOPE
    target_kind: TargetKind
    target_id: Id
    phrase_id: Id
    kind: PhraseKind

    @pattern
    @classmethod
    def of_target(cls, target_kind: TargetKind, target_id: str) -> Query[Self]:
        """The phrases of an element, a component or a material (Q6)."""
        return cls.key.query(target_kind=target_kind, target_id=target_id)
