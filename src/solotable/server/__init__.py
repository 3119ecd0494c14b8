"""DynamoDB's HTTP protocol over an engine that is handed in.

`connection` is the socket's protocol and `run` the process around it. `dispatch` says what a whole request
is answered with: `hosts` and `auth` check it, `lanes` decides which thread answers, `slices` when a long one
runs, `room` what memory requests may take. `messages`, `bodies` and `outgoing` are pure.
"""

from .run import Server, Settings, serve

__all__ = ["Server", "Settings", "serve"]
