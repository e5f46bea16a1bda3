#!/usr/bin/env bash
# Prints the Debian or Ubuntu packages that are missing for a purpose, on one line; nothing when all is there.
#   missing.sh build   what `make build` and `make demo` need
#   missing.sh test    what `make test` needs on top: a C compiler for the race detector, Python with venv
set -u

missing=()
has() { command -v "$1" >/dev/null 2>&1; }

has go || [ -x /usr/local/go/bin/go ] || missing+=(golang-go)
[ -e /etc/ssl/certs/ca-certificates.crt ] || [ -e /etc/pki/tls/certs/ca-bundle.crt ] || missing+=(ca-certificates)
if [ "${1:-build}" = test ]; then
	has gcc || missing+=(gcc)
	[ -e /usr/include/stdio.h ] || missing+=(libc6-dev)
	# Debian ships Python without ensurepip, which venv needs, unless python3-venv is there.
	"${PYTHON:-python3}" -c 'import ensurepip, venv' >/dev/null 2>&1 || missing+=(python3-venv)
fi
echo "${missing[*]}"
