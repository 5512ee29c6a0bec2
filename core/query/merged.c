/* SPDX-License-Identifier: Apache-2.0 */
#include "query/merged.h"

#include <errno.h>

#include "base/saturate.h"

static int begin(struct merged *m, const struct fusee_profile *p)
{
	int r = builder_new(&m->builder);

	if (!r)
		r = merge_begin(m->builder, p);
	if (!r)
		builder_profile(m->builder)->default_type = m->filter.type;
	return r;
}

static int add(struct merged *m, const struct fusee_profile *p, struct buf *error)
{
	uint32_t kept = 0;
	int r = m->builder ? 0 : begin(m, p);

	m->choice.keep = filter_takes;
	m->choice.arg = &m->filter;
	if (!r)
		r = merge_add(m->builder, p, &m->choice, &kept);
	m->windows += kept != 0;
	m->stacks += kept;
	if (!r && m->filter.error) {
		r = m->filter.error;
		buf_str(error, filter_error(&m->filter));
	} else if (!r && builder_bytes(m->builder) > m->max_bytes) {
		r = -EFBIG;
		buf_printf(error,
			   "the stacks and labels of all windows take more than %llu MiB: select "
			   "less, or keep fewer labels with --by",
			   (unsigned long long)(m->max_bytes >> 20));
	}
	return r;
}

int merged_add(struct merged *m, const struct fusee_profile *p, const char *name, struct buf *error)
{
	int r = filter_begin(&m->filter, p, name, error);

	return r <= 0 ? r : add(m, p, error);
}

int merged_finish(struct merged *m, const struct fusee_profile **ret)
{
	int r;

	*ret = NULL;
	if (!m->stacks)
		return 0;
	r = builder_finish(m->builder, ret);
	for (uint32_t i = 0; !r && m->filter.counts && i < (*ret)->samples.n; i++)
		saturate_add(&m->samples, filter_samples(&m->filter, *ret, i));
	return r;
}

void merged_fini(struct merged *m)
{
	builder_free(m->builder);
	filter_fini(&m->filter);
}
