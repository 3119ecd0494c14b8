"""Apply the changes of one side to the other."""
