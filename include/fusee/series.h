/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fusee/series.h - the series of a profile: a profile for each set of labels that its samples have,
 * as backends index them. Optional: a plugin links it statically (libfusee-series.a, `pkg-config
 * --libs fusee-series`; in fusee's own tree the plugin's file `uses` has the line "series").
 */
#ifndef FUSEE_SERIES_H
#define FUSEE_SERIES_H

#include <fusee/helpers.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 0 or an empty table: the backend has no such limit. */
struct fusee_series_options {
	struct fusee_table without; /* struct fusee_str: labels of samples that make no series of
				       their own: samples that differ only in them are one series */
	uint32_t max_labels;        /* of a series; later labels in the order of names are dropped,
				       but not those of `first` */
	uint32_t max_name, max_value; /* bytes; longer texts are truncated */
	struct fusee_table first; /* struct fusee_str: labels that are in it before all others */
};

/* A series. All of it is valid until each() returns. */
struct fusee_series {
	/* struct fusee_label with text, by name; each name once. Names are [a-zA-Z_][a-zA-Z0-9_]*:
	 * other characters have become '_'. Values are UTF-8 and not empty. */
	struct fusee_table labels;
	/* Its samples, without labels, pid or tid: equal stacks are one sample with the sum of
	 * their values. It has no resource. Its other tables are those of the complete profile, so
	 * encode it by host->split(), which omits what it does not use. Its id is derived from the
	 * profile's and the labels. */
	const struct fusee_profile *profile;
	uint32_t dropped; /* labels of the series that max_labels has dropped */
};

/* Calls each() for every series of the profile, in an order that is the same each time. Labels of a
 * sample come before those of profile->resource; those with FUSEE_LABEL_OWN and the ids, which
 * would make a series for each request, are in none. Of names that became equal the first counts.
 * Ends at the first each() that does not return 0, and returns its result. 0, -ENOMEM. Any thread.
 */
int fusee_series_each(const struct fusee_profile *, const struct fusee_series_options *,
		      int (*each)(void *arg, const struct fusee_series *), void *arg);

/* The label of a series that has this name, or the name that this name became; NULL: none. */
const struct fusee_label *fusee_series_label(const struct fusee_series *, const char *name);

#ifdef __cplusplus
}
#endif
#endif
