"""All systems on one file, with a front page: the program behind `solotable demo`."""
