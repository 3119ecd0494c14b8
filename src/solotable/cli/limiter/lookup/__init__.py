"""Commands that look things up: whose limits they are, and which buckets are busy."""

from .top import top
from .whois import whois

__all__ = ["top", "whois"]
