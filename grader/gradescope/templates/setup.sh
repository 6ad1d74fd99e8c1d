#!/bin/bash
# Runs once, when Gradescope builds the container: installs everything that grading needs, and makes the testcases.
set -eu
root=${AUTOGRADER_ROOT:-/autograder}
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null && [ -z "${GRADER_NO_APT:-}" ]; then
    apt-get update -qq
    apt-get install -y -qq python3 python3-venv make g++ bubblewrap >/dev/null
fi
cd "$root/source"
sh tools/setup.sh @EXTRA@
.venv/bin/grader testcases generate @TESTS@ --assignment @ASSIGNMENT@
