"""PartiQL text to statement trees."""
