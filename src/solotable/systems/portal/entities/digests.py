"""What the digest of a user is: whether they want it, which period was claimed, and what it covered."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from solotable import Attr, Entity, Key, Version
from solotable.systems.portal.tables import notifications

from .values import Time, UserId


class DigestState(Entity, table=notifications):
    """The digests of one user.

    A run claims a period before it sends, so a period has at most one e-mail. `covered_until` moves only when
    the e-mail was accepted: what an uncertain one had comes again in the next period.
    """

    key = Key("digest#{user_id}", "state")

    user_id: Annotated[UserId, Attr("digest_user_id")]
    opted_out: bool = False
    claimed_period: date | None = None
    sent_period: date | None = None
    covered_until: Time | None = None
    revision: Annotated[int, Version()] = 0
