"""Exports of tables in AWS's format, and their import: folders, or any S3 endpoint.

>>> from solotable.engines import sqlite
>>> engine = sqlite.open(":memory:")
>>> _ = engine.call("CreateTable", {
...     "TableName": "Shop", "BillingMode": "PAY_PER_REQUEST",
...     "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
...     "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
... })
>>> _ = engine.call("PutItem", {"TableName": "Shop", "Item": {"id": {"S": "o1"}}})
>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     exported = export_table(engine, "Shop", locate(folder))
...     [item for _, item in open_export(locate(folder)).items()]
[{'id': {'S': 'o1'}}]
>>> engine.close()
"""

from solotable._export_files.manifests import DataFile, ManifestSummary
from solotable._export_files.reader import Export, ExportedChange, Place, list_exports, open_export
from solotable.locations import FolderLocation, Location, S3Location, locate

from .daily import DailyExport, export_daily, list_days
from .exporting import Exported, export_table
from .importing import ImportProblem, ImportReport, import_export

__all__ = [
    "DailyExport",
    "DataFile",
    "Export",
    "Exported",
    "ExportedChange",
    "FolderLocation",
    "ImportProblem",
    "ImportReport",
    "Location",
    "ManifestSummary",
    "Place",
    "S3Location",
    "export_daily",
    "export_table",
    "import_export",
    "list_days",
    "list_exports",
    "locate",
    "open_export",
]
