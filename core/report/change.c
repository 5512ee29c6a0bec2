/* SPDX-License-Identifier: Apache-2.0 */
#include "report/change.h"

#include <math.h>
#include <string.h>

#include "profile/str.h"

static bool is(const struct fusee_profile *p, uint32_t i, const char *text)
{
	return fusee_text_is(str_at(p, i), text);
}

static const struct fusee_value_type *type_at(const struct fusee_profile *p, uint32_t i)
{
	return FUSEE_AT(struct fusee_value_type, p->types, i);
}

/* ---- samples ---- */

/* "alloc_objects" and "alloc_space" of Go's heap profiles: equal up to the underscore. */
static bool is_twin(const struct fusee_profile *p, uint32_t a, uint32_t b)
{
	struct fusee_str x = str_at(p, a), y = str_at(p, b);
	const char *line = x.len ? memchr(x.p, '_', x.len) : NULL;
	uint64_t n = line ? (uint64_t)(line - x.p) + 1 : 0;

	return n && y.len >= n && !memcmp(x.p, y.p, n);
}

void render_count_find(struct render_count *c, const struct fusee_profile *p, uint32_t type)
{
	*c = (struct render_count){.type = type, .by = type};
	for (uint32_t i = 0; i < p->types.n; i++) {
		if (is(p, type_at(p, i)->type, "samples") && is(p, type_at(p, i)->unit, "count")) {
			*c = (struct render_count){type, i, 1};
			return;
		}
	}
	for (uint32_t i = 0; p->period > 0 && p->period_unit && i < p->types.n; i++) {
		if (type_at(p, i)->unit == p->period_unit &&
		    (i == type || is_twin(p, type_at(p, type)->type, type_at(p, i)->type))) {
			*c = (struct render_count){type, i, (double)p->period};
			return;
		}
	}
	if (is(p, type_at(p, type)->unit, "count"))
		c->divisor = 1;
}

double render_noise_of(const struct render_count *c, const int64_t *values)
{
	double v = (double)values[c->type],
	       n = c->divisor > 0 ? fabs((double)values[c->by]) / c->divisor : 1;

	return v * v / (n > 1 ? n : 1);
}

/* ---- shares ---- */

/* The value of one event of a part; of an empty part `otherwise`. */
static double weight_of(int64_t value, double noise, double otherwise)
{
	return value ? noise / fabs((double)value) : otherwise;
}

static double larger(double a, double b)
{
	return a > b ? a : b;
}

/* The number of events of equal weight with which a share p would have the variance that it has in
 * this profile: events inside and outside of the part may have different weights. Events of an
 * absent part have their weight in the other profile, if that is larger than the mean. */
static double events(const struct render_part *a, const struct render_part *other, double p)
{
	double mean = a->total_noise / (double)a->total;
	double in = weight_of(a->value, a->noise,
			      larger(mean, weight_of(other->value, other->noise, 0)));
	double out = weight_of(a->total - a->value, fmax(a->total_noise - a->noise, 0), mean);

	return (double)a->total / ((1 - p) * in + p * out);
}

double render_z(const struct render_part *a, const struct render_part *b)
{
	double pa, pb, p, na, nb, difference, correction;

	if (a->total <= 0 || b->total <= 0 || a->total_noise <= 0 || b->total_noise <= 0)
		return 0;
	pa = (double)a->value / (double)a->total;
	pb = (double)b->value / (double)b->total;
	na = (double)a->total / (a->total_noise / (double)a->total);
	nb = (double)b->total / (b->total_noise / (double)b->total);
	p = (pa * na + pb * nb) / (na + nb);
	if (p <= 0 || p >= 1)
		return 0;
	na = events(a, b, p);
	nb = events(b, a, p);
	correction = (1 / na + 1 / nb) / 2;
	difference = fabs(pa - pb) - correction;
	if (!(difference > 0))
		return 0;
	return copysign(difference / sqrt(p * (1 - p) * (1 / na + 1 / nb)), pa - pb);
}

double render_z_self(const struct render_model *m, const struct render_function *f)
{
	struct render_part a = {f->self, m->total, f->noise.self, m->noise};
	struct render_part b = {f->base_self, m->base_total, f->noise.base_self, m->base_noise};

	return render_z(&a, &b);
}

double render_z_total(const struct render_model *m, const struct render_function *f)
{
	struct render_part a = {f->total, m->total, f->noise.total, m->noise};
	struct render_part b = {f->base_total, m->base_total, f->noise.base_total, m->base_noise};

	return render_z(&a, &b);
}

bool render_is_noise(const struct render_model *m, const struct render_function *f)
{
	return m->base && fabs(render_z_self(m, f)) < RENDER_Z_LIMIT &&
	       fabs(render_z_total(m, f)) < RENDER_Z_LIMIT;
}

const char *render_presence(const struct render_model *m, const struct render_function *f)
{
	if (!m->base || !f->total == !f->base_total)
		return "";
	return f->base_total ? " (vanished)" : " (new)";
}
