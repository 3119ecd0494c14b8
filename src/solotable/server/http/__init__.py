"""HTTP/1.1: connections, request and reply buffers, compression."""
