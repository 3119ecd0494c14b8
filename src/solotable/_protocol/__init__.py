"""DynamoDB's protocol: request and reply records, wire form, constraints, capacity, Engine.

All functions are pure: no clock, no files, no sockets. `wire` takes bytes or dicts, an engine takes the
records of `requests` and returns those of `replies`.
"""
