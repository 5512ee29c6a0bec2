// SPDX-License-Identifier: Apache-2.0
#include "agent/internal/symbol_servers.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "profiler/fetching.h"

#define FILE_MS 600000 /* for a debug file */

void symbol_servers_set(struct profiler *p, const struct plan *plan)
{
	struct buf list = {0};
	int r;

	for (uint32_t i = 0; i < plan->debuginfod.n; i++)
		buf_printf(&list, "%s ", FUSEE_AT(struct fusee_str, plan->debuginfod, i)->p);
	buf_add(&list, "", 1);
	r = list.error ? list.error : fetching_set_servers(p, list.p, FILE_MS);
	if (r)
		log_warning("symbols: no debug files come from servers: %s",
			    r == -ENOENT  ? "there is no cache to keep them in"
			    : r == -EPERM ? "their folder in the cache must be fusee's user's, and "
					    "not writable by others"
					  : strerror(-r));
	buf_fini(&list);
}
