"""Commands that read and write entities."""
