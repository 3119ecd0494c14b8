"""Push: run the mutations of clients and commit them with their ids."""
