"""``python -m qmodels``: the command, also where the folder of scripts is not on the path."""

from qmodels.beside import command

if __name__ == "__main__":
    command()
