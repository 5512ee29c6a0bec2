/* SPDX-License-Identifier: Apache-2.0 */
/* A profile as text and pages: what `fusee report` prints. All functions append to a buf. */
#ifndef PROFILE_RENDER_H
#define PROFILE_RENDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include <fusee/profile.h>

struct render_options {
	const char *focus, *ignore,
		*hide;    /* extended regular expressions on function names; NULL: none */
	const char *type; /* value type, NULL: the profile's default */
	uint32_t rows;    /* top: 0 all */
	uint32_t width;   /* columns of the terminal, 0: no limit */
	bool cumulative;  /* top: sort by cum */
	bool color;
	const char *title; /* pages */
};

/* Common: 0 or -errno; on -EINVAL `out->p` holds one sentence (a bad regular expression). base may
 * be NULL: no diff. */
int render_top(const struct fusee_profile *, const struct fusee_profile *base,
	       const struct render_options *, struct buf *out);
int render_tree(const struct fusee_profile *, const struct render_options *, struct buf *out);
int render_peek(const struct fusee_profile *, const char *regex, const struct render_options *,
		struct buf *out);
int render_folded(const struct fusee_profile *, const struct render_options *, struct buf *out);
int render_speedscope(const struct fusee_profile *, const struct render_options *, struct buf *out);
int render_flamegraph(const struct fusee_profile *, const struct fusee_profile *base,
		      const struct render_options *, struct buf *out);
/* The graph of calls in Graphviz's language; the hottest 80 functions unless o->rows says another
 * number. */
int render_dot(const struct fusee_profile *, const struct fusee_profile *base,
	       const struct render_options *, struct buf *out);
int render_json(const struct fusee_profile *, const struct fusee_profile *base,
		const struct render_options *, struct buf *out);
/* The hottest functions as `fusee record` prints them: self, total, name, library. */
int render_hottest(const struct fusee_profile *, const struct render_options *, struct buf *out);
#endif
