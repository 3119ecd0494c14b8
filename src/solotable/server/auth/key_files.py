"""Parse files of access keys; pure.

A line is `ACCESS_KEY SECRET`; after the first [profile], the file is an AWS credentials file. Errors name
the line number, never the text, which may contain a secret.
"""

from __future__ import annotations

import re

from solotable.errors import DeclarationError

_KEY_ID = "aws_access_key_id"
_SECRET = "aws_secret_access_key"  # noqa: S105 - the name of the setting
_TOKEN = "aws_session_token"  # noqa: S105 - the name of the setting
# Visible ASCII without comma and slash, which separate the parts of a credential.
_KEY_ID_SHAPE = re.compile(r"[!-+\-.0-~]+")
_SECRET_SHAPE = re.compile(r"[!-~]+")


def read_keys(text: str) -> dict[str, str]:
    """Parse a key file: lines of `ACCESS_KEY SECRET`, or the profiles of an AWS credentials file.

    >>> read_keys("# for the tests\\nlocal s3cr3t")
    {'local': 's3cr3t'}
    """
    keys: dict[str, str] = {}
    profile: dict[str, str] | None = None
    opened = 0
    for number, raw in enumerate(text.removeprefix("\ufeff").splitlines(), start=1):
        line = raw.strip()
        if not line or line[0] in "#;":
            continue
        if line.startswith("["):
            if not line.endswith("]"):
                raise _bad_line(number, "expected a profile name in brackets: [name]")
            _add_profile(keys, profile, opened)
            profile, opened = {}, number
        elif profile is not None:
            name, equals, value = line.partition("=")
            if not equals:
                raise _bad_line(number, "expected `name = value` within a profile")
            name, value = name.strip().lower(), value.strip()
            if name == _TOKEN:
                raise _bad_line(number, "keys with a session token are not supported")
            if name in profile:
                raise _bad_line(number, f"duplicate {name} in the profile")
            profile[name] = value
        else:
            key, *rest = line.split()
            if not rest or rest[0].startswith("#") or (len(rest) > 1 and not rest[1].startswith("#")):
                raise _bad_line(number, "expected `ACCESS_KEY SECRET`, or a profile: [name]")
            _add(keys, key, rest[0], number)
    _add_profile(keys, profile, opened)
    if not keys:
        raise DeclarationError("The key file has no keys; expected one `ACCESS_KEY SECRET` per line.")
    return keys


def _add_profile(keys: dict[str, str], profile: dict[str, str] | None, number: int) -> None:
    if profile is None or not profile.keys() & {_KEY_ID, _SECRET}:
        return  # a profile may have other settings only
    for name in (_KEY_ID, _SECRET):
        if name not in profile:
            raise _bad_line(number, f"the profile has no {name}")
    _add(keys, profile[_KEY_ID], profile[_SECRET], number)


def _add(keys: dict[str, str], key: str, secret: str, number: int) -> None:
    if not _KEY_ID_SHAPE.fullmatch(key):
        raise _bad_line(number, "an access key must be visible ASCII without comma or slash")
    if not _SECRET_SHAPE.fullmatch(secret):
        raise _bad_line(number, "a secret must be visible ASCII without spaces")
    if key in keys:
        raise _bad_line(number, "duplicate access key")
    keys[key] = secret


def _bad_line(number: int, reason: str) -> DeclarationError:
    return DeclarationError(f"Key file, line {number}: {reason}.")
