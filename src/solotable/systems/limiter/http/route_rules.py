"""Which limits apply to which route: rules by path and method, the first match, and exempt paths.

A pattern is a path; `*` stands for any text, also with slashes. It is compared with the path after the
application's root path. A path with `..`, `.` or an empty segment matches no exempt rule: a server may
resolve it to another route.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field

from solotable.errors import DataError
from solotable.systems.limiter.admin.limits import Amount

from .identity import AsgiScope, Identify

ResourceOf = str | Callable[[AsgiScope], str]
ConsumeOf = Mapping[str, Amount] | Callable[[AsgiScope], Mapping[str, Amount]]

#: Probes of load balancers come often and from one address; a refused one takes the application down.
HEALTH_PATHS = ("/health", "/healthz")


@dataclass(frozen=True, slots=True)
class RouteRule:
    """The limits of the routes that match; what is None is as the middleware has it.

    `methods` are all without it; GET includes HEAD. `exempt` routes are not limited.
    """

    path: str
    _: KW_ONLY
    methods: Collection[str] = ()
    entity: Identify | None = None
    resource: ResourceOf | None = None
    consume: ConsumeOf | None = None
    exempt: bool = False
    _matches: Callable[[str], re.Match[str] | None] = field(init=False, repr=False, compare=False)
    _methods: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if type(self.path) is not str or self.path[:1] not in ("/", "*"):
            raise DataError(f'The path of a rule begins with "/", as "/static/*"; got {self.path!r}.')
        if isinstance(self.methods, str):
            raise DataError(f"The methods of a rule are a list, as [{self.methods!r}].")
        if self.exempt and any(given is not None for given in (self.entity, self.resource, self.consume)):
            raise DataError(f"The rule of {self.path!r} is exempt; it takes no entity, resource or consume.")
        methods = {method.upper() for method in self.methods}
        pattern = ".*".join(map(re.escape, self.path.split("*")))
        object.__setattr__(self, "_matches", re.compile(pattern, re.DOTALL).fullmatch)
        object.__setattr__(self, "_methods", frozenset(methods | ({"HEAD"} if "GET" in methods else set())))

    def matches(self, path: str, method: str) -> bool:
        """Return whether the rule is that of a request."""
        if self._methods and method not in self._methods:
            return False
        if self._matches(path) is None:
            return False
        return not self.exempt or _is_plain(path)


class RouteRules:
    """Rules in their order, after the exempt paths."""

    def __init__(self, rules: Iterable[RouteRule], exempt: Iterable[str]) -> None:
        if isinstance(exempt, str):
            raise DataError(f"exempt is a list of paths, as [{exempt!r}].")
        self._rules = (*(RouteRule(path, exempt=True) for path in exempt), *rules)

    def find(self, scope: AsgiScope) -> RouteRule | None:
        """Return the first rule that matches a request, None without one."""
        path, method = _path(scope), scope.get("method", "GET")
        return next((rule for rule in self._rules if rule.matches(path, method)), None)


def _path(scope: AsgiScope) -> str:
    path: str = scope.get("path") or "/"
    root = (scope.get("root_path") or "").rstrip("/")
    return path[len(root) :] if root and path.startswith(f"{root}/") else path


def _is_plain(path: str) -> bool:
    """Return whether a path has no segment that a server may resolve away."""
    *segments, last = path[1:].split("/")
    return not {"", ".", ".."} & set(segments) and last not in (".", "..")
