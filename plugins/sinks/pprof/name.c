/* SPDX-License-Identifier: Apache-2.0 */
#include "name.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define END ".pb.gz"
#define MAX_TARGET 60
#define TIME 20 /* 2026-11-21T08-15-00Z */
#define HASH 8
#define ID 16

/* The first of these labels that the profile has is the target in the name. */
static const char *const target_labels[] = {"service_name", "workload",     "pod",    "unit",
					    "container",    "container_id", "process"};

static bool plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '.' || c == '_' || c == '-';
}

/* Labels come from targets: characters that mean something in a path or to a shell become '_'. */
static void make_target(const struct fusee_profile *p, char to[MAX_TARGET + 1])
{
	const struct fusee_label *l = NULL;
	uint64_t n;

	for (uint32_t i = 0; !l && i < sizeof(target_labels) / sizeof(*target_labels); i++)
		l = fusee_find_label(p->resource, target_labels[i]);
	n = l ? l->str.len : 0;
	n = n < MAX_TARGET ? n : MAX_TARGET;
	for (uint64_t i = 0; i < n; i++)
		to[i] = plain(l->str.p[i]) ? l->str.p[i] : '_';
	to[n] = '\0';
	if (!n)
		memcpy(to, "all", 4);
}

/* Do samples have other texts than the profile itself? The agent's have a process and a thread
 * of their own at most; a recording that is pushed may have any. */
static bool has_labels_of_samples(const struct fusee_profile *p)
{
	FUSEE_FOR_EACH (struct fusee_label, l, p->labels) {
		const struct fusee_label *of_all = NULL;

		if (!l->str.p || fusee_text_is(l->key, "process") ||
		    fusee_text_is(l->key, "thread"))
			continue;
		FUSEE_FOR_EACH (struct fusee_label, r, p->resource) {
			if (fusee_text_same(r->key, l->key))
				of_all = r;
		}
		if (!of_all || !fusee_text_same(of_all->str, l->str))
			return true;
	}
	return false;
}

static uint32_t hash(uint32_t h, struct fusee_str s)
{
	for (uint64_t i = 0; i < s.len; i++)
		h = (h ^ (uint8_t)s.p[i]) * 16777619u;
	return (h ^ 0xff) * 16777619u;
}

void name_make(char name[NAME_SIZE], const struct fusee_profile *p)
{
	char when[32], target[MAX_TARGET + 1], id[ID + 1];
	time_t t = (time_t)(p->start_ns / FUSEE_SECOND);
	/* One file of a hash tells readers the labels of all: not where samples have more. */
	uint32_t h = has_labels_of_samples(p) ? 1 : 2166136261u;
	struct tm tm;

	gmtime_r(&t, &tm);
	strftime(when, sizeof(when), "%Y-%m-%dT%H-%M-%SZ", &tm);
	make_target(p, target);
	FUSEE_FOR_EACH (struct fusee_label, l, p->resource) {
		h = hash(hash(h, l->key), l->str);
	}
	for (int i = 0; i < ID / 2; i++)
		snprintf(id + 2 * i, 3, "%02x", p->id[i]);
	snprintf(name, NAME_SIZE, "%s-%s-%08x-%s" END, when, target, h, id);
}

void name_make_unfinished(char part[NAME_SIZE], const char *name)
{
	snprintf(part, NAME_SIZE, NAME_PREFIX "%.140s" NAME_SUFFIX, name);
}

/* Are s[-1] a '-' and s[0 .. n) hexadecimal digits? */
static bool is_hex(const char *s, size_t n)
{
	return s[-1] == '-' && strspn(s, "0123456789abcdef") >= n;
}

static bool is_time(const char *s, uint64_t *ns)
{
	static const char shape[] = "0000-00-00T00-00-00Z-";
	struct tm tm = {0};
	int64_t t;

	for (size_t i = 0; shape[i]; i++)
		if (shape[i] == '0' ? s[i] < '0' || s[i] > '9' : s[i] != shape[i])
			return false;
	if (!strptime(s, "%Y-%m-%dT%H-%M-%SZ", &tm))
		return false;
	t = timegm(&tm);
	if (ns)
		*ns = t > 0 ? (uint64_t)t * FUSEE_SECOND : 0;
	return true;
}

bool name_is_ours(const char *name, uint64_t *ns)
{
	size_t len = strlen(name), body;

	if (len >= NAME_SIZE || len < TIME + 1 + 1 + 1 + HASH + 1 + ID + strlen(END))
		return false;
	body = len - strlen(END);
	for (size_t i = 0; i < body; i++)
		if (!plain(name[i]))
			return false;
	return !strcmp(name + body, END) && is_hex(name + body - ID, ID) &&
	       is_hex(name + body - ID - 1 - HASH, HASH) && is_time(name, ns);
}

bool name_is_unfinished(const char *name)
{
	size_t len = strlen(name), ends = strlen(NAME_PREFIX) + strlen(NAME_SUFFIX);
	char finished[NAME_SIZE];

	if (len >= NAME_SIZE || len <= ends || strncmp(name, NAME_PREFIX, strlen(NAME_PREFIX)) ||
	    strcmp(name + len - strlen(NAME_SUFFIX), NAME_SUFFIX))
		return false;
	snprintf(finished, sizeof(finished), "%.*s", (int)(len - ends), name + strlen(NAME_PREFIX));
	return name_is_ours(finished, NULL);
}
