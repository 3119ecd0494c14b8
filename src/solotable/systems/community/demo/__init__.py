"""The demo: `python -m solotable.systems.community.demo`."""
