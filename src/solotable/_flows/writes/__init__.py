"""Write entities: put, update, modify, delete, and batches."""
