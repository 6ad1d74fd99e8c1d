"""The modules that a Python submission can import in addition to installed packages; this folder is on its path."""
