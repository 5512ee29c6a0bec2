# SPDX-License-Identifier: Apache-2.0
# For tests that need a Go that is newer than Debian 12's. To be sourced after tap.sh, with build= set.
#   new_go      go becomes the path of a Go >= 1.24: of this machine, or a toolchain from the Go module
#               proxy, which Debian's Go fetches into the build folder once; empty: there is none
toolchain=golang.org/toolchain@v0.0.1-go1.24.10.linux-amd64
toolchain_sum=h1:t7US/kj2nvdPN3Xhzi55/tMThO0GRmyR9GhmFle1gk4=
is_new_go() { # GO
	[ -x "$1" ] && GOTOOLCHAIN=local "$1" version 2>/dev/null | grep -Eq 'go1\.(2[4-9]|[3-9][0-9])'
}
fetched_go() {
	for old in $(command -v go) /usr/lib/go-*/bin/go; do
		[ -x "$old" ] || continue
		# one at a time: tests run beside each other
		GOFLAGS='' GONOSUMDB=golang.org/toolchain GOMODCACHE=$(realpath "$build")/go \
			flock "$build" "$old" mod download -json "$toolchain" 2>/dev/null >"$tmp/toolchain" &&
			grep -qF "\"$toolchain_sum\"" "$tmp/toolchain" || continue
		dir=$(sed -n 's/^.*"Dir": "\(.*\)".*$/\1/p' "$tmp/toolchain")
		# a module's files are not executable
		chmod a+x "$dir"/bin/* "$dir"/pkg/tool/*/* && echo "$dir/bin/go"
		return
	done
}
new_go() {
	for go in /usr/local/go/bin/go $(command -v go); do
		is_new_go "$go" && return
	done
	go=
	[ "$(uname -m)" != x86_64 ] || go=$(fetched_go)
	is_new_go "$go" || go=
}
