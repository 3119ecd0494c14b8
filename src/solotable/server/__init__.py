"""DynamoDB's HTTP protocol over an engine that is handed in.

`messages` and `bodies` are pure, `auth` verifies signatures, `lanes` decides which thread answers and
`room` what memory requests may take, `connection` is the socket's protocol and `run` the process around it.
No operation is known here.
"""

from .run import Server, Settings, serve

__all__ = ["Server", "Settings", "serve"]
