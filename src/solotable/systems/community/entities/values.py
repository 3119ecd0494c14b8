"""Values that entities share: ids, names, links and texts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from solotable.systems.community.formats.links import check_link
from solotable.systems.texts import clean_line, clean_value

Privacy = Literal["public", "private"]
Role = Literal["creator", "admin", "member"]
#: The roles that administer a neighbourhood.
ADMINS: frozenset[Role] = frozenset({"creator", "admin"})
MemberStatus = Literal["active", "pending", "invited", "left"]

#: A decentralized identifier; `did:plc:abc123`.
Did = Annotated[str, Field(max_length=256, pattern=r"^did:[a-z0-9]+:[A-Za-z0-9._:%-]*[A-Za-z0-9._-]$")]
#: The ids of neighbourhoods, sites, builds and templates.
Id = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_-]+$")]
#: A record key of AT Protocol.
RecordKey = Annotated[str, Field(max_length=128, pattern=r"^[A-Za-z0-9._:~-]+$")]
#: The collection of a record, a namespaced id of AT Protocol; `city.nbhd.post`.
RecordType = Annotated[
    str, Field(max_length=128, pattern=r"^[A-Za-z][A-Za-z0-9-]*(\.[A-Za-z][A-Za-z0-9-]*)+$")
]
# Lengths stand before the cleaning: they are of the string, and messages count characters.
Line = Annotated[str, Field(min_length=1, max_length=100), BeforeValidator(clean_line)]
Title = Annotated[str, Field(min_length=1, max_length=200), BeforeValidator(clean_line)]
Text = Annotated[str, Field(max_length=5000), BeforeValidator(clean_value)]
Bio = Annotated[str, Field(max_length=500), BeforeValidator(clean_value)]
Location = Annotated[str, Field(max_length=100), BeforeValidator(clean_line)]
#: A web address: http or https, with a host; no other scheme runs in a browser (`javascript:`).
Link = Annotated[str, Field(max_length=2000), AfterValidator(check_link)]
