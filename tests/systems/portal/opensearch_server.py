"""A server that checks requests against OpenSearch's documented API, and answers from memory.

It is not OpenSearch: it knows the endpoints, parameters and bodies that the adapter may use, rejects all
others, and finds words by a plain loop. Scores are the number of matching fields, weighted.
"""

from __future__ import annotations

import json
import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

_PARAMETERS = {
    "_bulk": {"require_alias", "refresh"},
    "_doc": {"if_seq_no", "if_primary_term", "op_type", "refresh"},
    "_search": set(),
}
_SEARCH_KEYS = {"query", "sort", "size", "track_total_hits", "aggs", "highlight", "search_after"}


class Rejected(Exception):
    """A request that OpenSearch's documentation does not allow."""

    def __init__(self, status: int, kind: str) -> None:
        super().__init__(kind)
        self.status, self.kind = status, kind


@dataclass
class Index:
    """The documents of one index, with their versions; a deleted document leaves its version."""

    properties: dict[str, Any] | None
    documents: dict[str, dict[str, Any]] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    seq_no: int = -1
    seq_nos: dict[str, int] = field(default_factory=dict)


@dataclass
class Cluster:
    """Indexes and aliases, the requests so far, and a status to fail with."""

    url: str = ""
    indexes: dict[str, Index] = field(default_factory=dict)
    aliases: dict[str, set[str]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    fails_with: int | None = None
    closes_after_reply: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def handle(self, method: str, target: str, content_type: str, data: bytes) -> tuple[int, Any]:
        parts = urlsplit(target)
        self.requests.append(f"{method} {parts.path}")
        if self.fails_with is not None:
            return self.fails_with, {"error": {"type": "cluster_block_exception"}, "status": self.fails_with}
        parameters = {
            name: values[0]
            for name, values in parse_qs(parts.query, strict_parsing=bool(parts.query)).items()
        }
        path = parts.path.strip("/").split("/")
        try:
            return self._route(method, path, parameters, content_type, data)
        except Rejected as error:
            return error.status, {"error": {"type": error.kind}, "status": error.status}

    def _route(
        self, method: str, path: list[str], parameters: dict[str, str], content_type: str, data: bytes
    ) -> tuple[int, Any]:
        known = _PARAMETERS.get(path[1] if len(path) > 1 else "", set())
        _check(set(parameters) <= known, "illegal_argument_exception")
        if path[-1] == "_bulk":
            _check(content_type == "application/x-ndjson", "media_type_header_exception", 406)
            _check(data.endswith(b"\n"), "illegal_argument_exception")
            return 200, self._bulk(path[0], [json.loads(line) for line in data.splitlines()], parameters)
        _check(not data or content_type == "application/json", "media_type_header_exception", 406)
        body: Any = json.loads(data) if data else None
        match (method, path):
            case ("POST", ["_aliases"]):
                return 200, self._aliases(body["actions"])
            case ("GET", ["_alias", name]):
                _check(bool(self.aliases.get(name)), "aliases_not_found_exception", 404)
                return 200, {each: {"aliases": {name: {}}} for each in self.aliases[name]}
            case ("PUT", [name]):
                _check(re.fullmatch(r"[a-z0-9][a-z0-9-]*", name) is not None, "invalid_index_name_exception")
                _check(
                    name not in self.indexes and name not in self.aliases, "resource_already_exists_exception"
                )
                _check(set(body) <= {"settings", "mappings", "aliases"}, "parse_exception")
                _check(body["mappings"]["dynamic"] == "strict", "mapper_parsing_exception")
                self.indexes[name] = Index(body["mappings"]["properties"])
                return 200, {"acknowledged": True, "index": name}
            case ("DELETE", [name]):
                _check(name not in self.aliases, "illegal_argument_exception")
                self._of(name)
                del self.indexes[name]
                for each in self.aliases.values():
                    each.discard(name)
                return 200, {"acknowledged": True}
            case ("POST", [name, "_refresh"]):
                self._of(name)
                return 200, {"_shards": {}}
            case ("GET", [name, "_count"]):
                return 200, {"count": len(self._of(name).documents)}
            case ("POST", [name, "_search"]):
                return 200, search(self._of(name), body)
            case (_, [name, "_doc", key]):
                return self._document(method, name, key, parameters, body)
        raise Rejected(400, "illegal_argument_exception")

    def _of(self, name: str) -> Index:
        names = self.aliases.get(name) or {name}
        _check(len(names) == 1 and next(iter(names)) in self.indexes, "index_not_found_exception", 404)
        return self.indexes[next(iter(names))]

    def _document(
        self, method: str, name: str, key: str, parameters: dict[str, str], body: Any
    ) -> tuple[int, Any]:
        if method == "PUT":
            self.indexes.setdefault(name, Index(None))  # OpenSearch creates the index of a first document
        index = self._of(name)
        if method == "GET":
            if key not in index.documents:
                return 404, {"_index": name, "_id": key, "found": False}
            stored = {"_source": index.documents[key], "_seq_no": index.seq_nos[key], "_primary_term": 1}
            return 200, {"found": True, **stored}
        if method == "DELETE":
            found = index.documents.pop(key, None)
            return (200, {"result": "deleted"}) if found else (404, {"result": "not_found"})
        _check(method == "PUT", "illegal_argument_exception")
        if parameters.get("op_type") == "create":
            _check(key not in index.documents, "version_conflict_engine_exception", 409)
        if "if_seq_no" in parameters:
            _check("if_primary_term" in parameters, "action_request_validation_exception")
            is_current = index.seq_nos.get(key) == int(parameters["if_seq_no"]) and key in index.documents
            _check(is_current, "version_conflict_engine_exception", 409)
        index.seq_no += 1
        index.documents[key], index.seq_nos[key] = body, index.seq_no
        return 200, {"result": "updated", "_seq_no": index.seq_no, "_primary_term": 1}

    def _aliases(self, actions: list[dict[str, Any]]) -> Any:
        for action in actions:
            ((kind, given),) = action.items()
            _check(kind in ("add", "remove") and set(given) == {"index", "alias"}, "parse_exception")
            self._of(given["index"])
            names = self.aliases.setdefault(given["alias"], set())
            (names.add if kind == "add" else names.discard)(given["index"])
        return {"acknowledged": True}

    def _bulk(self, name: str, lines: list[Any], parameters: dict[str, str]) -> Any:
        if parameters.get("require_alias") == "true":
            _check(bool(self.aliases.get(name)), "index_not_found_exception", 404)
        index = self._of(name)
        items = []
        at = 0
        while at < len(lines):
            ((kind, meta),) = lines[at].items()
            _check(kind in ("index", "delete"), "illegal_argument_exception")
            _check(set(meta) == {"_id", "version", "version_type"}, "illegal_argument_exception")
            _check(meta["version_type"] == "external_gte", "action_request_validation_exception")
            key, version = meta["_id"], meta["version"]
            _check(0 < len(key.encode()) <= 512 and isinstance(version, int), "illegal_argument_exception")
            status, error = 200, None
            if version < index.versions.get(key, -1):
                status, error = 409, "version_conflict_engine_exception"
            elif kind == "delete":
                status = 200 if index.documents.pop(key, None) is not None else 404
                index.versions[key] = version
            elif index.properties is not None and set(lines[at + 1]) - set(index.properties):
                status, error = 400, "strict_dynamic_mapping_exception"
            else:
                index.documents[key], index.versions[key] = lines[at + 1], version
            items.append(
                {kind: {"_id": key, "status": status, **({"error": {"type": error}} if error else {})}}
            )
            at += 2 if kind == "index" else 1
        return {"errors": any("error" in next(iter(each.values())) for each in items), "items": items}


def _check(condition: bool, kind: str, status: int = 400) -> None:
    if not condition:
        raise Rejected(status, kind)


def tokens(text: str) -> list[str]:
    """Return the words of the `folded` analyzer."""
    plain = "".join(each for each in unicodedata.normalize("NFKD", text) if not unicodedata.combining(each))
    return re.findall(r"\w+", plain.lower())


def _has_phrase(text: str, phrase: list[str], *, prefix: bool) -> bool:
    words = tokens(text)
    for at in range(len(words) - len(phrase) + 1):
        part = words[at : at + len(phrase)]
        if part[:-1] == phrase[:-1] and (
            part[-1].startswith(phrase[-1]) if prefix else part[-1] == phrase[-1]
        ):
            return True
    return False


def _matches(clause: dict[str, Any], document: dict[str, Any]) -> bool:
    ((kind, given),) = clause.items()
    if kind in ("term", "terms"):
        ((name, wanted),) = given.items()
        stored = document.get(name)
        values = stored if isinstance(stored, list) else [stored]
        return any(each in (wanted if kind == "terms" else [wanted]) for each in values)
    _check(kind == "bool" and set(given) == {"should", "minimum_should_match"}, "parsing_exception")
    return bool(sum(_matches(each, document) for each in given["should"]) >= given["minimum_should_match"])


def _score(clause: dict[str, Any], document: dict[str, Any], index: Index) -> float:
    given = clause["multi_match"]
    _check(set(given) == {"query", "fields", "type"}, "parsing_exception")
    _check(given["type"] in ("phrase", "phrase_prefix"), "parsing_exception")
    score = 0.0
    for weighted in given["fields"]:
        name, _, weight = weighted.partition("^")
        assert index.properties is not None
        head, _, sub = name.partition(".")
        mapped = index.properties[head]
        _check((mapped["fields"][sub] if sub else mapped)["type"] == "text", "query_shard_exception")
        values = document.get(head, "")
        texts = values if isinstance(values, list) else [values]
        phrase = tokens(given["query"])
        if phrase and any(
            _has_phrase(each, phrase, prefix=given["type"] == "phrase_prefix") for each in texts
        ):
            score += float(weight or 1)
    return score


def search(index: Index, body: dict[str, Any]) -> dict[str, Any]:
    """Answer a search."""
    _check(set(body) <= _SEARCH_KEYS and set(body["query"]) == {"bool"}, "parsing_exception")
    query = body["query"]["bool"]
    _check(set(query) == {"must", "filter"} and body["track_total_hits"] is True, "parsing_exception")
    found = []
    for document in index.documents.values():
        scores = [_score(each, document, index) for each in query["must"]]
        if all(scores) and all(_matches(each, document) for each in query["filter"]):
            found.append((sum(scores), document))
    ((field_name, direction),) = body["sort"][0].items()
    _check(direction == "desc" and body["sort"][1] == {"content_id": "asc"}, "parsing_exception")

    def position(each: tuple[float, dict[str, Any]]) -> list[Any]:
        return [each[0] if field_name == "_score" else each[1][field_name], each[1]["content_id"]]

    ordered = sorted(found, key=lambda each: (-position(each)[0], position(each)[1]))
    if "search_after" in body:
        _check(len(body["search_after"]) == len(body["sort"]), "illegal_argument_exception")
        first, last = body["search_after"]
        ordered = [each for each in ordered if (-position(each)[0], position(each)[1]) > (-first, last)]
    hits = [
        {
            "_source": document,
            "_score": score if field_name == "_score" else None,
            "sort": position((score, document)),
            **_highlight(query["must"], document, body["highlight"]),
        }
        for score, document in ordered[: body["size"]]
    ]
    return {
        "hits": {"total": {"value": len(found), "relation": "eq"}, "hits": hits},
        "aggregations": {name: _aggregate(name, each, found) for name, each in body["aggs"].items()},
    }


def _aggregate(name: str, given: dict[str, Any], found: list[tuple[float, dict[str, Any]]]) -> dict[str, Any]:
    terms = given["terms"]
    _check(terms["order"] == [{"_count": "desc"}, {"_key": "asc"}], "parsing_exception")
    counts: Counter[str] = Counter()
    for _, document in found:
        value = document.get(terms["field"], [])
        counts.update(value if isinstance(value, list) else [value])
    ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0]))[: terms["size"]]
    return {"buckets": [{"key": key, "doc_count": count} for key, count in ordered]}


def _highlight(must: list[Any], document: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    words = {each for clause in must for each in tokens(clause["multi_match"]["query"])}
    begin, end = given["pre_tags"][0], given["post_tags"][0]
    marked = {}
    for name in given["fields"]:
        text = document.get(name, "")
        changed = re.sub(
            r"\w+", lambda each: f"{begin}{each[0]}{end}" if words & set(tokens(each[0])) else each[0], text
        )
        if changed != text:
            marked[name] = [changed]
    return {"highlight": marked} if marked else {}


@contextmanager
def serve_opensearch() -> Iterator[Cluster]:
    """Serve a cluster without indexes."""
    cluster = Cluster()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            data = self.rfile.read(int(self.headers.get("content-length", 0)))
            with cluster.lock:
                status, body = cluster.handle(
                    self.command, self.path, self.headers.get("content-type", ""), data
                )
            text = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)
            self.close_connection = cluster.closes_after_reply

        do_GET = do_PUT = do_POST = do_DELETE = _answer  # noqa: N815 - the names that http.server calls

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    cluster.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield cluster
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
