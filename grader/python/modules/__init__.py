"""The modules that a Python submission can import besides installed packages; this folder is on its path."""
