/* SPDX-License-Identifier: Apache-2.0 */
#include "report/internal/scale.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

static void choose_unit(struct render_scale *a, const struct render_model *m)
{
	*a = (struct render_scale){.total = m->total, .unit = ""};
	if (!fusee_text_is(m->unit, "nanoseconds"))
		return;
	if (m->total >= 1000000000) {
		a->factor = 1e9;
		a->unit = " s";
		a->digits = m->total >= 1000000000000 ? 1 : 2;
	} else {
		a->factor = 1e6;
		a->unit = " ms";
	}
}

/* 1234567 as "1,234,567". */
static void grouped(char out[RENDER_NUMBER], const char *digits)
{
	size_t n = strcspn(digits, "."), k = 0;

	for (size_t i = 0; digits[i] && k + 2 < RENDER_NUMBER; i++) {
		if (i && i < n && (n - i) % 3 == 0 && digits[i - 1] != '-')
			out[k++] = ',';
		out[k++] = digits[i];
	}
	out[k] = '\0';
}

static int put_number(const struct render_scale *a, int64_t v, char text[RENDER_NUMBER + 4])
{
	char digits[RENDER_NUMBER], number[RENDER_NUMBER];

	if (a->factor > 0)
		snprintf(digits, sizeof(digits), "%.*f", a->digits, (double)v / a->factor);
	else
		snprintf(digits, sizeof(digits), "%" PRId64, v);
	grouped(number, digits);
	return snprintf(text, RENDER_NUMBER + 4, "%s%s", number, a->unit);
}

void render_scale_choose(struct render_scale *a, const struct render_model *m)
{
	char text[RENDER_NUMBER + 4];

	choose_unit(a, m);
	a->width = put_number(a, a->total, text) + 1; /* a gap before it */
	if (a->width < 10)
		a->width = 10;
}

void render_scale_put(const struct render_scale *a, int64_t v, struct buf *out)
{
	double share = a->total ? (double)v / (double)a->total * 100 : 0;
	char text[RENDER_NUMBER + 4];

	put_number(a, v, text);
	buf_printf(out, "%*s %5.1f %%", a->width, text, share);
}
