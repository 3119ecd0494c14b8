"""Between pages and browsers: templates, sessions, forms, uploads and error pages."""
