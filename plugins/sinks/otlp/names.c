/* SPDX-License-Identifier: Apache-2.0 */
#include "names.h"

#include <fusee/helpers.h>

struct name {
	const char *label, *attribute;
};

/* label: the name of the core and discovery plugins; attribute: that of the registry of semantic
 * conventions 1.37.
 */
static const struct name known[] = {
	{"cgroup", "process.linux.cgroup"},
	{"container_id", "container.id"},
	{"container_runtime", "container.runtime"},
	{"host", "host.name"},
	{"image", "container.image.name"},
	{"namespace", "k8s.namespace.name"},
	{"node", "k8s.node.name"},
	{"pod", "k8s.pod.name"},
	{"pod_uid", "k8s.pod.uid"},
	{"process", "process.executable.name"},
	{"service_name", "service.name"},
	{"thread", "thread.name"},
	{"user", "process.owner"},
};

static const struct name workloads[] = {
	{"CronJob", "k8s.cronjob.name"},       {"DaemonSet", "k8s.daemonset.name"},
	{"Deployment", "k8s.deployment.name"}, {"Job", "k8s.job.name"},
	{"ReplicaSet", "k8s.replicaset.name"}, {"StatefulSet", "k8s.statefulset.name"},
};

static const char *find(const struct name *names, size_t n, struct fusee_str label)
{
	for (size_t i = 0; i < n; i++)
		if (fusee_text_is(label, names[i].label))
			return names[i].attribute;
	return NULL;
}
#define FIND(names, label) find(names, sizeof(names) / sizeof((names)[0]), label)

void names_see(struct names *n, const struct fusee_label *l)
{
	if (!l->str.len)
		return;
	if (fusee_text_is(l->key, "pod") || fusee_text_is(l->key, "pod_uid"))
		n->pod = true;
	else if (fusee_text_is(l->key, "workload_kind"))
		n->of = l->str;
}

struct fusee_str names_of(const struct names *n, const struct fusee_label *l)
{
	const char *name = NULL;

	if (l->str.p && !l->str.len)
		return (struct fusee_str){"", 0};
	if (fusee_text_is(l->key, "container"))
		name = n->pod ? "k8s.container.name" : "container.name";
	else if (fusee_text_is(l->key, "workload"))
		name = FIND(workloads, n->of);
	else
		name = FIND(known, l->key);
	return name ? fusee_text(name) : l->key;
}

bool names_is_of_sample(const struct fusee_label *l)
{
	return !l->str.p || fusee_text_is(l->key, "thread") || fusee_text_is(l->key, "reason");
}
