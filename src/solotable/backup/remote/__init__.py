"""Backups of a table on AWS or any endpoint, over DynamoDB's own API: exports, restores, drills."""

from .settings import LostSetting
from .table import Drilled, ExportResult, RemoteTable, RestoredTable, TableStatus

__all__ = ["Drilled", "ExportResult", "LostSetting", "RemoteTable", "RestoredTable", "TableStatus"]
