/* SPDX-License-Identifier: Apache-2.0 */
#include "selection/selection.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/log.h"
#include "process/cgroup.h"
#include "process/procfs.h"

#define ID_LEN 64u
#define SHORTEST 4u

int selection_add_process(struct selection *o, pid_t pid)
{
	if (procfs_is_own(pid))
		return 0;
	for (uint32_t i = 0; i < o->npids; i++) /* cgroup v1: listed by several hierarchies */
		if (o->pids[i] == pid)
			return 0;
	if (o->npids == SELECTION_MAX_PIDS)
		return -E2BIG;
	o->pids[o->npids++] = pid;
	return 0;
}

static int add(void *arg, pid_t pid)
{
	return selection_add_process(arg, pid);
}

int selection_too_many(void)
{
	log_error("more than %u processes: profile all processes (-a)", SELECTION_MAX_PIDS);
	return EX_USAGE;
}

int selection_add_pids(struct selection *o, const char *list)
{
	while (*list) {
		char *end;
		long pid = strtol(list, &end, 10);

		if (end == list || pid <= 0 || pid > 4194304 || (*end && *end != ',')) {
			log_error("'%s' is not a process number", list);
			return EX_USAGE;
		}
		if (procfs_process_of((pid_t)pid) != pid) {
			log_error("%ld is a thread of process %d: name that", pid,
				  (int)procfs_process_of((pid_t)pid));
			return EX_USAGE;
		}
		if (o->npids == SELECTION_MAX_PIDS)
			return selection_too_many();
		o->pids[o->npids++] = (pid_t)pid;
		list = *end ? end + 1 : end;
	}
	return 0;
}

int selection_add_group(struct selection *o, const char *dir)
{
	for (uint32_t i = 0; i < o->ngroups; i++)
		if (!strcmp(o->groups[i], dir))
			return 0;
	if (o->ngroups == SELECTION_MAX_GROUPS) {
		log_error("more than %u control groups: profile all processes (-a)",
			  SELECTION_MAX_GROUPS);
		return EX_USAGE;
	}
	strcpy(o->groups[o->ngroups++], dir);
	return 0;
}

int selection_add_cgroup(struct selection *o, const char *path)
{
	uint32_t before = o->npids;
	char dir[CGROUP_MAX];
	int r = cgroup_find(path, dir);

	if (!r)
		r = cgroup_each_process(dir, add, o);
	if (r == -E2BIG)
		return selection_too_many();
	if (r) {
		log_error("there is no control group '%s': %s", path,
			  r == -ENOENT ? "name its path from the hierarchy's root, as in "
					 "/proc/PID/cgroup"
				       : strerror(-r));
		return EX_NOINPUT;
	}
	if (o->npids == before) {
		log_error("no process runs in control group '%s'", path);
		return EX_NOINPUT;
	}
	return selection_add_group(o, dir);
}

/* ---- containers ---- */

struct search {
	struct selection *o;
	const char *id;
	char found[256]; /* the complete id; "": none yet */
	char other[256]; /* another id with the same first digits; "": none */
};

static bool is_hex(const char *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isdigit((unsigned char)p[i]) && !(p[i] >= 'a' && p[i] <= 'f'))
			return false;
	return true;
}

/* Whether this component of a path contains a container's id that begins with id. found: the
 * complete id. */
static bool has_id(const char *word, size_t len, const char *id, char found[256])
{
	size_t n = strlen(id);

	for (size_t i = 0; i + ID_LEN <= len; i++) {
		bool begins = !i || !isalnum((unsigned char)word[i - 1]);
		bool ends = i + ID_LEN == len || !isalnum((unsigned char)word[i + ID_LEN]);

		/* "crio-conmon-ID", "libpod-conmon-ID": the container's monitor, not in it */
		if (i >= 7 && !memcmp(word + i - 7, "conmon-", 7))
			continue;
		if (begins && ends && is_hex(word + i, ID_LEN) && !memcmp(word + i, id, n)) {
			memcpy(found, word + i, ID_LEN);
			found[ID_LEN] = '\0';
			return true;
		}
	}
	return false;
}

/* Whether the text without systemd's escapes ("\\x2d") is equal to name. */
static bool is_escaped(const char *text, size_t len, const char *name)
{
	for (size_t i = 0; i < len; i++, name++) {
		char hex[3] = "", c = text[i];

		if (len - i >= 4 && text[i] == '\\' && text[i + 1] == 'x' &&
		    isxdigit((unsigned char)text[i + 2]) && isxdigit((unsigned char)text[i + 3])) {
			memcpy(hex, text + i + 2, 2);
			c = (char)strtol(hex, NULL, 16);
			i += 3;
		}
		if (!*name || *name != c)
			return false;
	}
	return !*name;
}

/* "systemd-nspawn@NAME.service", "machine-NAME.scope", "lxc.payload.NAME" */
static bool is_machine(const char *word, size_t len, const char *name, char found[256])
{
	static const struct {
		const char *before, *after;
	} forms[] = {{"systemd-nspawn@", ".service"}, {"machine-", ".scope"}, {"lxc.payload.", ""}};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		size_t before = strlen(forms[i].before), after = strlen(forms[i].after);

		if (len > before + after && !memcmp(word, forms[i].before, before) &&
		    !memcmp(word + len - after, forms[i].after, after) &&
		    is_escaped(word + before, len - before - after, name)) {
			snprintf(found, 256, "%s", name);
			return true;
		}
	}
	return false;
}

/* Adds the process if it is in the container. */
static int check_process(void *arg, pid_t pid)
{
	struct search *s = arg;
	char path[CGROUP_MAX], dir[CGROUP_MAX], found[256] = "", part[256];
	size_t end = 0; /* of the container's own part of the path */

	if (cgroup_of("", pid, path, NULL))
		return 0;
	for (const char *p = path; *p;) { /* the innermost counts */
		size_t len = strcspn(p, "/");

		if ((strlen(s->id) <= ID_LEN && is_hex(s->id, strlen(s->id)) &&
		     has_id(p, len, s->id, part)) ||
		    is_machine(p, len, s->id, part)) {
			strcpy(found, part);
			end = (size_t)(p - path) + len;
		}
		p += len + (p[len] == '/');
	}
	if (!*found)
		return 0;
	if (!*s->found)
		strcpy(s->found, found);
	if (strcmp(s->found, found)) {
		strcpy(s->other, found);
		return 0;
	}
	path[end] = '\0';
	if (!cgroup_find(path, dir) && selection_add_group(s->o, dir))
		return EX_USAGE;
	return add(s->o, pid);
}

int selection_add_container(struct selection *o, const char *id)
{
	struct search s = {.o = o, .id = id};
	uint32_t before = o->npids;
	int r;

	if (strlen(id) < SHORTEST || strlen(id) > 200)
		return -ENOENT;
	r = procfs_each_process(check_process, &s);
	if (r > 0)
		return r;
	if (r == -E2BIG)
		return selection_too_many();
	if (*s.other) {
		log_error("'%s' is more than one container: %.16s.., %.16s..: name more of its id",
			  id, s.found, s.other);
		return EX_USAGE;
	}
	return o->npids == before ? -ENOENT : 0;
}

/* ---- names ---- */

int selection_add_name(struct selection *o, enum name_kind kind, const char *text)
{
	if (o->nnames == SELECTION_MAX_NAMES) {
		log_error("'%s': more than %u names of units, pods and containers", text,
			  SELECTION_MAX_NAMES);
		return EX_USAGE;
	}
	o->names[o->nnames++] = (struct selection_name){kind, text};
	return 0;
}

int selection_add_discover(struct selection *o, const char *spec)
{
	if (o->ndiscover == SELECTION_MAX_DISCOVER) {
		log_error("--discover '%s': it can be given %u times at most", spec,
			  SELECTION_MAX_DISCOVER);
		return EX_USAGE;
	}
	o->discover[o->ndiscover++] = spec;
	return 0;
}

int selection_kinds(const struct selection *o)
{
	return (o->npids || o->nnames) + o->all + !!o->command;
}

void selection_fini(struct selection *o)
{
	found_free(o->found);
	o->found = NULL;
}
