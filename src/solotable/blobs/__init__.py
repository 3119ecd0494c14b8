"""Values over DynamoDB's limit of 400 KB: `Blob`, and the storages of `Offloaded` fields.

`S3Storage` is in `solotable.blobs.s3`, which needs botocore.
"""

from solotable._entities.codecs.opaque.blob import Blob
from solotable._entities.declare.field_storage import BlobStorage, StoredObject

from .blocking import BlockingStorage
from .folder import FolderStorage
from .memory import MemoryStorage

__all__ = ["Blob", "BlobStorage", "BlockingStorage", "FolderStorage", "MemoryStorage", "StoredObject"]
