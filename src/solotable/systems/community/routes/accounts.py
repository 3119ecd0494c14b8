"""`/api/user`: delete, recover and export one's account."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path

from solotable.systems.community.entities.accounts import DeletionReceipt
from solotable.systems.community.services.accounts import EXPORT_FORMAT, Accounts
from solotable.systems.community.services.users import OwnProfile
from solotable.systems.openapi_examples import with_example
from solotable.systems.routes import PUBLIC, JsonRoute, set_etag

from .requests.access import allow
from .requests.dependencies import Call, CallDep, PublicCallDep
from .requests.rate_limits import limit_address
from .schemas.bodies import DeletionTicket

router = APIRouter(
    prefix="/api", tags=["accounts"], route_class=JsonRoute, dependencies=[Depends(limit_address)]
)

_ReceiptPath = Annotated[str, Path(pattern=r"^[0-9a-f]{32}$", examples=["5f1d" * 8])]


def _accounts(call: Call) -> Accounts:
    return Accounts(call.db, now=call.settings.now)


@router.delete("/user", status_code=202, **allow("user"))
async def delete_account(call: CallDep) -> DeletionTicket:
    """Delete the caller's account. All sessions end; it can be recovered for 30 days after a new login."""
    deletion = await _accounts(call).delete(call.caller)
    return DeletionTicket.model_validate(deletion, from_attributes=True)


@router.post("/user/recover", **allow("leaving"))
async def recover_account(call: CallDep) -> OwnProfile:
    """Recover a deleted account within 30 days."""
    user = await _accounts(call).recover(call.did)
    return set_etag(call.response, OwnProfile.model_validate(user, from_attributes=True))


@router.get("/user/export/data", **with_example({"format": EXPORT_FORMAT, "sites": []}), **allow("user"))
async def export_data(call: CallDep) -> dict[str, Any]:
    """Return everything that the caller stored, as JSON."""
    _name_file(call, "data")
    return await _accounts(call).export(call.caller)


@router.get("/user/export/atproto", **with_example({"format": EXPORT_FORMAT, "records": []}), **allow("user"))
async def export_atproto(call: CallDep) -> dict[str, Any]:
    """Return the caller's profile, posts and records in the form of the AT Protocol."""
    _name_file(call, "atproto")
    return await _accounts(call).export_atproto(call.caller)


@router.get("/receipts/{receipt_id}", **PUBLIC)
async def get_receipt(receipt_id: _ReceiptPath, call: PublicCallDep) -> DeletionReceipt:
    """Return what the purge of an account removed; its user has the id, and the receipt names no user."""
    return await _accounts(call).receipt(receipt_id)


def _name_file(call: Call, kind: str) -> None:
    call.response.headers["content-disposition"] = f'attachment; filename="community-{kind}.json"'
