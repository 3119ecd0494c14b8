"""Long and unkind tests: killed processes, failing disks, damaged files, many clients.

Each has a short form, which is part of every run, and a long one, for `make torture`. What they find
is printed, and the figures of the last long run are in docs/guide/durability.md.
"""
