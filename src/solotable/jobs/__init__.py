"""Long jobs over a table, with progress and checkpoints, so that a killed job can resume."""
