#!/usr/bin/env bash
# Runs a command that fetches something, again where it fails, since networks fail for a moment: after 5, 15 and 45
# seconds. It must be one that may be run again.
#   retry.sh WHAT COMMAND…
set -uo pipefail

what=$1
shift
for pause in 5 15 45 ''; do
	"$@"
	rc=$?
	[ $rc -ne 0 ] || exit 0
	[ -n "$pause" ] || break
	echo "Fetching $what failed (exit $rc): again in $pause s" >&2
	sleep "$pause"
done
echo "Could not fetch $what, four times: the last words above say why. Is the network there, and do proxy settings hold?" >&2
exit $rc
