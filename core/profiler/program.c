// SPDX-License-Identifier: Apache-2.0
/* What the inspection of a process's program has found. */
#include <stdio.h>

#include "files/files.h"
#include "inspection/inspection.h"
#include "profiler/profiler.h"

bool profiler_program(const struct profiler *p, pid_t pid, char build_id[129], char compiler[256])
{
	const struct file *f = pipeline_program(p->pipeline, pid);
	const struct inspection *i = f ? f->inspection : NULL;

	if (!f || (!i && (f->state == FILE_PENDING || f->again || f->retry_ns)))
		return false;
	for (uint32_t k = 0; i && k < i->build_id_len; k++)
		snprintf(build_id + 2 * k, 3, "%02x", i->build_id[k]);
	if (i)
		snprintf(compiler, 256, "%s", i->compiler);
	return true;
}
