"""What a store does, as generators of requests: no I/O, no clock, no randomness but what is handed in.

A flow yields a request and is sent the reply; a refusal is thrown into it. The two stores run the
same flows.
"""
