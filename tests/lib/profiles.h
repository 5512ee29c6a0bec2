/* SPDX-License-Identifier: Apache-2.0 */
/* How tests of profiles begin and end one. */
#ifndef LIB_PROFILES_H
#define LIB_PROFILES_H

#include "lib/str.h"
#include "profile/builder.h"
#include "test.h"

/* Of samples and CPU time, in this order. */
static inline struct builder *new_builder(void)
{
	struct builder *b;

	CHECK_INT(builder_new(&b), 0);
	builder_type(b, "samples", "count");
	builder_type(b, "cpu", "nanoseconds");
	return b;
}

static inline const struct fusee_profile *finished(struct builder *b)
{
	const struct fusee_profile *p;

	CHECK_INT(builder_finish(b, &p), 0);
	return p;
}
#endif
