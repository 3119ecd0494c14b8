"""Credentials, AWS Signature Version 4, and the configuration that botocore finds."""
