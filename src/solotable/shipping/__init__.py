"""Shipping: a copy of a database file in a folder or on S3, at most a moment behind, and its restore."""

from .restore import Restored, restore_file, verify
from .retention import Pruned, prune
from .shipper import Shipped, Shipper, ShippingLimits

__all__ = ["Pruned", "Restored", "Shipped", "Shipper", "ShippingLimits", "prune", "restore_file", "verify"]
