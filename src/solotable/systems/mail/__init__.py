"""E-mail: the port, and a mailer that speaks SMTP."""
