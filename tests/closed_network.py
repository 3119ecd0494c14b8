"""No way to a network, and none to a person's own AWS configuration: for tests of what uses botocore."""

from __future__ import annotations

import os
import socket
from typing import Any, NoReturn

import pytest


def close_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse every connection, and leave botocore without configuration, for the rest of the test."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise OSError("the network is closed in this test")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    # Without credentials botocore would ask the network for those of an EC2 instance.
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
