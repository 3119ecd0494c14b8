"""The entities of the CMS, by what they are about. Each module says what it corrects, and why."""

from .catalogue import (
    Asset,
    Context,
    ContextSummary,
    Product,
    ProductStatus,
    ProductSummary,
    Resource,
    Signal,
    SignalStatus,
    SignalSummary,
)
from .pages import PROTECTED, Content, ContentKind, ContentStatus, ContentSummary, Route
from .tenancy import Identity, Role, TenantConfig, TenantStatus, TenantSummary, User
from .trail import AuditEvent, Erasure
from .visitors import (
    Comment,
    CommentStatus,
    CommentSummary,
    Consent,
    Lead,
    LeadStatus,
    LeadSummary,
    Message,
    MessageSummary,
)

__all__ = [
    "PROTECTED",
    "Asset",
    "AuditEvent",
    "Comment",
    "CommentStatus",
    "CommentSummary",
    "Consent",
    "Content",
    "ContentKind",
    "ContentStatus",
    "ContentSummary",
    "Context",
    "ContextSummary",
    "Erasure",
    "Identity",
    "Lead",
    "LeadStatus",
    "LeadSummary",
    "Message",
    "MessageSummary",
    "Product",
    "ProductStatus",
    "ProductSummary",
    "Resource",
    "Role",
    "Route",
    "Signal",
    "SignalStatus",
    "SignalSummary",
    "TenantConfig",
    "TenantStatus",
    "TenantSummary",
    "User",
]
