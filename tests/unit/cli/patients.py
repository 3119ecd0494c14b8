"""Models with encrypted fields."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Self

from pydantic import BaseModel, Field, SecretStr, computed_field, model_validator

from solotable import FROM_SCOPE, Encrypted, Entity, Key, Query, Table, pattern
from solotable.encryption import Keyring

keyring = Keyring({"k1": b"1" * 32}, per_tenant=True)
clinic = Table("Clinic", tenant="tenant_id", stream=True)


class Summary(BaseModel):
    patient_id: str
    ssn: str


class Patient(Entity, table=clinic):
    key = Key("TENANT#{tenant_id}", "PATIENT#{patient_id}")
    tenant_id: str = FROM_SCOPE
    patient_id: str
    ssn: Annotated[str, Encrypted(keyring), Field(max_length=12)]
    pin: Annotated[SecretStr | None, Encrypted(keyring)] = None
    letter: Annotated[str, Encrypted(keyring), Field(alias="Letter", max_length=12)] = ""
    visits: int = 0

    @model_validator(mode="after")
    def check_visits(self) -> Self:
        if self.visits > 100:
            raise ValueError("too many visits")
        return self

    @pattern
    @classmethod
    def everyone(cls) -> Query[Self]:
        return cls.key.query()

    @pattern
    @classmethod
    def summaries(cls) -> Query[Summary]:
        return cls.key.query().select(Summary)


def _describe(visitor: Visitor) -> str:
    return f"{visitor.visitor_id} {visitor.ssn}"


class Digits(BaseModel):
    ssn: str

    @computed_field  # type: ignore[prop-decorator]
    @property
    def digits(self) -> str:
        return self.ssn.replace("-", "")


class Visitor(Entity, table=clinic):
    key = Key("TENANT#{tenant_id}", "VISITOR#{visitor_id}")
    tenant_id: str = FROM_SCOPE
    visitor_id: str
    ssn: Annotated[str, Encrypted(keyring)]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def title(self) -> str:
        return self.visitor_id.upper()

    @computed_field  # type: ignore[prop-decorator]
    @property
    def last_digits(self) -> str:
        return self.ssn[-4:]

    @computed_field  # type: ignore[prop-decorator]
    @cached_property
    def first_digits(self) -> str:
        return self.ssn[:3]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def described(self) -> str:
        return _describe(self)

    @pattern
    @classmethod
    def digits(cls) -> Query[Digits]:
        return cls.key.query().select(Digits)
