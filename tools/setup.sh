#!/bin/sh
# Makes .venv with everything that `make grade` needs; in a handout, with the grader that the course gave out. The argument
# `triton` adds what Python submissions need, `test` what `make test` needs, and `test-slurm`, `test-site`, `test-isa` or
# `test-triton` what those need. As root it installs Debian's packages, too.
# Works on a fresh Debian or Ubuntu with Python >= 3.11 and g++; elsewhere it says in one sentence what is missing.
#
# In a handout, .venv is a link into ~/.cache/grader, named by everything that is installed: a second handout of the same
# course finds it there.
set -eu
cd "$(dirname "$0")"
self=$PWD/${0##*/}  # in a handout: grader/setup.sh
cd ..
python=${PYTHON:-python3}

fail() { echo "setup: $*" >&2; exit 1; }

apt_install() { # PACKAGES...: two targets of make may want to at once
    flock "$self" sh -c '
        apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$@" >/dev/null' apt "$@"
}

debian() { # PACKAGES COMMAND...: the packages are there once the commands are
    packages=$1; shift
    for command; do
        command -v "$command" >/dev/null && continue
        [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null ||
            fail "$command was not found: apt install $packages (as root), then run this again"
        echo "setup: installing $packages ..." >&2
        apt_install $packages ||
            fail "apt-get install $packages failed, see above"
        command -v "$command" >/dev/null || fail "$command is still missing after apt-get install $packages"
    done
}

[ -n "${PYTHON:-}" ] || debian "python3 python3-venv" python3
command -v "$python" >/dev/null || fail "$python was not found: install Python 3.11 or newer (apt install python3), or name one: make PYTHON=python3.12"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$python is $("$python" -V 2>&1), expected 3.11 or newer: name another one, as in make PYTHON=python3.12"
debian "g++ make" g++ make

extras=
command -v nvcc >/dev/null || extras=cuda
command -v nvdisasm >/dev/null || extras=${extras:+$extras,}estimates  # for predicted times
[ "${1:-}" != triton ] || extras=${extras:+$extras,}triton
wheel=$(echo grader/*.whl)
[ -f "$wheel" ] || extras=judge${extras:+,$extras}  # a course serves the judge; students hand in to it

next() { # what a student does now
    case $extras in *triton*) mains="*.py" ;; *) mains="*.cu *.py" ;; esac
    for main in $mains; do [ ! -f "$main" ] || break; done
    if [ -f "$wheel" ]; then echo "setup: next: .venv/bin/grader check $main" >&2; fi
}

if [ -f "$wheel" ] && [ -n "${HOME:-}" ] && { [ -L .venv ] || [ ! -e .venv ]; }; then
    shared=${GRADER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/grader}/environments
    mkdir -p "$shared" || fail "$shared cannot be made: set GRADER_CACHE to another folder"
    shared=$shared/$({ cat "$wheel"; "$python" -V; echo "$extras"; } | sha256sum | cut -c 1-16)
    ln -sfn "$shared" .venv
    if [ -f .venv/.ready ]; then
        echo "setup: this grader is installed already, in $shared" >&2
        next
        exit
    fi
fi
if [ ! -x .venv/bin/pip ]; then
    echo "setup: making .venv ..." >&2
    where=$(readlink .venv || echo .venv)
    rm -rf "$where"
    if ! "$python" -m venv "$where" >/dev/null 2>&1; then
        # Debian and Ubuntu keep ensurepip in a package of its own.
        rm -rf "$where"
        if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
            apt_install python3-venv || fail "apt-get install python3-venv failed"
            "$python" -m venv "$where" || fail "$python -m venv .venv failed, see above"
        else
            fail "$python cannot make a virtual environment: apt install python3-venv (as root), then run this again"
        fi
    fi
fi
pip() { .venv/bin/pip --disable-pip-version-check --quiet "$@" || fail "pip $* failed, see above: is a package index reachable?"; }
extra() { # NAME [OPTION]: what an extra of pyproject.toml lists; the grader itself is installed already
    .venv/bin/python -c 'import sys, tomllib
extras = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]
print(*extras[sys.argv[1]], sep="\n")' "$1" > ".venv/$1.txt"
    exec 9>.venv/pip.lock  # two targets of make may want to at once
    flock 9
    pip install ${2:-} -r ".venv/$1.txt"
}

case ${1:-} in
    test)
        echo "setup: installing what the tests need ..." >&2
        extra test --no-compile  # most of it is never imported
        touch .venv/.ready-test
        exit ;;
    test-slurm)
        debian "slurmctld slurmd slurm-client munge" slurmctld slurmd sbatch munged
        extra slurm
        exit ;;
    test-isa)
        debian "qemu-user gcc-aarch64-linux-gnu g++-aarch64-linux-gnu" qemu-aarch64 qemu-x86_64 aarch64-linux-gnu-gcc aarch64-linux-gnu-g++
        exit ;;
    test-triton)
        extra triton
        exit ;;
    test-site)
        debian "chromium chromium-driver" chromium chromedriver
        extra test-site
        exit ;;
esac

# bubblewrap confines submissions; without it grading works, less confined, and every record says so.
if ! command -v bwrap >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt_install bubblewrap 2>/dev/null ||
        echo "setup: bubblewrap could not be installed; submissions will be less confined." >&2
fi

case ,$extras, in *,cuda,*) compiler=" and, since no nvcc is on PATH, the CUDA compiler" ;; esac
echo "setup: installing packages${compiler:-} ..." >&2
if [ -f "$wheel" ]; then
    pip uninstall --yes cuda-homework-grader 2>/dev/null  # an older one may have the same version
    pip install --no-compile "./$wheel${extras:+[$extras]}"
else
    pip install --no-compile -e ".[$extras]" # Python compiles what it imports; most of the packages it never does
fi
if [ -e /dev/nvidiactl ] && [ ! -f "$wheel" ]; then
    # PyCUDA is compiled here and now; grading works without it, only more slowly.
    .venv/bin/pip --disable-pip-version-check --quiet install -e '.[gpu]' ||
        echo "setup: PyCUDA could not be built; expected outputs will be computed on the CPU." >&2
fi
if [ -n "${compiler:-}" ]; then # for `make`, and by hand: nvcc from PyPI does not look for cudart in its own lib/
    toolkit=$(cd .venv && echo "$(pwd -P)"/lib/python3*/site-packages/nvidia/cu13)
    mkdir -p .venv/cuda/bin
    printf '#!/bin/sh\nexec "%s/bin/nvcc" -L"%s/lib" "$@"\n' "$toolkit" "$toolkit" > .venv/cuda/bin/nvcc
    chmod +x .venv/cuda/bin/nvcc
fi
echo "setup: building the native parts ..." >&2
.venv/bin/grader doctor >&2 || fail "this machine lacks something, see above"
touch .venv/.ready
next
