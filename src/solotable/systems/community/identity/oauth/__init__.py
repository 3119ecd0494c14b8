"""OAuth of the AT Protocol: a client with PAR, PKCE and DPoP, and an authorization server for tests."""
