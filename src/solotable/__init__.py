"""Amazon DynamoDB's exact behaviour on one SQLite file, in process.

The front door of the package: names re-exported from the rooms behind it, and nothing else.
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
