"""What every route of the community shares: who calls, how often, which page, and how errors look."""
