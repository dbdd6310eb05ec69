# Sourced by the other scripts: goes to the top of the repository and makes .venv there, or reuses it.
# Set PYTHON to choose the interpreter a new .venv is made with.

cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() {
    printf '%s\n' "$@" >&2
    exit 1
}

new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

find_python() {
    local candidate
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
        if new_enough "$candidate"; then
            printf '%s' "$candidate"
            return
        fi
    done
    fail "Kebab needs Python 3.11 or newer, and ${PYTHON:-python3} is not." \
        "  Install one (on Debian: sudo apt install python3 python3-venv), or name one: PYTHON=/path/to/python $0"
}

make_venv() {
    local python
    if [[ -x .venv/bin/python ]] && new_enough .venv/bin/python && .venv/bin/python -m pip --version >/dev/null 2>&1; then
        return
    fi
    python=$(find_python)
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
        fail "The Python module venv is missing." "  On Debian: sudo apt install python3-venv"
    echo "Making a virtual environment in .venv"
    "$python" -m venv .venv
}

# Quiet, but errors are shown; the package is installed as a user would get it, not linked to the source.
install() {
    .venv/bin/python -m pip install --quiet --quiet --disable-pip-version-check "$@"
}
