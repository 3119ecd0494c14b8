"""DynamoDB's protocol: request and reply records, their wire form, constraints, capacity, the engine port.

All functions are pure: no clock, no files, no sockets. `wire` takes bytes or dicts, an engine takes the
records of `requests` and returns those of `replies`.
"""
