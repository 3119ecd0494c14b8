"""The migration of the surveys from eight tables to one: mapping, old tables, sample data."""

from .mapping import survey_mapping
from .old_tables import OLD_TABLES
from .sample_data import DirtyData, old_items

__all__ = ["OLD_TABLES", "DirtyData", "old_items", "survey_mapping"]
