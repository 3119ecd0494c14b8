"""Templates: three that ship with the system, their configs as JSON Schema, and custom manifests."""
