/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of a difference is chance. The value of a function is a sum over samples that were drawn
 * at random, so that two profiles of one program differ. Two shares are compared as binomial
 * proportions, each with the number of samples of equal weight that has its variance.
 */
#ifndef REPORT_CHANGE_H
#define REPORT_CHANGE_H

#include "report/model.h"

/* A |z| above m->z_limit counts as a change. Of many functions that did not change, some are beyond
 * any fixed limit, so the limit grows with the number of functions whose values are compared: of 20
 * comparisons of equal programs, one has a function above it. It is at least 2.576, which 1 in 100
 * values that did not change exceeds. */
double render_z_limit(const struct render_model *);

/* The number of events that a pprof sample sums up: the value of another type, or the sample's own
 * value divided by the value of one event. */
struct render_count {
	uint32_t type;  /* of the values in question */
	uint32_t by;    /* the type whose value is divided */
	double divisor; /* 0: the sample is one event */
	/* Types below 64 of other samplers: `by` counts their events, too, in samples that have
	 * values of several samplers. */
	uint64_t others;
	double each; /* the value of one event of `type` at the base rate; 0: unknown */
};

void render_count_find(struct render_count *, const struct fusee_profile *, uint32_t type);
/* The variance of a sample's value, as a sum of equal events that occur at random. */
double render_noise_of(const struct render_count *, const int64_t *values);

/* A part of a profile's total. */
struct render_part {
	int64_t value, total;
	double noise, total_noise; /* their variances */
};

/* The number of standard deviations by which the share is larger (above 0) or smaller than the
 * share in the base; with Yates's correction for small counts. 0: unknown. */
double render_z(const struct render_part *, const struct render_part *base);
/* z of a function's own value and of its total; 0 without a base. */
double render_z_self(const struct render_model *, const struct render_function *);
double render_z_total(const struct render_model *, const struct render_function *);
/* Whether such a difference of shares may be chance: |z| is below the limit, or the shares are of
 * so few events that z is larger than its tail is unlikely. */
bool render_is_chance(const struct render_model *, const struct render_part *,
		      const struct render_part *base);
/* Neither the function's own value nor its total has changed by more than chance. */
bool render_is_noise(const struct render_model *, const struct render_function *);
/* " (new)", " (vanished)" or "": whether only one of the profiles has the function. */
const char *render_presence(const struct render_model *, const struct render_function *);
#endif
