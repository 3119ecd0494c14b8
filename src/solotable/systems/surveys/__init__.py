"""Building surveys on one table: entities, and services over a store. `surveyor` is the table."""

from solotable.systems.storage import BucketStorage, FolderStorage, Storage

from .entities.access import (
    Access,
    Member,
    MemberRole,
    SurveyRole,
    Temp,
    Tenant,
    TenantSummary,
)
from .entities.configs import Configuration, SurveyConfig, SurveyConfigPart
from .entities.files import (
    Document,
    DocumentSummary,
    Image,
    ImageSummary,
    ImageUse,
)
from .entities.library import (
    Component,
    Element,
    Material,
    Phrase,
    PhraseKind,
    PhraseLink,
    Section,
    TargetKind,
)
from .entities.queues import changed_since, waiting
from .entities.stored import Condition, SyncStatus
from .entities.surveys import (
    Part,
    PartKind,
    SurveyComponent,
    SurveyElement,
    SurveyMeta,
    SurveySection,
    SurveyStatus,
    SurveySummary,
)
from .errors import InUse, ParentGone
from .report.links import ReportLink, ReportLinks
from .report.pdf import NoPrinter, print_pdf
from .report.photo_export import export_photos
from .report.service import read_report, report_html
from .services.commits import CommitStore, OnCommit, Written
from .services.documents import Documents
from .services.drafts import (
    ComponentDraft,
    ComponentPatch,
    ElementDraft,
    ElementPatch,
    ImageDraft,
    ImagePatch,
    LibraryComponentDraft,
    LibraryComponentPatch,
    LibraryElementDraft,
    LibraryElementPatch,
    LibrarySectionDraft,
    LibrarySectionPatch,
    MemberDraft,
    PhraseDraft,
    PhrasePatch,
    SectionDraft,
    SectionPatch,
    SurveyDraft,
    SurveyPatch,
    TenantDraft,
    TenantPatch,
)
from .services.export import export_tenant
from .services.images import Images
from .services.library.phrases import Phrases
from .services.library.templates import LibraryComponents, LibraryElements, LibrarySections
from .services.survey.batch import BatchChange, batch_update
from .services.survey.configs import Configs
from .services.survey.form_status import FormStatus, read_form_status
from .services.survey.parts import Components, Elements, Sections
from .services.survey.surveys import Surveys
from .services.survey.tree import ElementNode, SectionNode, SurveyTree
from .services.temp_data import TempData
from .services.tenants import Members, Tenants, TenantSurvey
from .table import surveyor

__all__ = [
    "Access",
    "BatchChange",
    "BucketStorage",
    "CommitStore",
    "Component",
    "ComponentDraft",
    "ComponentPatch",
    "Components",
    "Condition",
    "Configs",
    "Configuration",
    "Document",
    "DocumentSummary",
    "Documents",
    "Element",
    "ElementDraft",
    "ElementNode",
    "ElementPatch",
    "Elements",
    "FolderStorage",
    "FormStatus",
    "Image",
    "ImageDraft",
    "ImagePatch",
    "ImageSummary",
    "ImageUse",
    "Images",
    "InUse",
    "LibraryComponentDraft",
    "LibraryComponentPatch",
    "LibraryComponents",
    "LibraryElementDraft",
    "LibraryElementPatch",
    "LibraryElements",
    "LibrarySectionDraft",
    "LibrarySectionPatch",
    "LibrarySections",
    "Material",
    "Member",
    "MemberDraft",
    "MemberRole",
    "Members",
    "NoPrinter",
    "OnCommit",
    "ParentGone",
    "Part",
    "PartKind",
    "Phrase",
    "PhraseDraft",
    "PhraseKind",
    "PhraseLink",
    "PhrasePatch",
    "Phrases",
    "ReportLink",
    "ReportLinks",
    "Section",
    "SectionDraft",
    "SectionNode",
    "SectionPatch",
    "Sections",
    "Storage",
    "SurveyComponent",
    "SurveyConfig",
    "SurveyConfigPart",
    "SurveyDraft",
    "SurveyElement",
    "SurveyMeta",
    "SurveyPatch",
    "SurveyRole",
    "SurveySection",
    "SurveyStatus",
    "SurveySummary",
    "SurveyTree",
    "Surveys",
    "SyncStatus",
    "TargetKind",
    "Temp",
    "TempData",
    "Tenant",
    "TenantDraft",
    "TenantPatch",
    "TenantSummary",
    "TenantSurvey",
    "Tenants",
    "Written",
    "batch_update",
    "changed_since",
    "export_photos",
    "export_tenant",
    "print_pdf",
    "read_form_status",
    "read_report",
    "report_html",
    "surveyor",
    "waiting",
]
