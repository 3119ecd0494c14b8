"""Fields in key templates: how the text of a value looks, and which codec a field has."""
