"""What the CMS does, as small classes over a tenant's store, or over the database where tenants are made.

Nothing here knows HTTP. Who may do what is for the routes; what must never happen is refused here.
"""

from .audit import Erasures, Trail, audit_sink
from .catalogue import ContextDraft, Contexts, ProductDraft, Products, SignalDraft, Signals
from .files import Announced, Assets, Resources
from .pages.contents import ContentDraft, ContentPatch, Contents
from .pages.graph import Graph, GraphNode, Graphs
from .pages.routing import Moved, Routes
from .pages.versions import Versions, VersionSummary
from .tenancy.erasure import TenantErasure, erase
from .tenancy.identities import Identities, UnknownUsers, standing
from .tenancy.settings import Settings
from .tenancy.tenants import TenantDraft, Tenants
from .tenancy.users import Forbidden, Users
from .visitors import Comments, Consents, Leads

__all__ = [
    "Announced",
    "Assets",
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
    "Moved",
    "ProductDraft",
    "Products",
    "Resources",
    "Routes",
    "Settings",
    "SignalDraft",
    "Signals",
    "TenantDraft",
    "TenantErasure",
    "Tenants",
    "Trail",
    "UnknownUsers",
    "Users",
    "VersionSummary",
    "Versions",
    "audit_sink",
    "erase",
    "standing",
]
