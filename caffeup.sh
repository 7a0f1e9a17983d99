#!/bin/sh
# caffeup from a checkout: sets up its own Python environment once, then runs.
#
#   ./caffeup.sh up [SOURCE] …     everything: from a bare machine to a Caffe that works
#   ./caffeup.sh test [--real]     the project's own checks; --real builds a real Caffe too
#
# Needs nothing but sh: where Python or its venv module is missing it says what it would install and asks
# (--yes answers for you). CAFFEUP_PYTHON names the Python to run on; it is never the one pycaffe is built for.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
yes=no
for word in "$@"; do
    case $word in --yes | -y) yes=yes ;; --) break ;; esac
done

# What can be said before anything is set up: what this is, and what it takes.
about() {
    cat <<END
From a bare Linux machine to a Caffe that is built for this machine, tested, and works, whichever fork you need.

  $0 up [SOURCE]     everything; asks before it installs or downloads (--yes answers for you)
  $0 up ssd --dry-run  what it would do here; nothing is touched
  $0 test [--real]   the project's own checks
  $0 COMMAND --help  more of each command

SOURCE is a git address, a folder, an archive, or one of these names ("ssd" unless you say otherwise):
$(awk -F'"' '/^\[/ { fork = ($0 == "[[fork]]") } fork && /^id / { id = $2 } fork && /^title / { printf "  %-14s%s\n", id, $2 }' \
    "$here/src/caffeup/facts/forks.toml")
END
}
about_test() {
    cat <<END
usage: $0 test [--real]

The project's own checks, all of them also after one failed: lint, format, types, and the unit tests. Minutes.
--real   builds Caffe trees too, breaks and mends them. CAFFEUP_TREES names folders with trees (separated by colons, they
         are copied), CAFFEUP_BUILT one that was built with pycaffe; without them, or a compiler, these tests are left
         out. Up to hours.
END
}
asks_for_help() {
    for word in "$@"; do
        case $word in --help | -h) return 0 ;; --) return 1 ;; esac
    done
    return 1
}

# Nobody has to install anything, or to wait, to learn what this is.
asks_what_this_is() {
    case "${1---help} ${2-}" in "--help "* | "-h "* | "up --list") [ $# -le 2 ] ;; *) return 1 ;; esac
}

say() { printf 'caffeup: %s\n' "$*" >&2; }
fail() { say "$1"; shift; for line in "$@"; do printf '         %s\n' "$line" >&2; done; exit 8; }

# Whether this Python is new enough for caffeup.
new_enough() { "$1" -I -c 'import sys; sys.exit(sys.version_info < (3, 9))' >/dev/null 2>&1; }

# Whether this Python can make an environment (Debian packs that part separately).
can_make_environment() { "$1" -I -c 'import venv, ensurepip' >/dev/null 2>&1; }

find_python() {
    for candidate in ${CAFFEUP_PYTHON:+"$CAFFEUP_PYTHON"} python3 /usr/bin/python3 \
        python3.14 python3.13 python3.12 python3.11 python3.10 python3.9; do
        if new_enough "$candidate" && can_make_environment "$candidate"; then
            command -v "$candidate"
            return 0
        fi
    done
    return 1
}

package_command() {
    if command -v apt-get >/dev/null 2>&1; then
        echo 'apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3 python3-venv ca-certificates'
    elif command -v dnf >/dev/null 2>&1; then
        echo 'dnf install -y --setopt=install_weak_deps=False python3'
    elif command -v zypper >/dev/null 2>&1; then
        echo 'zypper --non-interactive install --no-recommends python311'
    elif command -v pacman >/dev/null 2>&1; then
        echo 'pacman -Sy --needed --noconfirm python'
    fi
}

# Consent on a terminal, or --yes; never silently, never without a way to become root.
install_python() {
    command=$(package_command)
    newer='Get one from your distribution, conda or pyenv and name it:  CAFFEUP_PYTHON=/path/to/python3 ./caffeup.sh …'
    [ -n "$command" ] || fail 'Python 3.9 or newer with venv is needed, and this system has none.' "$newer"
    if [ "$(id -u)" = 0 ]; then
        become=''
    elif command -v sudo >/dev/null 2>&1; then
        become='sudo '
    else
        fail 'Python 3.9 or newer with venv is needed. As root, run:' "$command"
    fi
    say 'Python 3.9 or newer with its venv module is needed. This installs it:'
    printf '         %ssh -c "%s"\n' "$become" "$command" >&2
    if [ "$yes" = no ]; then
        [ -t 0 ] || fail 'Not a terminal, so nothing was installed. Run that line, or give --yes.'
        printf 'Install it now? [y/N] ' >&2
        read -r answer || answer=no
        case $answer in y | Y | yes) ;; *) exit 8 ;; esac
    fi
    if [ "$yes" = yes ] && [ -n "$become" ]; then become='sudo -n '; fi
    say 'installing; this may take a minute …'
    # shellcheck disable=SC2086  # an empty or one-word prefix is meant
    said=$($become sh -c "$command" 2>&1) || fail 'That did not work:' "$(printf '%s\n' "$said" | tail -n 8)" "$newer"
}

if [ "${1-}" = test ] && asks_for_help "$@"; then about_test; exit 0; fi

python=$(find_python) || {
    if asks_what_this_is "$@" || asks_for_help "$@"; then about; exit 0; fi
    for candidate in python3 /usr/bin/python3; do
        if command -v "$candidate" >/dev/null 2>&1 && ! new_enough "$candidate"; then
            say "the system's Python is $("$candidate" -V 2>&1 | sed 's/Python //'); caffeup runs on 3.9 or newer."
            break
        fi
    done
    install_python
    python=$(find_python) || fail "This distribution's Python is older than 3.9." \
        'Get a newer one beside it, for instance:  conda create -y -n caffeup python=3.12' \
        "and name it:  CAFFEUP_PYTHON=$HOME/miniforge3/envs/caffeup/bin/python ./caffeup.sh …"
}

lock=requirements.lock
if [ "${1-}" = test ]; then lock=requirements-dev.lock; fi

home=$here
if [ ! -w "$here" ]; then
    home=${XDG_DATA_HOME:-$HOME/.local/share}/caffeup
    mkdir -p "$home"
fi
environment=$home/.caffeup-venv
wanted=$({ echo "$here"; "$python" -V; cat "$here/requirements.lock"; } 2>&1 | cksum)
wanted_dev=$({ echo "$here"; "$python" -V; cat "$here/requirements-dev.lock"; } 2>&1 | cksum)
[ "$lock" = requirements.lock ] || wanted=$wanted_dev

# Made anew where the mark is missing: then it is of another lock file, or an earlier run was cut short.
ready() {
    [ -x "$environment/bin/python" ] && [ -f "$environment/caffeup.lock-id" ] || return 1
    made=$(cat "$environment/caffeup.lock-id")
    [ "$made" = "$wanted" ] || [ "$made" = "$wanted_dev" ]
}

# pip first: an old one cannot read today's wheel names. Both come from the lock file, by hash.
make_environment() {
    say "setting up caffeup's own Python environment (once, about half a minute) …"
    rm -rf -- "$environment"
    "$python" -I -m venv "$environment" || fail "Python could not make an environment in $environment."
    awk '/^[a-z]/ { on = /^pip==/ } on' "$here/$lock" >"$environment/pip.lock"
    for list in "$environment/pip.lock" "$here/$lock"; do
        "$environment/bin/python" -I -m pip --disable-pip-version-check install --quiet --no-deps --require-hashes \
            --only-binary :all: -r "$list" || fail "pip could not install caffeup's requirements; its own message stands above." \
            'Behind a proxy or a mirror, set pip up as usual (pip config), then run this again.'
    done
    "$environment/bin/python" -I -c 'import sysconfig, pathlib, sys
pathlib.Path(sysconfig.get_path("purelib"), "caffeup.pth").write_text(sys.argv[1] + "/src\n")' "$here"
    printf '%s\n' "$wanted" >"$environment/caffeup.lock-id"
}

if ! ready; then
    if asks_what_this_is "$@"; then about; exit 0; fi
    if command -v flock >/dev/null 2>&1; then
        exec 9>"$environment.lock"
        flock 9
        ready || make_environment
        exec 9>&-
    else
        make_environment
    fi
fi

if [ "${1-}" = test ]; then
    shift
    exec "$environment/bin/python" -I "$here/tests/run.py" "$@"
fi
CAFFEUP_COMMAND=$0 exec "$environment/bin/python" -I -m caffeup "$@"
