/* SPDX-License-Identifier: Apache-2.0 */
#include "internal.h"

static void fill(struct fusee_rows *r, const struct fusee_location *l,
		 const struct fusee_line *line, bool last, struct fusee_rows_frame *to)
{
	static const struct fusee_line none;
	const struct fusee_profile *p = r->p;
	const struct fusee_line *at = line ? line : &none;
	const struct fusee_function *f = FUSEE_AT(struct fusee_function, p->functions,
						  at->function);
	const struct fusee_mapping *m = FUSEE_AT(struct fusee_mapping, p->mappings, l->mapping);

	*to = (struct fusee_rows_frame){
		.function = rows_bounded(r, profile_text(p, f->name)),
		.file = rows_bounded(r, profile_text(p, f->file)),
		.mapping = rows_bounded(r, profile_text(p, m->path)),
		.build_id = rows_bounded(r, profile_text(p, m->build_id)),
		.type = rows_bounded(r, profile_text(p, l->frame_type)),
		.language = rows_bounded(r, profile_text(p, l->language)),
		.line = at->line,
		.address = (int64_t)l->address,
		.start_line = f->start_line,
		.inlined = !last, /* as in pprof, all but a location's last */
		.flags = (l->flags & 0xff) | (f->flags & 0xff) << 8 | (m->flags & 0xff) << 16,
	};
}

int rows_frames(struct fusee_rows *r, const struct fusee_stack *s, struct fusee_table *frames)
{
	uint64_t n = 0;
	int err = 0;

	for (uint32_t k = 0; !err && k < s->n; k++) {
		const struct fusee_location *l = FUSEE_AT(
			struct fusee_location, r->p->locations,
			*FUSEE_AT(uint32_t, r->p->stack_locations, s->first + k));
		uint32_t more = l->nlines ? l->nlines : 1;

		if (n + more > r->o.max_frames) {
			r->shortened.frames++;
			break;
		}
		if (!fusee_grow(&r->frames, &r->cap, n + more, sizeof(*r->frames)))
			err = -ENOMEM;
		for (uint32_t i = 0; !err && i < more; i++)
			fill(r, l,
			     l->nlines ? FUSEE_AT(struct fusee_line, r->p->lines, l->first_line + i)
				       : NULL,
			     i + 1 == more, &r->frames[n++]);
	}
	*frames = (struct fusee_table){r->frames, (uint32_t)n, sizeof(*r->frames)};
	return err;
}
