"""`python -m comesh` is `comesh`."""

from comesh.cli.main import main

main()
