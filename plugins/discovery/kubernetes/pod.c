/* SPDX-License-Identifier: Apache-2.0 */
#include "pod.h"

#include <ctype.h>
#include <fusee/bytes.h>
#include <stdlib.h>

int pod_init(struct pod *p, uint32_t nvalues)
{
	*p = (struct pod){.nvalues = nvalues};
	p->values = calloc(nvalues + 1, sizeof(*p->values));
	return p->values ? 0 : -ENOMEM;
}

void pod_fini(struct pod *p)
{
	free(p->values);
	free(p->containers);
	*p = (struct pod){0};
}

void pod_clear(struct pod *p)
{
	struct pod kept = {.values = p->values,
			   .nvalues = p->nvalues,
			   .containers = p->containers,
			   .room = p->room};

	*p = kept;
	memset(p->values, 0, (p->nvalues + 1) * sizeof(*p->values));
}

struct container *pod_container(struct pod *p, const char *name)
{
	struct container *c;

	for (uint32_t i = 0; i < p->ncontainers; i++)
		if (!strcmp(p->containers[i].name, name))
			return &p->containers[i];
	if (p->ncontainers == POD_CONTAINERS ||
	    !fusee_grow(&p->containers, &p->room, p->ncontainers + 1ull, sizeof(*c)))
		return NULL;
	c = &p->containers[p->ncontainers++];
	*c = (struct container){0};
	snprintf(c->name, sizeof(c->name), "%s", name);
	return c;
}

/* ---- workloads ---- */

/* The length of the name without "-" and the suffix; 0: it does not end so. */
static size_t without(const char *name, const char *suffix)
{
	size_t n = strlen(name), k = strlen(suffix);

	return k && n > k + 1 && name[n - k - 1] == '-' && !strcmp(name + n - k, suffix) ? n - k - 1
											 : 0;
}

/*
 * A CronJob's Jobs are called after it and the time that they are due at: minutes since 1970,
 * before Kubernetes 1.21 seconds. Numbers that would be times before July 2016, when CronJobs did
 * not exist, count as a part of the name, for example a date like 20250131.
 */
static size_t without_time(const char *name)
{
	const char *dash = strrchr(name, '-');
	size_t digits = dash ? strspn(dash + 1, "0123456789") : 0;
	uint64_t n;

	if (!digits || dash == name || dash[1 + digits] || (digits != 8 && digits != 10))
		return 0;
	n = strtoull(dash + 1, NULL, 10);
	if (digits == 8)
		n *= 60;
	return n >= 1467331200 && n < 4102444800 ? (size_t)(dash - name) : 0;
}

bool pod_workload(const struct pod *p, const char **kind, char *name)
{
	size_t n = 0;

	if (!*p->owner || !*p->owner_kind || !strcmp(p->owner_kind, "Node"))
		return false;
	*kind = p->owner_kind;
	if (!strcmp(p->owner_kind, "ReplicaSet") && (n = without(p->owner, p->template_hash)))
		*kind = "Deployment";
	else if (!strcmp(p->owner_kind, "Job") && (n = without_time(p->owner)))
		*kind = "CronJob";
	snprintf(name, POD_NAME, "%.*s", n ? (int)n : POD_NAME, p->owner);
	return true;
}
