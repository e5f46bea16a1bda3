#!/usr/bin/env bash
# Runs the Go that go.mod asks for, with the arguments given, keeping all it fetches under .cache/.
#
# The system's own Go may be older: Debian 12 has 1.19, Ubuntu 24.04 has 1.22.
#   new enough      it runs as it is;
#   1.21 or later   it fetches the toolchain of go.mod by itself (GOTOOLCHAIN=auto);
#   older           it knows nothing of toolchains, but can fetch modules, and a toolchain is one: golang.org/toolchain.
# Each way the checksum database vouches for what was fetched. GOMODCACHE and GOCACHE of the environment win.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export GOMODCACHE=${GOMODCACHE:-$root/.cache/go/mod}
export GOCACHE=${GOCACHE:-$root/.cache/go/build}
# Go keeps what it knows of the checksum database under GOPATH: HOME may be unset, or not to be written to.
export GOPATH=${GOPATH:-$root/.cache/go}

say() { echo "$*" >&2; }
at_least() { [ "$(printf '%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; } # at_least HAVE WANT

go=$(command -v go || true)
[ -n "$go" ] || [ ! -x /usr/local/go/bin/go ] || go=/usr/local/go/bin/go
[ -n "$go" ] || { say "go not found: apt-get install -y $("$root/scripts/missing.sh" build)"; exit 1; }

want=$(awk '$1 == "go" { print $2; exit }' "$root/go.mod")
# From / so that an old Go does not read go.mod, and a new one does not switch toolchains to answer.
have=$(cd / && GOTOOLCHAIN=local GOFLAGS='' "$go" env GOVERSION | sed 's/^go//; s/[ -].*//')

if at_least "$have" "$want"; then
	exec "$go" "$@"
fi

case $(uname -m) in
x86_64) arch=amd64 ;;
aarch64 | arm64) arch=arm64 ;;
*) say "no Go $want toolchain for $(uname -m): install Go $want from https://go.dev/dl/"; exit 1 ;;
esac
module=golang.org/toolchain@v0.0.1-go$want.linux-$arch
sdk=$GOMODCACHE/$module
[ -x "$sdk/bin/go" ] || say "Go $have is older than $want: fetching that toolchain into $GOMODCACHE (once, about 70 MB)"

if at_least "$have" 1.21; then
	export GOTOOLCHAIN=auto
	exec "$go" "$@"
fi

if [ ! -x "$sdk/bin/go" ]; then
	scratch=$(mktemp -d)
	trap 'rm -rf "$scratch"' EXIT
	printf 'module scratch\n' >"$scratch/go.mod"
	(cd "$scratch" && GOFLAGS=-mod=mod "$root/scripts/retry.sh" "Go $want" "$go" mod download "$module")
	# A module's zip carries no permissions; bin/go goes last, as it says that the rest is done.
	chmod +x "$sdk"/pkg/tool/*/* "$sdk/bin/gofmt"
	chmod +x "$sdk/bin/go"
fi
unset GOROOT
export GOTOOLCHAIN=local
exec "$sdk/bin/go" "$@"
