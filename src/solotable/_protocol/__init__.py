"""DynamoDB's wire form <-> records: shapes, decoding, encoding, limits and capacity arithmetic.

Pure: no clock, no files, no sockets; the engine that answers is handed in. `wire` is the way in
for whoever has bytes or dicts, `requests` and `replies` for whoever has records.
"""
