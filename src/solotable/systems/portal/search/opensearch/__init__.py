"""Search for production, with OpenSearch."""

from .index import OpenSearchIndex

__all__ = ["OpenSearchIndex"]
