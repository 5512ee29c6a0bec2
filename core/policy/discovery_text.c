// SPDX-License-Identifier: Apache-2.0
#include "policy/internal/discovery_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "process/procfs.h"

enum { ID_BYTES = 32 /* two numbers */ };

/* Reads files of /proc that the process cannot make block. */
static int64_t read_promptly(pid_t pid, const char *name, char *buf, uint64_t len)
{
	char path[64];
	int r;

	if (!len)
		return -EINVAL;
	if (!strcmp(name, "exe"))
		return procfs_exe(pid, buf, len);
	snprintf(path, sizeof(path), "/proc/%d/%s", (int)procfs_living_thread(pid), name);
	r = procfs_read_small(path, buf, len);
	return r ? r : (int64_t)strlen(buf);
}

static int64_t read_id(pid_t pid, char *buf, uint64_t len)
{
	uint64_t identity;
	uid_t user;
	int r = procfs_identity_and_user(pid, &identity, &user);

	return r ? r : snprintf(buf, len, "%" PRIu64 " %u", identity, user);
}

int64_t discovery_text(struct opener *o, pid_t pid, const char *name, uint64_t offset, void *buf,
		       uint64_t len)
{
	struct opener_query q = {.kind = OPENER_TEXT,
				 .pid = pid,
				 .path = name,
				 .address = offset,
				 .buf = buf,
				 .len = len < OPENER_MAX_BYTES ? (uint32_t)len : OPENER_MAX_BYTES};
	struct opener_answer a;

	if (!offset && (!strcmp(name, "exe") || !strcmp(name, "cgroup")))
		return read_promptly(pid, name, buf, len);
	if (!offset && !strcmp(name, "id") && len >= ID_BYTES)
		return read_id(pid, buf, len);
	if (!strcmp(name, "otel_context") && !offset)
		q.kind = OPENER_CONTEXT;
	else if (strcmp(name, "cmdline") != 0 && strcmp(name, "environ") != 0 &&
		 strcmp(name, "stat") != 0)
		return -EINVAL;
	return opener_call(o, &q, &a) ? a.err : (int64_t)a.len;
}
