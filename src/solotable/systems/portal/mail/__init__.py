"""E-mail of the portal: a port, SMTP, and digests of unread notifications."""
