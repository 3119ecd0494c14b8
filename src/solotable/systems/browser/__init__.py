"""What the pages of the systems share: templates, styles, forms, uploads, cookies and times in words."""
