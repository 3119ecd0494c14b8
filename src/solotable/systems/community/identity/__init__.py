"""Who a caller is: the identity port, OAuth in the shape of the AT Protocol, sessions, e-mail proofs."""
