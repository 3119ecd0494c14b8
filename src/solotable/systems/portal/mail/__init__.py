"""E-mail of the portal: digests of unread notifications."""
