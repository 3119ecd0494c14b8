"""Commands that run long jobs."""
