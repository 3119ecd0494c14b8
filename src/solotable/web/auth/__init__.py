"""Authentication: API keys, JSON Web Tokens, roles."""
