"""DynamoDB's expressions: trees, their text, their evaluation against items. Pure functions."""
