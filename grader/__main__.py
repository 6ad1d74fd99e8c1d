"""`python -m grader` is the command `grader`."""

from grader.commands.cli import main

main()
