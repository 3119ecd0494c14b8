"""`python -m solotable` is the command `solotable`."""

from solotable.cli import main

if __name__ == "__main__":
    main()
