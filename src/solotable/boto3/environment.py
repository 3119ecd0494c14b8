"""Dummy credentials and a dummy region for the duration of a block, if none are configured.

Without them botocore refuses to create or use a client, even if nothing is signed or sent.
"""

from __future__ import annotations

import os
from collections.abc import Callable

REGION = "us-east-1"
#: Variables that say where botocore finds credentials.
_CREDENTIAL_VARIABLES = (
    "AWS_ACCESS_KEY_ID",
    "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)
_CREDENTIAL_SETTINGS = {
    "aws_access_key_id",
    "credential_process",
    "login_session",
    "role_arn",
    "sso_session",
    "sso_start_url",
    "web_identity_token_file",
}


def set_dummy_environment() -> Callable[[], None]:
    """Set dummy credentials and a region if none are configured; return a function that removes them."""
    import botocore.exceptions
    import botocore.session

    session = botocore.session.Session()
    dummies: dict[str, str] = {}
    try:
        if not any(map(os.environ.get, _CREDENTIAL_VARIABLES)) and not (
            _CREDENTIAL_SETTINGS & session.get_scoped_config().keys()
        ):
            dummies |= {"AWS_ACCESS_KEY_ID": "solotable", "AWS_SECRET_ACCESS_KEY": "solotable"}
        if session.get_config_variable("region") is None:
            dummies["AWS_DEFAULT_REGION"] = REGION
    except botocore.exceptions.ProfileNotFound:
        pass  # the caller's client reports this better
    before = {name: os.environ.get(name) for name in dummies}
    os.environ.update(dummies)

    def undo() -> None:
        for name, value in before.items():
            if os.environ.get(name) != dummies[name]:
                continue  # changed during the block
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value

    return undo
