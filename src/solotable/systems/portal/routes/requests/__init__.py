"""What every route of the portal shares: who calls, how often, which page, and how it answers."""
