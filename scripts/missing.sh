#!/usr/bin/env bash
# Prints the Debian or Ubuntu packages that are missing for a purpose, on one line; nothing when all is there.
#   missing.sh build   what `make build` and `make demo` need
#   missing.sh native  what `make native` and `make native-cpu` need: compilers, CMake, cargo, Python with venv
#   missing.sh test    what `make test` needs: all of that; the race detector wants the C compiler, too
set -u

missing=()
has() { command -v "$1" >/dev/null 2>&1; }

# cargo of Debian 12 is too old for today's registry; the same release has a newer one beside it.
cargo_package() {
	case $(. /etc/os-release 2>/dev/null && echo "${ID:-}${VERSION_ID:-}") in
	debian12) echo cargo-web ;;
	*) echo cargo ;;
	esac
}
cargo_usable() {
	local version
	version=$(cargo --version 2>/dev/null | sed -n 's/^cargo \([0-9.]*\).*/\1/p')
	[ -n "$version" ] && [ "$(printf '%s\n' 1.85 "$version" | sort -V | head -n 1)" = 1.85 ]
}

purpose=${1:-build}
if [ "$purpose" != native ]; then
	has go || [ -x /usr/local/go/bin/go ] || missing+=(golang-go)
fi
[ -e /etc/ssl/certs/ca-certificates.crt ] || [ -e /etc/pki/tls/certs/ca-bundle.crt ] || missing+=(ca-certificates)
if [ "$purpose" != build ]; then
	has gcc || missing+=(gcc)
	has g++ || missing+=(g++)
	[ -e /usr/include/stdio.h ] || missing+=(libc6-dev)
	has cmake || missing+=(cmake)
	has make || missing+=(make)
	cargo_usable || missing+=("$(cargo_package)")
	# Debian ships Python without ensurepip, which venv needs, unless python3-venv is there.
	"${PYTHON:-python3}" -c 'import ensurepip, venv' >/dev/null 2>&1 || missing+=(python3-venv)
fi
echo "${missing[*]}"
