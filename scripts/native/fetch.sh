#!/usr/bin/env bash
# Lays the sources that native/ builds on (crates sppark and blst, locked in native/third_party) under
# .cache/native/crates/{sppark,blst}. cargo fetches and verifies them; nothing is fetched when they are there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

manifest=native/third_party/Cargo.toml
into=.cache/native/crates
stamp=$into/$(cat $manifest native/third_party/Cargo.lock | sha256sum | cut -c1-16)
[ ! -e "$stamp" ] || exit 0

command -v cargo >/dev/null || { echo "cargo not found: apt-get install -y $(scripts/missing.sh native)" >&2; exit 1; }
target=x86_64-unknown-linux-gnu
# cargo keeps what it fetches in the user's home, if there is one that it may write to.
home=${CARGO_HOME:-${HOME:-/nowhere}/.cargo}
[ -w "$home" ] || { [ ! -e "$home" ] && [ -w "$(dirname "$home")" ]; } || export CARGO_HOME=$PWD/.cache/cargo
scripts/retry.sh "the crates of native/third_party" cargo fetch --quiet --locked --target $target --manifest-path $manifest
paths=$(cargo metadata --format-version 1 --locked --offline --filter-platform $target --manifest-path $manifest |
	grep -o '"manifest_path":"[^"]*"' | cut -d'"' -f4)
rm -rf $into
mkdir -p $into
for crate in sppark blst; do
	found=$(grep -E "/$crate-[0-9][^/]*/Cargo.toml$" <<<"$paths")
	cp -R "$(dirname "$found")" "$into/$crate"
	basename "$(dirname "$found")" | sed "s/^$crate-//" >"$into/$crate/VERSION"
done
touch "$stamp"
