/* SPDX-License-Identifier: Apache-2.0 */
/* Values in the tables at the end of `fusee record`, in one unit for a table. */
#ifndef REPORT_SCALE_H
#define REPORT_SCALE_H

#include "base/buf.h"
#include "report/model.h"

struct render_scale {
	int64_t total; /* 100 % */
	double factor; /* values are divided by it; 0: integers */
	const char *unit;
	int digits;
	int width; /* columns of a number with its unit, at least 10 */
};

void render_scale_choose(struct render_scale *, const struct render_model *);
/* Appends "    12.34 s  56.7 %", width + 8 columns. */
void render_scale_put(const struct render_scale *, int64_t value, struct buf *out);
#endif
