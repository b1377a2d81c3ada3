"""`python -m sluicegate`: the command line, also where its script is not on the path."""

from sluicegate.proxy.cli.main import main

if __name__ == "__main__":
    main()
