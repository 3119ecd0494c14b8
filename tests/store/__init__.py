"""The store's suite: one body per behaviour, played blocking and awaited, on every engine."""
