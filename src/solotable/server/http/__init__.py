"""HTTP/1.1: connections, requests, replies, compression."""
