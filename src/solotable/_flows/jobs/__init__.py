"""Flows of long-running jobs: backfill, purge, tenant erasure, and their checkpoints."""
