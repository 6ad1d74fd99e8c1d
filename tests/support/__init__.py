"""What tests share. A test module imports from here, never from another test module; fixtures are in conftest.py."""
