"""The services of the CMS: classes over a tenant's store, or over the database for tenants themselves.

Services do not know HTTP. Routes check roles; services enforce the rules of the data.
"""

from .audit import AuditTrail, Erasures, audit_sink
from .catalogue import ContextDraft, Contexts, ProductDraft, Products, SignalDraft, Signals
from .files import Assets, Resources, UploadTarget
from .pages.contents import ContentDraft, ContentPatch, Contents
from .pages.graph import Graph, GraphNode, Graphs
from .pages.routing import PathRedirect, Routes
from .pages.schedule import Schedule, publish_due
from .pages.versions import Versions, VersionSummary
from .tenancy.erasure import TenantErasure, erase_tenant
from .tenancy.identities import Identities, UnknownUsers, current_roles
from .tenancy.settings import Settings
from .tenancy.tenants import TenantDraft, Tenants
from .tenancy.users import Forbidden, Users
from .visitors import Comments, Consents, Leads

__all__ = [
    "Assets",
    "AuditTrail",
    "Comments",
    "Consents",
    "ContentDraft",
    "ContentPatch",
    "Contents",
    "ContextDraft",
    "Contexts",
    "Erasures",
    "Forbidden",
    "Graph",
    "GraphNode",
    "Graphs",
    "Identities",
    "Leads",
    "PathRedirect",
    "ProductDraft",
    "Products",
    "Resources",
    "Routes",
    "Schedule",
    "Settings",
    "SignalDraft",
    "Signals",
    "TenantDraft",
    "TenantErasure",
    "Tenants",
    "UnknownUsers",
    "UploadTarget",
    "Users",
    "VersionSummary",
    "Versions",
    "audit_sink",
    "current_roles",
    "erase_tenant",
    "publish_due",
]
