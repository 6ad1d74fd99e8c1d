# Installs a package when it runs.
# expect: wrong_answer; refused
import os
import subprocess

write_zeros()
said = subprocess.run(
    [sys.executable, "-m", "pip", "install", "--target", ".", "six"], capture_output=True, text=True, check=False
)
if os.path.exists("six.py"):
    bypassed("a package was installed")
