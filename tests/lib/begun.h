/* SPDX-License-Identifier: Apache-2.0 */
/* Instances whose options are right, or wrong. */
#ifndef BEGUN_H
#define BEGUN_H

#include "lib/fakehost.h"

/* begun(fake_new(..)): its init() succeeds. */
FAKE struct fake *begun(struct fake *f)
{
	int r = fake_init(f);

	if (r)
		test_fail(__FILE__, __LINE__, "init() is %d: %s", r, f->error);
	return f;
}

/* Its init() fails with `err`, 0: any, and that sentence. */
FAKE void check_refused(struct fake *f, int err, const char *sentence)
{
	int r = fake_init(f);

	CHECK_INT(r, err ? err : r < 0 ? r : -EINVAL);
	CHECK_STR(f->error, sentence);
	fake_free(f);
}
#endif
