# SPDX-License-Identifier: Apache-2.0
# For tests/run scripts in sh: a Debian 12 root of its base packages alone, with this tree in /srv/fusee.
#   need_bare_root WHAT     skips WHAT with its reason and ends the script where no root can be made
#   make_bare_root DIR      debootstrap with this machine's package sources, and the tree without its build
#   http_proxy              exported where apt uses a proxy
need_bare_root() {
	why=
	if [ "$(id -u)" != 0 ]; then
		why="needs root"
	elif ! command -v debootstrap >/dev/null; then
		why="debootstrap is not installed"
	elif ! unshare -m true 2>/dev/null; then
		why="mount namespaces are not allowed here"
	elif ! python3 "$here/lib/perf_open" 2>/dev/null; then
		why="perf_event_open is refused here"
	fi
	[ -z "$why" ] || {
		skip "$1" "$why"
		finish
	}
	proxy=${http_proxy:-}
	eval "$(apt-config shell proxy Acquire::http::Proxy)"
	[ -z "$proxy" ] || export http_proxy="$proxy"
}
make_bare_root() {
	# "site suite components", one a line
	sources=$(apt-get indextargets --format '$(SITE) $(RELEASE) $(COMPONENT)' \
		'Created-By: Packages' 'Origin: Debian' 2>/dev/null | grep ' bookworm' | sort -u)
	mirror=$(echo "$sources" | awk '$2 == "bookworm" { print $1; exit }')
	debootstrap --variant=minbase bookworm "$1" "${mirror:-http://deb.debian.org/debian}" &&
		cp /etc/resolv.conf "$1/etc" &&
		{ [ -z "$sources" ] || echo "$sources" | sed 's/^/deb /' >"$1/etc/apt/sources.list"; } &&
		for conf in $(grep -l '^Acquire' /etc/apt/apt.conf /etc/apt/apt.conf.d/* 2>/dev/null); do
			cp "$conf" "$1/etc/apt/apt.conf.d" || return
		done
	# a clone, and in it the tree as it is
	git -c safe.directory='*' clone -q "$here/../.." "$1/srv/fusee" &&
		(cd "$here/../.." && git -c safe.directory='*' ls-files -z -c -o --exclude-standard |
			tar -c --null --ignore-failed-read -T - 2>/dev/null) | tar -x -C "$1/srv/fusee"
}
