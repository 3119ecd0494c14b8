"""The files of an export in AWS's format: manifests, writer and reader, without an engine."""
