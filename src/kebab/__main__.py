"""python -m kebab"""

from kebab.interfaces.cli.main import main

if __name__ == "__main__":
    main()
