"""What the CMS does, as small classes over a tenant's store, or over the database where tenants are made.

Nothing here knows HTTP. Who may do what is for the routes; what must never happen is refused here.
"""

from .catalogue import ContextDraft, Contexts, ProductDraft, Products, SignalDraft, Signals
from .closing import TenantErasure, erase
from .contents import ContentDraft, ContentPatch, Contents
from .files import Announced, Assets, Resources
from .graph import Graph, GraphNode, Graphs
from .identities import Identities, UnknownUsers, standing
from .routing import Moved, Routes
from .settings import Settings
from .tenants import TenantDraft, Tenants
from .trail import Erasures, Trail, audit_sink
from .users import Forbidden, Users
from .versions import Versions, VersionSummary
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
