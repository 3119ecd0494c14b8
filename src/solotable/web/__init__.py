"""FastAPI on a store: authentication, tenants, pages, entity tags, problems, and one `install`.

Routes use the annotated types: `store: TenantStore`, `principal: CurrentPrincipal`, `paging: Paging`.
This package imports FastAPI and PyJWT; it imports no engine and defines no entity.
"""

from __future__ import annotations

try:
    from .auth.auth import ApiKey, Auth
    from .auth.current_roles import CurrentRoles, ResolveRoles
    from .auth.dependencies import CurrentPrincipal, OptionalPrincipal, authenticate, requires
    from .auth.jwks import JwksSettings
    from .auth.jwt import JwtSettings
    from .auth.principal import ANONYMOUS, Principal
    from .http.etags import IfMatch, RequiredIfMatch, etag, not_modified
    from .http.middleware import limit_body, request_id
    from .http.pages import Page, PageParams, Paging
    from .http.problems import ProblemType, problem
    from .install import install
    from .lifespan import DatabaseDep, get_database, lifespan
    from .tenancy.dependencies import HostStore, HostTenantId, TenantId, TenantStore, choose_tenant
    from .tenancy.host_tenants import HostTenants
    from .tenancy.hostnames import canonical_host
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
    "CurrentPrincipal",
    "CurrentRoles",
    "DatabaseDep",
    "HostStore",
    "HostTenantId",
    "HostTenants",
    "IfMatch",
    "JwksSettings",
    "JwtSettings",
    "OptionalPrincipal",
    "Page",
    "PageParams",
    "Paging",
    "Principal",
    "ProblemType",
    "RequiredIfMatch",
    "ResolveRoles",
    "TenantId",
    "TenantStore",
    "authenticate",
    "canonical_host",
    "choose_tenant",
    "etag",
    "get_database",
    "install",
    "lifespan",
    "limit_body",
    "not_modified",
    "problem",
    "request_id",
    "requires",
]
