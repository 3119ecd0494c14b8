"""FastAPI over a store: who asks and for which tenant, pages, entity tags, problems, one `install`.

The only room that imports FastAPI and PyJWT; it knows no engine and no entity of its own.
"""

from __future__ import annotations

try:
    from .auth.auth import ApiKey, Auth
    from .auth.current_roles import Standing, Standings
    from .auth.jwks import JwksSettings
    from .auth.jwt import JwtSettings
    from .auth.principal import ANONYMOUS, Principal
    from .http.etags import IfMatch, RequiredIfMatch, etag, if_match, not_modified
    from .http.middleware import request_id
    from .http.pages import Page, PageParams, Paging, page_params
    from .http.problems import Kind, problem
    from .install import install
    from .lifespan import lifespan
    from .tenancy.host_tenants import HostTenants
    from .tenancy.hostnames import canonical_host
    from .tenancy.tenants import (
        Caller,
        DatabaseDep,
        HostStore,
        HostTenant,
        TenantId,
        TenantStore,
        Visitor,
        anyone,
        choose_tenant,
        current,
        database,
        host_store,
        host_tenant,
        requires,
        tenant,
        tenant_store,
    )
except ModuleNotFoundError as _missing:
    if (_missing.name or "").partition(".")[0] not in ("fastapi", "starlette", "jwt", "cryptography", "idna"):
        raise
    raise ModuleNotFoundError(
        f"solotable.web needs {_missing.name}, which is not installed: pip install 'solotable[web]'",
        name=_missing.name,
    ) from _missing

__all__ = [
    "ANONYMOUS",
    "ApiKey",
    "Auth",
    "Caller",
    "DatabaseDep",
    "HostStore",
    "HostTenant",
    "HostTenants",
    "IfMatch",
    "JwksSettings",
    "JwtSettings",
    "Kind",
    "Page",
    "PageParams",
    "Paging",
    "Principal",
    "RequiredIfMatch",
    "Standing",
    "Standings",
    "TenantId",
    "TenantStore",
    "Visitor",
    "anyone",
    "canonical_host",
    "choose_tenant",
    "current",
    "database",
    "etag",
    "host_store",
    "host_tenant",
    "if_match",
    "install",
    "lifespan",
    "not_modified",
    "page_params",
    "problem",
    "request_id",
    "requires",
    "tenant",
    "tenant_store",
]
