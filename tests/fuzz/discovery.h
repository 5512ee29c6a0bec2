/* SPDX-License-Identifier: Apache-2.0 */
/* A core for discoveries: targets have labels that it accepts, and what is said has words. */
#ifndef FUZZ_DISCOVERY_H
#define FUZZ_DISCOVERY_H

#include <fusee/helpers.h>

#include "fuzz.h"

static int put(struct fusee_instance *in, const struct fusee_target *t);

/* Of a target: neither empty nor too long. */
static void check_labels(const struct fusee_target *t, size_t most)
{
	for (uint32_t i = 0; i < t->labels.n; i++) {
		const struct fusee_label *l = FUSEE_AT(struct fusee_label, t->labels, i);

		if (!l->key.len || !l->str.len || l->str.len >= most)
			abort();
	}
}

static int del(struct fusee_instance *in, struct fusee_str key)
{
	(void)in;
	return key.len ? 0 : -ENOENT;
}

static void quiet(struct fusee_instance *in, int level, const char *text)
{
	(void)in;
	(void)level;
	if (!*text)
		abort();
}

static int fail(struct fusee_instance *in, int err, const char *text)
{
	quiet(in, 0, text);
	return err;
}

static const struct fusee_discovery_host discovery = {
	.size = sizeof(discovery), .put = put, .del = del};
static const struct fusee_host host = {
	.size = sizeof(host), .log = quiet, .fail = fail, .discovery = &discovery};
static const struct fusee_self self = {NULL, &host};
#endif
