"""Commands that start something: the demo of all systems, and a new project."""
