/* SPDX-License-Identifier: Apache-2.0 */
#include "process/internal/kept.h"

#include <stdlib.h>
#include <string.h>

#include "process/procfs.h"

static _Thread_local struct kept kept;

void procfs_keep(pid_t pid)
{
	free(kept.exe);
	kept = (struct kept){.pid = pid};
}

struct kept *kept_of(pid_t pid)
{
	return pid && kept.pid == pid ? &kept : NULL;
}

void kept_take_exe(struct kept *k, const char *exe, size_t len)
{
	free(k->exe);
	k->exe = malloc(len + 1);
	if (!k->exe)
		return;
	memcpy(k->exe, exe, len);
	k->exe[len] = '\0';
	k->exe_len = len;
}
