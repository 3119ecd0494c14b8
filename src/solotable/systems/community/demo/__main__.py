"""Run the demo."""

from .program import main

if __name__ == "__main__":
    raise SystemExit(main())
