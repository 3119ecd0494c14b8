"""Requests from DynamoDB's wire form to records, replies likewise, and large stored items in steps."""
