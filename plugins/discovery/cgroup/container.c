/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forms of paths, from the source or documentation of each runtime: Docker and runc's cgroupfs and
 * systemd drivers, BuildKit, containerd's CRI plugin, CRI-O, Podman's libpod, Kata, Kubernetes'
 * kubepods, Amazon ECS, garden, Mesos, systemd-nspawn(1) and systemd-machined,
 * lxc.container.conf(5). tests/data/cgroups.txt has real paths.
 */
#include "container.h"

#include <ctype.h>
#include <string.h>

#include <fusee/helpers.h>

#define ID_LEN 64
#define BUILD_ID_LEN 25 /* of BuildKit's: a number of 128 bits with base 36 */

static bool is_id(const char *p, size_t len)
{
	if (len != ID_LEN)
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isdigit((unsigned char)p[i]) && !(p[i] >= 'a' && p[i] <= 'f'))
			return false;
	return true;
}

static bool is_build_id(struct fusee_str w)
{
	for (size_t i = 0; i < w.len; i++)
		if (!isdigit((unsigned char)w.p[i]) && !(w.p[i] >= 'a' && w.p[i] <= 'z'))
			return false;
	return w.len == BUILD_ID_LEN;
}

/* Whether it is hexadecimal digits with a dash after 8, 12, 16 and 20 of them. */
static bool is_uuid(struct fusee_str w)
{
	static const size_t dashes[] = {8, 13, 18, 23};

	for (size_t i = 0, dash = 0; i < w.len; i++)
		if (dash < 4 && i == dashes[dash]) {
			if (w.p[i] != '-')
				return false;
			dash++;
		} else if (!isxdigit((unsigned char)w.p[i])) {
			return false;
		}
	return w.len == 36;
}

/* Cloud Foundry truncates a UUID to 28 characters. */
static bool is_garden_id(struct fusee_str w)
{
	char uuid[36];

	if (w.len != 28)
		return is_uuid(w);
	memset(uuid, '0', sizeof(uuid));
	memcpy(uuid, w.p, w.len);
	return is_uuid((struct fusee_str){uuid, sizeof(uuid)});
}

/* "TASK-NUMBER" of Fargate: 32 hexadecimal digits and a decimal number. */
static bool is_fargate_id(struct fusee_str w)
{
	if (w.len < 34 || w.p[32] != '-')
		return false;
	for (size_t i = 0; i < w.len; i++)
		if (i != 32 &&
		    !(i < 32 ? isxdigit((unsigned char)w.p[i]) : isdigit((unsigned char)w.p[i])))
			return false;
	return true;
}

static bool begins(struct fusee_str w, const char *prefix)
{
	size_t n = strlen(prefix);

	return w.len > n && !memcmp(w.p, prefix, n);
}

static bool ends(struct fusee_str w, const char *suffix)
{
	size_t n = strlen(suffix);

	return w.len > n && !memcmp(w.p + w.len - n, suffix, n);
}

static bool found(struct container *c, const char *id, size_t len, const char *runtime)
{
	if (len >= sizeof(c->id))
		return false;
	memcpy(c->id, id, len);
	c->id[len] = '\0';
	c->runtime = runtime;
	return true;
}

/* systemd's escapes in unit names: "\x2d". */
static bool found_escaped(struct container *c, const char *name, size_t len, const char *runtime)
{
	fusee_unescape(c->id, sizeof(c->id), (struct fusee_str){name, len}, "\\x");
	c->runtime = runtime;
	return *c->id; /* "\\x00" ends it */
}

/* "docker-ID.scope" and its like; also without ".scope" (cgroupfs). */
static bool by_prefix(struct container *c, struct fusee_str w)
{
	static const struct {
		const char *prefix, *runtime;
	} forms[] = {
		{"docker-", "docker"},      {"cri-containerd-", "containerd"},
		{"crio-", "cri-o"},         {"libpod-", "podman"},
		{"nerdctl-", "containerd"}, {"libpod-payload-", "podman"},
		{"buildkit-", "buildkit"},  {"kata_", "kata"},
	};

	if (ends(w, ".scope"))
		w.len -= 6;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		size_t n = strlen(forms[i].prefix);

		if (begins(w, forms[i].prefix) && is_id(w.p + n, w.len - n))
			return found(c, w.p + n, w.len - n, forms[i].runtime);
	}
	return false;
}

/* "system.slice:docker:ID": runc's systemd form without a systemd manager. dockerd's own BuildKit
 * has it too, with IDs of its own. */
static bool by_colons(struct container *c, struct fusee_str w)
{
	const char *last = memrchr(w.p, ':', w.len), *before;
	struct fusee_str id;

	if (!last)
		return false;
	id = (struct fusee_str){last + 1, (size_t)(w.p + w.len - last - 1)};
	before = memrchr(w.p, ':', (size_t)(last - w.p));
	before = before ? before + 1 : w.p;
	w.len = (size_t)(last - before);
	w.p = before;
	if (is_build_id(id) && fusee_text_is(w, "docker"))
		return found(c, id.p, id.len, "buildkit");
	return is_id(id.p, id.len) && found(c, id.p, id.len,
					    fusee_text_is(w, "docker")           ? "docker"
					    : fusee_text_is(w, "cri-containerd") ? "containerd"
					    : fusee_text_is(w, "crio")           ? "cri-o"
					    : fusee_text_is(w, "libpod")         ? "podman"
										 : "");
}

/* Recognizes IDs of other forms by the parent or grandparent in the path: "/ecs/TASK/ID",
 * "/garden/good/ID". */
static bool by_place(struct container *c, const struct fusee_str *words, int at)
{
	static const struct {
		const char *parent, *runtime;
		bool (*is_id)(struct fusee_str);
	} forms[] = {
		{"buildkit", "buildkit", is_build_id},
		{"mesos", "mesos", is_uuid},
		{"garden", "garden", is_garden_id},
		{"ecs", "", is_fargate_id},
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		bool below = (at > 0 && fusee_text_is(words[at - 1], forms[i].parent)) ||
			     (at > 1 && fusee_text_is(words[at - 2], forms[i].parent));

		if (below && forms[i].is_id(words[at]))
			return found(c, words[at].p, words[at].len, forms[i].runtime);
	}
	return false;
}

/* The components above a plain ID tell its runtime. */
static bool by_parents(struct container *c, const struct fusee_str *words, int at)
{
	const char *runtime = "";

	if (!is_id(words[at].p, words[at].len))
		return false;
	for (int i = at - 1; i >= 0 && !*runtime; i--) {
		if (fusee_text_is(words[i], "docker") || fusee_text_is(words[i], "ecs") ||
		    fusee_text_is(words[i], "actions_job") || fusee_text_is(words[i], "azpl_job"))
			runtime = "docker";
		else if (fusee_text_is(words[i], "k8s.io") || fusee_text_is(words[i], "containerd"))
			runtime = "containerd";
		else if (begins(words[i], "libpod"))
			runtime = "podman";
		else if (fusee_text_is(words[i], "buildkit"))
			runtime = "buildkit";
		else if (fusee_text_is(words[i], "kata_overhead"))
			runtime = "kata";
		else if (is_id(words[i].p, words[i].len))
			break; /* a part of that container */
	}
	return found(c, words[at].p, words[at].len, runtime);
}

/* Machines have names. systemd-nspawn itself, in "supervisor", is not in the machine. */
static bool by_name(struct container *c, const struct fusee_str *words, int at)
{
	struct fusee_str w = words[at];

	if (fusee_text_is(words[at + 1], "supervisor"))
		return false;
	if (begins(w, "systemd-nspawn@") && ends(w, ".service"))
		return found_escaped(c, w.p + 15, w.len - 15 - 8, "systemd-nspawn");
	if (begins(w, "machine-") && ends(w, ".scope")) {
		struct fusee_str name = {w.p + 8, w.len - 8 - 6};

		return found_escaped(c, name.p, name.len,
				     begins(name, "qemu\\x2d")  ? "libvirt-qemu"
				     : begins(name, "lxc\\x2d") ? "libvirt-lxc"
								: "systemd-nspawn");
	}
	if (begins(w, "lxc.payload."))
		return found(c, w.p + 12, w.len - 12, "lxc");
	if (at &&
	    (fusee_text_is(words[at - 1], "lxc") || fusee_text_is(words[at - 1], "lxc.payload")))
		return found(c, w.p, w.len, "lxc");
	return false;
}

#define MAX_WORDS 128

bool container_of(const char *path, struct container *c)
{
	struct fusee_str words[MAX_WORDS + 1] = {0}; /* and an empty word at the end */
	int n = 0;

	while (*path && n < MAX_WORDS) {
		size_t len = strcspn(path, "/");

		if (len)
			words[n++] = (struct fusee_str){path, len};
		path += len + (path[len] == '/');
	}
	for (int i = n - 1; i >= 0; i--)
		if (by_prefix(c, words[i]) || by_colons(c, words[i]) || by_parents(c, words, i) ||
		    by_place(c, words, i) || by_name(c, words, i))
			return true;
	return false;
}

/* ---- pods ---- */

/* Whether it is a UID: a UUID, or the 32 hexadecimal digits that the kubelet assigns to static
 * pods. In a slice's name '_' replaces '-', except with kubelets of 2017. */
static bool is_uid(const char *p, size_t len, bool slice)
{
	if (len != POD_UID - 1 && len != 32)
		return false;
	for (size_t i = 0; i < len; i++) {
		bool at_dash = len == POD_UID - 1 && (i == 8 || i == 13 || i == 18 || i == 23);

		if (at_dash ? p[i] != '-' && !(slice && p[i] == '_')
			    : !isxdigit((unsigned char)p[i]))
			return false;
	}
	return true;
}

/* "podUID" of the driver cgroupfs, "kubepods-burstable-podUID.slice" of systemd. */
static bool uid_of_word(struct fusee_str w, char uid[POD_UID])
{
	static const char pod[] = "pod";
	const char *colon = memchr(w.p, ':', w.len), *at = w.p; /* "SLICE:cri-containerd:ID" */
	bool slice;

	w.len = colon ? (size_t)(colon - w.p) : w.len;
	slice = ends(w, ".slice");
	if (slice) {
		w.len -= 6;
		for (const char *p = w.p; p + 4 < w.p + w.len; p++)
			if (!memcmp(p, "-pod", 4))
				at = p + 1;
	}
	w.len -= (size_t)(at - w.p);
	w.p = at;
	if (!begins(w, pod) || !is_uid(w.p + 3, w.len - 3, slice))
		return false;
	for (size_t i = 0; i < w.len - 3; i++)
		uid[i] = w.p[3 + i] == '_' ? '-' : w.p[3 + i];
	uid[w.len - 3] = '\0';
	return true;
}

bool container_pod_uid(const char *path, char uid[POD_UID])
{
	bool found_uid = false;

	if (!strstr(path, "kubepods"))
		return false;
	while (*path) {
		size_t len = strcspn(path, "/");

		found_uid |= uid_of_word((struct fusee_str){path, len}, uid);
		path += len + (path[len] == '/');
	}
	return found_uid;
}
