"""The services of the surveys, each over the store of one tenant."""
