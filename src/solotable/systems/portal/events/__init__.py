"""Activity events: recording, kept numbers for analytics, and exports."""
