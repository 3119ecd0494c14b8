"""Builds in a bucket of S3 (moto): published, served, replaced and removed."""

from __future__ import annotations

from typing import Any

import boto3
from botocore.config import Config

from solotable.systems.community.builds.serve import SiteServer
from solotable.systems.storage import BucketStorage
from tests.s3_server import new_bucket

from .workshop import Workshop


def keys_of(client: Any, bucket: str) -> set[str]:
    return {each["Key"] for each in client.list_objects_v2(Bucket=bucket).get("Contents", [])}


def test_a_site_is_published_replaced_and_removed_in_a_bucket(workshop: Workshop, s3_endpoint: str) -> None:
    client = boto3.client(
        "s3",
        endpoint_url=s3_endpoint,
        region_name="us-east-1",
        aws_access_key_id="x",
        aws_secret_access_key="x",
        config=Config(signature_version="s3v4"),
    )
    bucket = new_bucket(s3_endpoint)
    workshop.storage = BucketStorage(client, bucket, prefix="community/")
    site = workshop.site()
    workshop.build(site)
    first = keys_of(client, bucket)
    assert len(first) == len(workshop.files(site)) + 1
    workshop.pass_time(seconds=1)
    workshop.build(site)
    server = SiteServer(workshop.db, workshop.storage, domain="nbhd.example")
    found = workshop.run(server.find("ada", "/"))
    assert found is not None
    head = client.head_object(Bucket=bucket, Key=f"community/{found.key}")
    assert head["ContentType"] == "text/html; charset=utf-8"
    workshop.pass_time(hours=1)
    workshop.work()
    left = keys_of(client, bucket)
    assert not left & first
    assert len(left) == len(first)
    client.close()
