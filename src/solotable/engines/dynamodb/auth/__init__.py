"""Credentials and AWS Signature Version 4."""
