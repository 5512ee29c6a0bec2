/* SPDX-License-Identifier: Apache-2.0 */
#include "selection/options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "base/log.h"
#include "selection/found.h"
#include "selection/internal/children.h"
#include "selection/internal/name.h"
#include "console/options.h"
#include "process/cgroup_namespace.h"
#include "process/procfs.h"

#define WAIT_NS 5000000000u /* at most, for discovery plugins */
#define SHORTEST 4u         /* digits of a container's id */
#define MAX_SAME 4u         /* units, pods or containers of one name that an error lists */

/* ---- options ---- */

int selection_set_pids(void *selection, const char *list)
{
	return selection_add_pids(selection, list);
}

int selection_set_cgroup(void *selection, const char *path)
{
	return selection_add_cgroup(selection, path);
}

int selection_set_unit(void *selection, const char *name)
{
	return selection_add_name(selection, NAME_UNIT, name);
}

int selection_set_pod(void *selection, const char *name)
{
	return selection_add_name(selection, NAME_POD, name);
}

int selection_set_container(void *selection, const char *name)
{
	return selection_add_name(selection, NAME_CONTAINER, name);
}

int selection_set_discover(void *selection, const char *spec)
{
	return selection_add_discover(selection, spec);
}

/* The search for the processes of a name. */
struct search {
	struct selection *o;
	struct targets *targets;
	const struct cgroup_namespace *at;
	const struct name *name;
	char same[MAX_SAME][NAME_TEXT]; /* descriptions of what has this name: name_describe() */
	uint32_t nsame;
	bool more; /* than fit into `same` */
	uint32_t processes;
};

/* ---- processes ---- */

static void note(struct search *s, const char *text)
{
	for (uint32_t i = 0; i < s->nsame; i++)
		if (!strcmp(s->same[i], text))
			return;
	if (s->nsame == MAX_SAME)
		s->more = true;
	else
		snprintf(s->same[s->nsame++], NAME_TEXT, "%s", text);
}

static int follow(struct selection *o, char *path)
{
	char dir[CGROUP_MAX];

	if (!cgroup_find(path, dir))
		return selection_add_group(o, dir);
	log_warning("the control group '%s' is not mounted here: processes that join it from now "
		    "on are not sampled",
		    path);
	return 0;
}

static int check_process(void *arg, pid_t pid)
{
	struct search *s = arg;
	char path[CGROUP_MAX], text[NAME_TEXT];
	const struct target_process p = {.pid = pid, .cgroup = path, .name = ""};
	const struct fusee_label *labels;
	uint32_t n = 0;
	size_t len;
	int r = 0;

	if (procfs_is_own(pid) || cgroup_namespace_of(s->at, pid, path))
		return 0;
	labels = targets_set(s->targets, targets_labels(s->targets, &p, NULL), &n);
	len = name_group(s->name, s->targets, path);
	if (!labels || (!len && !name_matches(s->name, path, labels, n)))
		return 0;
	path[len ? len : strlen(path)] = '\0';
	name_describe(s->name, path, labels, n, text);
	note(s, text);
	s->processes++;
	if (len)
		r = follow(s->o, path);
	return r ? r : selection_add_process(s->o, pid);
}

/* ---- what is wrong ---- */

static int not_unique(const struct search *s)
{
	char list[MAX_SAME * 100] = "";
	size_t len = 0;

	for (uint32_t i = 0; i < s->nsame && len < sizeof(list) - 100; i++)
		len += (size_t)snprintf(list + len, 100, "%s%.90s", i ? ", " : "", s->same[i]);
	log_error("%s '%s' is more than one: %s%s: %s", name_kinds[s->name->kind], s->name->text,
		  list, s->more ? " .." : "",
		  s->name->kind == NAME_POD ? "name it with its namespace, NS/POD"
		  : *s->same[0] == '/'      ? "select one by its control group (-G)"
		  : strchr(s->same[0], '/') ? "name its pod too (--pod NS/POD)"
					    : "name the first digits of its id");
	return EX_USAGE;
}

static void offer(void *arg, const char *name)
{
	name_offer(arg, name);
}

/* No name of this kind is known at all. */
static void none_known(const struct name *n, bool failed)
{
	static const char *const why[NAME_KINDS] = {
		"systemd runs no unit here: select processes with -G or -p",
		"pods are known by an API server: name its kubeconfig, as "
		"KUBECONFIG=/etc/kubernetes/kubelet.conf on a node of kubeadm, and the node, where "
		"it is not called as this machine, with NODE_NAME; or name the pod's UID",
		"no container's name is known: name the first digits of its id, at least 4"};

	log_error("no process runs in a %s '%s'%s: %s", name_kinds[n->kind], n->text,
		  failed ? ", and a discovery failed" : "", why[n->kind]);
}

/* Whether the text can be the beginning of a container's id. */
static bool is_short_id(const struct name *n)
{
	size_t len = strlen(n->text);

	return n->kind == NAME_CONTAINER && len < SHORTEST &&
	       strspn(n->text, "0123456789abcdef") == len;
}

static int not_found(const struct search *s)
{
	struct name_near near = {.name = s->name};
	const char *kind = name_kinds[s->name->kind], *text = s->name->text;
	char list[NAME_MAX_NEAR * 200] = "";
	size_t len = 0;

	found_names(s->o->found, s->name->kind, offer, &near);
	if (!near.offered)
		none_known(s->name, found_failed(s->o->found));
	for (uint32_t i = 0; i < near.n; i++)
		len += (size_t)snprintf(list + len, 200, "%s%.180s", i ? ", " : "", near.near[i]);
	if (near.offered && near.equal)
		log_error("no process runs in %s '%s'", kind, text);
	else if (near.n)
		log_error("no process runs in a %s '%s': did you mean %s?", kind, text, list);
	else if (near.offered)
		log_error("no process runs in a %s '%s': fusee completion --list %ss lists what "
			  "is known",
			  kind, text, kind);
	return is_short_id(s->name) ? EX_USAGE : EX_NOINPUT;
}

/* ---- one name ---- */

static int find_name(struct selection *o, const struct cgroup_namespace *at,
		     const struct name *name)
{
	struct name user = *name;
	struct search s = {.o = o, .targets = found_targets(o->found), .at = at, .name = name};
	int r = procfs_each_process(check_process, &s);

	if (!r && !s.processes && name->kind == NAME_UNIT) {
		user.user = true;
		s.name = &user;
		r = procfs_each_process(check_process, &s);
	}
	if (r == -E2BIG)
		return selection_too_many();
	if (r > 0)
		return r;
	if (r < 0) {
		log_error("the processes in /proc cannot be listed: %s", strerror(-r));
		return EX_OSERR;
	}
	if (!s.processes)
		return not_found(&s);
	return name->kind != NAME_UNIT && !name->npods && s.nsame > 1 ? not_unique(&s) : 0;
}

/* ---- all names ---- */

struct names {
	struct name all[SELECTION_MAX_NAMES], pods[SELECTION_MAX_NAMES];
	uint32_t n, npods;
	bool containers;
};

/* Adds the processes of names that are ids of containers: no plugin is needed to find these. */
static int read_names(const struct cli_command *c, struct selection *o, struct names *n)
{
	for (uint32_t i = 0; i < o->nnames; i++) {
		enum name_kind kind = o->names[i].kind;
		const char *text = o->names[i].text;
		int r = kind == NAME_CONTAINER ? selection_add_container(o, text) : -ENOENT;

		n->containers |= kind == NAME_CONTAINER;
		if (!r)
			continue;
		if (r > 0)
			return r;
		if (name_init(kind == NAME_POD ? &n->pods[n->npods] : &n->all[n->n], kind, text))
			return cli_bad_usage(c, "--%s: '%s' is no name", name_kinds[kind], text);
		n->npods += kind == NAME_POD;
		n->n += kind != NAME_POD;
	}
	return 0;
}

static int find_all(struct selection *o, struct names *n)
{
	struct cgroup_namespace at;
	int r = cgroup_namespace_open(&at);

	if (r) {
		log_error("%s", strerror(-r));
		return EX_OSERR;
	}
	for (uint32_t i = 0; !r && !n->containers && i < n->npods; i++)
		r = find_name(o, &at, &n->pods[i]);
	for (uint32_t i = 0; !r && i < n->n; i++) {
		if (n->all[i].kind == NAME_CONTAINER) {
			n->all[i].pods = n->pods;
			n->all[i].npods = n->npods;
		}
		r = find_name(o, &at, &n->all[i]);
	}
	return r;
}

int selection_find_names(const struct cli_command *c, struct selection *o)
{
	struct found_options options = {
		.discover = o->discover, .ndiscover = o->ndiscover, .wait_ns = WAIT_NS};
	struct names names = {0};
	int r;

	if (o->ndiscover && !o->nnames)
		return cli_bad_usage(c, "--discover is for --unit, --pod and --container NAME");
	if (o->children && !o->npids)
		return cli_bad_usage(c, "--children is for -p PID");
	r = o->children ? selection_add_children(o) : 0;
	if (!r)
		r = read_names(c, o, &names);
	if (r || (!names.n && !names.containers && !names.npods))
		return r;
	for (uint32_t i = 0; i < names.n; i++)
		options.kinds[names.all[i].kind] = true;
	options.kinds[NAME_POD] = names.npods && (names.n || !names.containers);
	options.groups = names.containers;
	r = found_new(&o->found, &options, NULL);
	return r ? r : find_all(o, &names);
}
