"""Users of the portal: an identity port, a local provider on a table, sessions and invitations."""
