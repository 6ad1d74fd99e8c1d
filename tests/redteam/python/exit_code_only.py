# Writes no output and ends with exit code 0.
# expect: no_output
launch_decoy()
sys.exit(0)
