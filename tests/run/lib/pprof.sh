#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# pprof.sh FILE...: passes profiles through every view of each `go tool pprof` that is installed, without symbols
# being looked up. 0: all read; 1: one failed, what it said is on stderr; 77: no Go here.
lib=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/fusee-pprof.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
export GOTOOLCHAIN=local PPROF_TMPDIR="$work"

gos=
for go in /usr/local/go/bin/go /usr/lib/go-*/bin/go "$(command -v go)"; do
	[ -x "$go" ] || continue
	go=$(readlink -f "$go")
	case " $gos " in
	*" $go "*) ;;
	*) gos="$gos $go" ;;
	esac
done
[ -n "$gos" ] || exit 77

fail() {
	echo "pprof.sh: $go: $1" >&2
	sed 's/^/    /' "$work/err" >&2
	exit 1
}
view() {
	out=$1
	shift
	# shellcheck disable=SC2086 # may be three words
	$pprof -symbolize=none "$@" >"$work/$out" 2>"$work/err" || fail "$*"
}
# A raw profile without its ids, which a round trip may give anew, and the order of the samples.
samples() {
	sed -n '/^Samples:/,/^Locations/p' "$1" | sed 's/:.*//' | sort
}

for go in $gos; do
	# newer Gos make the tool when it is first asked for, and look on each call whether it is still up to date
	"$go" tool pprof -h >/dev/null 2>&1
	pprof=$("$go" tool -n pprof 2>/dev/null)
	[ -x "$pprof" ] || pprof="$go tool pprof"
	for file; do
		view raw -raw "$file"
		samples "$work/raw" >"$work/a"
		for how in -top -tree -traces -tags -comments -text -dot; do
			view out $how "$file"
		done
		view out -top -cum "$file"
		if grep -q '^ *-*[0-9]' "$work/a"; then
			view out -peek=. "$file"
		fi
		view out -top -diff_base="$file" "$file"
		awk '$1 == "flat" { rows = 1; next } rows { exit 1 }' "$work/out" ||
			fail "$file: something is left of it less itself"
		view proto.pb.gz -proto -output="$work/proto.pb.gz" "$file"
		view raw2 -raw "$work/proto.pb.gz"
		samples "$work/raw2" >"$work/b"
		cmp "$work/a" "$work/b" >"$work/err" 2>&1 || fail "$file: other values after -proto"
		python3 "$lib/pprof_http.py" "$go" "$file" >"$work/err" 2>&1 || fail "-http $file"
	done
done
