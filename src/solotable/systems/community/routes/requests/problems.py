"""The statuses of the community's errors."""

from __future__ import annotations

from solotable.systems.community.errors import (
    AccountDeleted,
    AlreadyMember,
    ExportRunning,
    Forbidden,
    InvitationOver,
    LastAdmin,
    NameTaken,
    NotMember,
    NotRecoverable,
    TooMany,
)
from solotable.systems.community.identity.port import LoginRejected, ProviderUnavailable
from solotable.systems.mail.port import MailOutcomeUnknown, MailRejected
from solotable.web import ProblemType


def _shown(status: int, slug: str, title: str) -> ProblemType:
    """Return a type whose errors have a message for the client."""
    return ProblemType(status=status, slug=slug, title=title, detail=f"{title}.", show_message=True)


def _hidden(status: int, slug: str, title: str, detail: str) -> ProblemType:
    return ProblemType(status=status, slug=slug, title=title, detail=detail, retry_after_seconds=5)


#: For `install(problems=...)`.
PROBLEMS: dict[type[Exception], ProblemType] = {
    Forbidden: _shown(403, "forbidden", "Forbidden"),
    AlreadyMember: _shown(409, "already-member", "Already a member"),
    NotMember: _shown(404, "not-member", "Not a member"),
    LastAdmin: _shown(409, "last-admin", "The last admin"),
    InvitationOver: _shown(404, "invitation-over", "The invitation is over"),
    NameTaken: _shown(409, "name-taken", "The name is taken"),
    AccountDeleted: _shown(409, "account-deleted", "The account was deleted"),
    NotRecoverable: _shown(404, "not-recoverable", "The account cannot be recovered"),
    TooMany: _shown(409, "too-many", "Too many"),
    ExportRunning: _shown(409, "export-running", "An export is running"),
    LoginRejected: _shown(400, "login-rejected", "The login was rejected"),
    ProviderUnavailable: _hidden(
        503,
        "provider-unavailable",
        "Identity provider unavailable",
        "The identity provider did not answer as it should; try again later.",
    ),
    MailRejected: _hidden(503, "mail-unavailable", "No e-mail", "The message was not sent; try again later."),
    MailOutcomeUnknown: _hidden(503, "mail-unavailable", "No e-mail", "The message may not have been sent."),
}
