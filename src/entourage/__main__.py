"""``python -m entourage``: the command line."""

from entourage.cli import main

if __name__ == "__main__":
    main()
