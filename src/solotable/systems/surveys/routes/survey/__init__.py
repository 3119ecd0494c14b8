"""Routes of one survey: the survey, its parts, and its reports."""
