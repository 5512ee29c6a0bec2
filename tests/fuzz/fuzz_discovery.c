// SPDX-License-Identifier: Apache-2.0
// clang-format off
// sources: plugins/discovery/process/read.c plugins/discovery/process/resource.c
// sources: plugins/discovery/cgroup/container.c plugins/discovery/cgroup/mounts.c
// sources: plugins/discovery/systemd/path.c core/base/utf8.c core/base/buf.c plugins/lib/proto/read.c
// flags: -Iplugins/discovery -Wl,--wrap=open -Wl,--wrap=fopen -Wl,--wrap=readlink -Wl,--wrap=stat
// libs:
// clang-format on
// What discoveries make of the texts that processes and containers choose: environments, command
// lines, programs' paths, control groups. Each value is terminated and can be shown.
#include "files.h"

#include "base/utf8.h"
#include "cgroup/container.h"
#include "cgroup/mounts.h"
#include "process/read.h"
#include "process/resource.h"
#include "systemd/path.h"

ssize_t __wrap_readlink(const char *path, char *to, size_t cap);

static bool is_ours(const char *path)
{
	return active && (!strncmp(path, "/proc/", 6) || !strcmp(path, "/etc/passwd"));
}

/* /etc/passwd changes each time. */
int __wrap_stat(const char *path, struct stat *st)
{
	static int64_t changes;

	if (!is_ours(path))
		return __real_stat(path, st);
	*st = (struct stat){.st_mode = S_IFREG, .st_mtim.tv_nsec = ++changes % 1000000000};
	return 0;
}

ssize_t __wrap_readlink(const char *path, char *to, size_t cap)
{
	size_t n = length < cap ? length : cap;

	(void)path;
	memcpy(to, text, n);
	return (ssize_t)n;
}

static void shown(const char *value, size_t cap)
{
	if (strnlen(value, cap) == cap || !utf8_valid(value, strlen(value)))
		abort();
	for (const char *p = value; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			abort();
}

static int64_t memory(struct fusee_instance *in, uint32_t pid, const char *name, uint64_t offset,
		      void *buf, uint64_t len)
{
	uint64_t n = offset < length ? length - offset : 0;

	(void)in;
	(void)pid;
	(void)name;
	n = n < len ? n : len;
	if (n)
		memcpy(buf, text + offset, n);
	return (int64_t)n;
}

static void facts(void)
{
	static const struct facts_source from = {memory, NULL};
	static struct passwd_cache *users;
	struct facts f;
	char list[512], value[256];
	int r;

	if (!users && !(users = passwd_open()))
		abort();
	r = facts_read(&f, 777, FACTS_STATUS | FACTS_ENVIRON | FACTS_CMDLINE | FACTS_CONTEXT, users,
		       &from);
	shown(f.exe, sizeof(f.exe));
	shown(f.name, sizeof(f.name));
	shown(f.user, sizeof(f.user));
	shown(f.cmdline, sizeof(f.cmdline));
	if (r > 0)
		abort();
	facts_free(&f);
	if (!environment_get((const char *)text, length, "A", value, sizeof(value)))
		shown(value, sizeof(value));
	if (!resource_of_message(text, length, "service.name", value, sizeof(value)))
		shown(value, sizeof(value));
	if (!environment_get((const char *)text, length, "OTEL_RESOURCE_ATTRIBUTES", list,
			     sizeof(list)) &&
	    !resource_of_list(list, "service.name", value, sizeof(value)))
		shown(value, sizeof(value));
}

/* The parts of a path that are of the path. */
static void groups(const char *path)
{
	struct unit_path u;
	struct container c;
	char of_process[300], uid[POD_UID];

	if (container_of(path, &c) && (strnlen(c.id, sizeof(c.id)) == sizeof(c.id) || !c.runtime))
		abort();
	if (container_pod_uid(path, uid) && strnlen(uid, sizeof(uid)) == sizeof(uid))
		abort();
	if (unit_path_parse(path, &u)) {
		shown(u.unit, sizeof(u.unit));
		shown(u.slice, sizeof(u.slice));
		shown(u.user_unit, sizeof(u.user_unit));
		if (u.len > strlen(path) || !unit_type(u.unit) ||
		    strnlen(u.machine, sizeof(u.machine)) == sizeof(u.machine))
			abort();
	}
	if (unit_path_of_process(path, of_process, sizeof(of_process)) &&
	    strnlen(of_process, sizeof(of_process)) == sizeof(of_process))
		abort();
}

static void mounts(void)
{
	static struct tree trees[MAX_TREES];
	uint32_t n;

	mounts_find("", trees, &n);
	if (n > MAX_TREES)
		abort();
	for (uint32_t i = 0; i < n; i++)
		if (strnlen(trees[i].point, sizeof(trees[i].point)) == sizeof(trees[i].point) ||
		    strnlen(trees[i].root, sizeof(trees[i].root)) == sizeof(trees[i].root))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *path = strndup((const char *)data, size);

	if (!path)
		return 0;
	text = data;
	length = size;
	active = true;
	facts();
	groups(path);
	mounts();
	active = false;
	free(path);
	return 0;
}
