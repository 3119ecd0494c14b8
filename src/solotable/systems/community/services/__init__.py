"""What users and operators of the community do."""
