"""``python -m qmodels``: the command, also where the folder of scripts is not on the path."""

from cases.cli.main import main

if __name__ == "__main__":
    main()
