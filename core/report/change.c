/* SPDX-License-Identifier: Apache-2.0 */
#include "report/change.h"

#include <math.h>
#include <string.h>

#include "profile/str.h"

#define Z_LEAST 2.576

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

static bool is_of_heap(struct fusee_str s)
{
	return (s.len > 6 && !memcmp(s.p, "alloc_", 6)) || (s.len > 6 && !memcmp(s.p, "inuse_", 6));
}

/* Whether one sampler has both types, as `record` names them. */
static bool is_of_one(const struct fusee_profile *p, uint32_t a, uint32_t b)
{
	return is_twin(p, a, b) || is(p, a, "calls") || is(p, b, "calls") ||
	       (is_of_heap(str_at(p, a)) && is_of_heap(str_at(p, b)));
}

static uint64_t find_others(const struct fusee_profile *p, uint32_t type)
{
	uint64_t others = 0;

	for (uint32_t i = 0; i < p->types.n && i < 64; i++)
		if (i != type && !is(p, type_at(p, i)->type, "samples") &&
		    !is_of_one(p, type_at(p, type)->type, type_at(p, i)->type))
			others |= 1ull << i;
	return others;
}

static double base_value(const struct fusee_profile *p, uint32_t type)
{
	const struct fusee_value_type *t = type_at(p, type);

	return p->period > 0 && t->type == p->period_type && t->unit == p->period_unit
		       ? (double)p->period
		       : 0;
}

void render_count_find(struct render_count *c, const struct fusee_profile *p, uint32_t type)
{
	*c = (struct render_count){.type = type, .by = type};
	for (uint32_t i = 0; i < p->types.n; i++) {
		if (is(p, type_at(p, i)->type, "samples") && is(p, type_at(p, i)->unit, "count")) {
			*c = (struct render_count){.type = type,
						   .by = i,
						   .divisor = 1,
						   .others = find_others(p, type),
						   .each = base_value(p, type)};
			return;
		}
	}
	for (uint32_t i = 0; p->period > 0 && p->period_unit && i < p->types.n; i++) {
		if (type_at(p, i)->unit == p->period_unit &&
		    (i == type || is_twin(p, type_at(p, type)->type, type_at(p, i)->type))) {
			*c = (struct render_count){
				.type = type, .by = i, .divisor = (double)p->period};
			return;
		}
	}
	if (is(p, type_at(p, type)->unit, "count"))
		c->divisor = 1;
}

static bool has_others(const struct render_count *c, const int64_t *values)
{
	for (uint64_t set = c->others; set; set &= set - 1)
		if (values[__builtin_ctzll(set)])
			return true;
	return false;
}

double render_noise_of(const struct render_count *c, const int64_t *values)
{
	double v = (double)values[c->type],
	       n = c->divisor > 0 ? fabs((double)values[c->by]) / c->divisor : 1, most;

	if (v && has_others(c, values)) {
		most = c->each > 0 ? fabs(v) / c->each : 1;
		n = n < most ? n : most;
	}
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

/* Two shares, each of so many events, and the share of both. */
struct shares {
	double a, b, both, na, nb;
};

/* false: they are not known, or there is nothing to compare. */
static bool find_shares(struct shares *s, const struct render_part *a, const struct render_part *b)
{
	if (a->total <= 0 || b->total <= 0 || a->total_noise <= 0 || b->total_noise <= 0)
		return false;
	s->a = (double)a->value / (double)a->total;
	s->b = (double)b->value / (double)b->total;
	s->na = (double)a->total / (a->total_noise / (double)a->total);
	s->nb = (double)b->total / (b->total_noise / (double)b->total);
	s->both = (s->a * s->na + s->b * s->nb) / (s->na + s->nb);
	if (s->both <= 0 || s->both >= 1)
		return false;
	s->na = events(a, b, s->both);
	s->nb = events(b, a, s->both);
	return true;
}

double render_z(const struct render_part *a, const struct render_part *b)
{
	double difference, of_one;
	struct shares s;

	if (!find_shares(&s, a, b))
		return 0;
	of_one = 1 / s.na + 1 / s.nb;
	difference = fabs(s.a - s.b) - of_one / 2;
	if (!(difference > 0))
		return 0;
	return copysign(difference / sqrt(s.both * (1 - s.both) * of_one), s.a - s.b);
}

/* ---- what is chance ---- */

/* n events, a share of which is `seen` where `expected` is due: twice the logarithm by which that
 * is less likely. */
static double unlikely(double n, double seen, double expected)
{
	double in = seen > 0 ? seen * log(seen / expected) : 0,
	       out = seen < 1 ? (1 - seen) * log((1 - seen) / (1 - expected)) : 0;

	return 2 * n * (in + out);
}

/* |z| by the likelihood of both shares. Of a few events, z of render_z() is too large on the side
 * of the smaller profile; this is not (the tails of Poisson's distribution are not those of
 * Gauss's). */
static double likelihood_z(const struct shares *s)
{
	double sign = s->a > s->b ? 1 : -1, a = s->a - sign / (2 * s->na),
	       b = s->b + sign / (2 * s->nb), sum;

	if (sign * (a - b) <= 0)
		return 0;
	sum = unlikely(s->na, fmin(fmax(a, 0), 1), s->both) +
	      unlikely(s->nb, fmin(fmax(b, 0), 1), s->both);
	return sqrt(fmax(sum, 0));
}

bool render_is_chance(const struct render_model *m, const struct render_part *a,
		      const struct render_part *b)
{
	struct shares s;

	return fabs(render_z(a, b)) < m->z_limit || !find_shares(&s, a, b) ||
	       likelihood_z(&s) < m->z_limit;
}

#define ALARMS                                                                            \
	0.05 /* of comparisons of equal programs, so many have a function above the limit \
	      */

/* The |z| that n independent values that did not change exceed in ALARMS of all cases. */
static double limit_of(double n)
{
	double p = -expm1(log1p(-ALARMS) / n), low = Z_LEAST, high = 10;

	while (high - low > 1e-3) {
		double z = (low + high) / 2;

		*(erfc(z / M_SQRT2) > p ? &low : &high) = z;
	}
	return high;
}

/* Both values of a function; fewer events than 5 are never beyond the limit. */
double render_z_limit(const struct render_model *m)
{
	double mean = m->total > 0 ? m->noise / (double)m->total : 0,
	       base = m->base_total > 0 ? m->base_noise / (double)m->base_total : 0;
	uint64_t n = 0;

	for (uint32_t i = 0; m->base && i < m->nfunctions; i++) {
		const struct render_function *f = &m->functions[i];
		double own = fabs((double)f->self) * base + fabs((double)f->base_self) * mean,
		       all = fabs((double)f->total) * base + fabs((double)f->base_total) * mean;

		n += own >= 5 * mean * base;
		n += all >= 5 * mean * base &&
		     (f->total != f->self || f->base_total != f->base_self);
	}
	return n ? limit_of((double)n) : Z_LEAST;
}

static void own_parts(const struct render_model *m, const struct render_function *f,
		      struct render_part to[2])
{
	to[0] = (struct render_part){f->self, m->total, f->noise.self, m->noise};
	to[1] = (struct render_part){f->base_self, m->base_total, f->noise.base_self,
				     m->base_noise};
}

static void total_parts(const struct render_model *m, const struct render_function *f,
			struct render_part to[2])
{
	to[0] = (struct render_part){f->total, m->total, f->noise.total, m->noise};
	to[1] = (struct render_part){f->base_total, m->base_total, f->noise.base_total,
				     m->base_noise};
}

double render_z_self(const struct render_model *m, const struct render_function *f)
{
	struct render_part parts[2];

	own_parts(m, f, parts);
	return render_z(&parts[0], &parts[1]);
}

double render_z_total(const struct render_model *m, const struct render_function *f)
{
	struct render_part parts[2];

	total_parts(m, f, parts);
	return render_z(&parts[0], &parts[1]);
}

bool render_is_noise(const struct render_model *m, const struct render_function *f)
{
	struct render_part own[2], all[2];

	own_parts(m, f, own);
	total_parts(m, f, all);
	return m->base && render_is_chance(m, &own[0], &own[1]) &&
	       render_is_chance(m, &all[0], &all[1]);
}

const char *render_presence(const struct render_model *m, const struct render_function *f)
{
	if (!m->base || !f->total == !f->base_total)
		return "";
	return f->base_total ? " (vanished)" : " (new)";
}
