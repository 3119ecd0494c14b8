"""When and in which thread a request is answered."""
