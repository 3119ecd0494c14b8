"""DynamoDB's HTTP protocol over an engine that the caller passes in.

`settings` has every setting; `run` listens and shuts down. `http.connection` parses requests and sends
replies; `dispatch` checks a request (`auth`) and decodes it; `scheduler` picks the thread that answers it,
and `time_slices` shares the time of long requests. `http.body_budget` limits the memory of request bodies,
and `request_log` describes answered requests.
"""

from .request_log import RequestRecord
from .run import Server, serve
from .settings import Settings

__all__ = ["RequestRecord", "Server", "Settings", "serve"]
