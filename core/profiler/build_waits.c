/* SPDX-License-Identifier: Apache-2.0 */
#include "profiler/internal/build_waits.h"

#include <stdbool.h>
#include <string.h>

#include "../../bpf/records.h"
#include "symbolizer/symbolizer.h"

#define MOST_FRAMES 24u /* of an interrupt: of its entry, of the tracepoint and of the program */

static const char *const states[WAIT_STATES] = {
	[WAIT_UNKNOWN] = "unknown",
	[WAIT_SLEEPING] = "sleeping",
	[WAIT_UNINTERRUPTIBLE] = "uninterruptible",
	[WAIT_RUNNABLE] = "runnable",
	[WAIT_STOPPED] = "stopped",
};

const char *build_wait_state(uint32_t wait)
{
	return wait && wait <= WAIT_STATES ? states[wait - 1] : "";
}

/* The kernel's functions that switch threads; the interrupt came where the first of them ends. What
 * waits is their caller. */
static bool is_switch(const char *name)
{
	return name && (!strcmp(name, "__schedule") || !strncmp(name, "__schedule.", 11) ||
			!strcmp(name, "schedule"));
}

uint32_t build_wait_begin(struct kernel_names *names, const struct collector *c,
			  const struct dict_entry *stack)
{
	const uint32_t *ids = stack->key;
	uint32_t n = stack->len / sizeof(*ids), begin = 0;
	const char *module;

	for (uint32_t i = 0; i + 1 < n && i < MOST_FRAMES; i++) {
		struct walk_frame f = frame_set_at(&c->frames, ids[i]);

		if (f.kind != FRAME_KERNEL)
			break;
		if (is_switch(kernel_names_at(names, f.addr, &module)))
			begin = i + 1;
		else if (begin)
			break;
	}
	return begin;
}
