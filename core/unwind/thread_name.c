/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/thread_name.h"

#include <string.h>

#include <fusee/unwinder.bpf.h>

static bool is_thread(const struct walk_frame *f)
{
	return f->kind == FRAME_PUSHED && f->flags & FUSEE_PUSH_THREAD;
}

struct named {
	struct fusee_frame_out out; /* first */
	char *name;
	bool set;
};

/* Copies the name, or as many complete characters of UTF-8 as there is room for. */
static int take(struct fusee_frame_out *out, const struct fusee_source_frame *f)
{
	struct named *to = (struct named *)out;
	uint64_t n = f->function.len;

	if (to->set || !n)
		return 0;
	if (n > THREAD_NAME_BYTES - 1)
		for (n = THREAD_NAME_BYTES - 1; n && (f->function.p[n] & 0xc0) == 0x80;)
			n--;
	memcpy(to->name, f->function.p, n);
	to->name[n] = '\0';
	to->set = true;
	return 0;
}

/* Asks the unwinder that has pushed the frame for the name. */
static void find_name(struct claims *c, const struct walk_frame *f, struct named *to)
{
	struct fusee_raw_frame raw = {.v = {f->addr, f->extra[0], f->extra[1], f->extra[2]},
				      .flags = f->flags};
	const char *type;

	if (c)
		claims_symbolize_pushed(c, f->process, f->generation, &raw, &to->out, &type);
}

bool thread_name_take(struct walk *w, struct claims *c, char name[THREAD_NAME_BYTES])
{
	struct named to = {.out = {take}, .name = name};
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->n; i++) {
		if (!is_thread(&w->frames[i])) {
			if (n < i)
				w->frames[n] = w->frames[i];
			n++;
		} else if (!to.set) {
			find_name(c, &w->frames[i], &to);
		}
	}
	w->n = n;
	return to.set;
}
