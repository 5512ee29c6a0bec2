// SPDX-License-Identifier: Apache-2.0
#include "pull/request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "base/utf8.h"
#include "net/http_query.h"
#include "target/labelset.h"

#define DEFAULT_SECONDS 30u
#define MAX_PARAMS 64u /* Parca repeats `seconds` many times */
#define SHOWN 80u      /* bytes of a wrong parameter in an error */

/* Writes an error with the client's text, shortened and printable. */
static int fail(char error[256], const char *sentence, const char *text)
{
	struct buf shown = {0};

	utf8_clean_printable(&shown, text, strnlen(text, SHOWN));
	buf_add(&shown, "", 1);
	snprintf(error, 256, sentence, shown.error ? "" : shown.p);
	buf_fini(&shown);
	return -EINVAL;
}

static bool is_seconds(const char *value, uint32_t *seconds)
{
	size_t digits = strspn(value, "0123456789");

	if (!digits || digits > 6 || value[digits])
		return false;
	*seconds = (uint32_t)strtoul(value, NULL, 10);
	return *seconds >= 1 && *seconds <= PULL_MAX_SECONDS;
}

static int add_selector(struct pull_request *r, const struct http_param *p, char error[256])
{
	struct fusee_label l = {.key = fusee_text(p->name), .str = fusee_text(p->value)};

	if (!l.key.len)
		return fail(error, "'=%s': a label has no name\n", p->value);
	for (uint32_t i = 0; i < r->nselectors; i++)
		if (str_equal(r->selectors[i].key, l.key))
			return fail(error,
				    "label '%s' is selected twice: a process has one value of it\n",
				    p->name);
	if (r->nselectors == PULL_SELECTORS)
		return fail(error, "'%s': more than 16 labels are selected\n", p->name);
	r->selectors[r->nselectors++] = l;
	return 0;
}

static int add_param(struct pull_request *r, const struct http_param *p, char error[256])
{
	if (!strcmp(p->name, "seconds")) {
		if (!r->seconds && !is_seconds(p->value, &r->seconds))
			return fail(error, "seconds=%s: that is an integer from 1 to 600\n",
				    p->value);
		return 0;
	}
	if (strcmp(p->name, "debug"))
		return add_selector(r, p, error);
	return !strcmp(p->value, "0")
		       ? 0
		       : fail(error, "debug=%s: profiles are pprof files, not text\n", p->value);
}

int pull_request_parse(struct pull_request *r, const char *query, char error[256])
{
	struct http_param params[MAX_PARAMS];
	uint32_t n;
	int err;

	*r = (struct pull_request){0};
	if (strlen(query) >= sizeof(r->text))
		return fail(error, "the query is too long%s\n", "");
	strcpy(r->text, query);
	err = http_query_parse(r->text, params, MAX_PARAMS, &n);
	if (err)
		return fail(error,
			    err == -E2BIG
				    ? "the query has more than 64 parameters%s\n"
				    : "the query has a wrong escape: '%%' and two hexadecimal "
				      "digits, not 00%s\n",
			    "");
	for (uint32_t i = 0; !err && i < n; i++)
		err = add_param(r, &params[i], error);
	if (!r->seconds)
		r->seconds = DEFAULT_SECONDS;
	return err;
}

void pull_request_unknown(const struct fusee_label *selector, char error[256])
{
	fail(error, "no process that is profiled has a label '%s': fusee ctl targets lists them\n",
	     selector->key.p);
}

void pull_request_omitted(const struct fusee_label *selector, char error[256])
{
	fail(error,
	     "label '%s' is omitted from profiles, and cannot select: metrics { pull_omit }\n",
	     selector->key.p);
}

bool pull_request_selects(const struct pull_request *r, const struct fusee_label *labels,
			  uint32_t n)
{
	for (uint32_t i = 0; i < r->nselectors; i++) {
		const struct fusee_label *s = &r->selectors[i];
		uint32_t k = 0;

		while (k < n && !str_equal(labels[k].key, s->key))
			k++;
		if (k < n ? !str_equal(labels[k].str, s->str) : s->str.len > 0)
			return false;
	}
	return true;
}
