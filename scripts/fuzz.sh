#!/usr/bin/env bash
# Runs every fuzz target of the module, one after another, for a bounded count: fuzz.sh [COUNT, default 2000x].
# Targets are found, not listed: a new FuzzXxx runs from its first commit on. A failure leaves its input under
# testdata/fuzz of its package, where plain `go test` repeats it. Minimising is bounded: by default it takes 60 s for each input
# that reaches new code by chance.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

count=${1:-2000x}
go=scripts/go.sh
ran=0

# Not asked of git, which refuses the tree of another user.
for package in $(find . \( -path './.*' -o -path ./bin \) -prune -o -name '*_test.go' -print0 | xargs -0 grep -l '^func Fuzz' |
	xargs -rn1 dirname | sort -u); do
	targets=$(grep -ho '^func Fuzz[A-Za-z0-9_]*' "$package"/*_test.go | sed 's/^func //' | sort -u)
	for target in $targets; do
		echo "fuzz $package $target $count"
		"$go" test -run '^$' -fuzz "^$target\$" -fuzztime "$count" -fuzzminimizetime 10x "$package" | grep -v '^fuzz: elapsed' || exit 1
		ran=$((ran + 1))
	done
done
echo "$ran fuzz targets, $count each"
[ "$ran" -gt 0 ]
