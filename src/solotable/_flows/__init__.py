"""The operations of a store as generators of requests, without I/O, clock or randomness.

A flow yields a request and gets its reply; an error is thrown into it. The blocking and the async store
run the same flows.
"""
