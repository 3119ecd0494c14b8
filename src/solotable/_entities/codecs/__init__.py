"""Field values to canonical DynamoDB values and back."""
