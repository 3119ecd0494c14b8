"""The portal's pages: server-rendered HTML for browsers, with sessions, and no script but the inbox's.

`routing` lists them. A handler takes a `Visit` and calls the same services as the API.
"""
