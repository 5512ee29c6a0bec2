/* SPDX-License-Identifier: Apache-2.0 */
#include "name.h"

#define END ".pb.gz"
#define MAX_TARGET 60
#define HASH 8

/* The first of these labels that the profile has is the target in the name. */
static const char *const target_labels[] = {"service_name", "workload",     "pod",    "unit",
					    "container",    "container_id", "process"};

/* Labels come from targets: characters that mean something in a path or to a shell become '_'. */
static void make_target(const struct fusee_profile *p, char to[MAX_TARGET + 1])
{
	const struct fusee_label *l = NULL;

	for (uint32_t i = 0; !l && i < sizeof(target_labels) / sizeof(*target_labels); i++)
		l = fusee_find_label(p->resource, target_labels[i]);
	fusee_folder_plain(to, MAX_TARGET + 1, l && l->str.len ? l->str : fusee_text("all"));
}

/* Whether samples have labels that the profile's resource lacks. The agent's samples add at most a
 * process and a thread; samples of a pushed recording may have any labels. */
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
	char when[FUSEE_FOLDER_TIME + 1], target[MAX_TARGET + 1], id[FUSEE_FOLDER_ID + 1];
	/* Readers take the labels of all files with this hash from one file, which is wrong if
	 * samples have more labels. */
	uint32_t h = has_labels_of_samples(p) ? 1 : 2166136261u;

	fusee_folder_put_time(when, p->start_ns);
	make_target(p, target);
	FUSEE_FOR_EACH (struct fusee_label, l, p->resource) {
		h = hash(hash(h, l->key), l->str);
	}
	fusee_folder_put_id(id, p);
	snprintf(name, NAME_SIZE, "%s-%s-%08x-%s" END, when, target, h, id);
}

void name_make_unfinished(char part[NAME_SIZE], const char *name)
{
	snprintf(part, NAME_SIZE, NAME_PREFIX "%.140s" NAME_SUFFIX, name);
}

bool name_is_ours(const char *name, uint64_t *ns)
{
	size_t len = strlen(name), body = len - strlen(END), end = 1 + HASH + 1 + FUSEE_FOLDER_ID;
	uint64_t t;

	if (len >= NAME_SIZE || len < FUSEE_FOLDER_TIME + 1 + 1 + end + strlen(END) ||
	    strcmp(name + body, END) || !fusee_folder_is_name(name, body, ns ? ns : &t))
		return false;
	return name[body - end] == '-' && strspn(name + body - end + 1, "0123456789abcdef") >= HASH;
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
