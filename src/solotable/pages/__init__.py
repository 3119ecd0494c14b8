"""What HTML pages of the systems and the console share: static files, forms and the port."""
