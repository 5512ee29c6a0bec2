/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discovery "cgroup": a target for each control group, labelled with its path and its container.
 * inotify reports new and removed groups. The trees are read at the start, and again when the
 * kernel's inotify queue has overflowed.
 */
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <fusee/helpers.h>

#include "container.h"
#include "mounts.h"

#define BUCKETS 4096u
#define MAX_PATH 4096u
#define MAX_DEPTH 64u          /* of nested groups: the kernel has no limit of its own */
#define RESCAN_NS FUSEE_MINUTE /* between scans while some groups cannot be watched */
#define RETRY_NS FUSEE_SECOND  /* between scans while memory is short */

/* A directory of one hierarchy. */
struct node {
	struct node *next;
	int wd;        /* inotify watch; -1: the directory cannot be watched */
	uint32_t tree; /* index into trees */
	char *path;    /* owned; in the hierarchy: "/a/b" */
};

/* A path that exists in at least one hierarchy: one target, if the options select it. */
struct group {
	struct group *next;
	char *path;
	struct node *nodes[MAX_TREES]; /* its directory in each hierarchy; NULL: none */
};

struct cgroup {
	struct fusee_self self;
	const char *root; /* options, from here to max */
	struct fusee_table match;
	uint8_t containers;
	int64_t max;

	int inotify;
	struct tree *trees;
	uint32_t ntrees, nnodes;
	struct node *nodes[BUCKETS];   /* by wd */
	struct group *groups[BUCKETS]; /* by path */
	bool warned_limit, warned_depth, warned_watches;
	bool retrying; /* memory was short: the timer starts a scan after RETRY_NS */
};

/* ---- targets ---- */

static struct group **place_of(struct cgroup *c, const char *path)
{
	struct group **at = &c->groups[fusee_text_hash(path) % BUCKETS];

	while (*at && strcmp((*at)->path, path))
		at = &(*at)->next;
	return at;
}

static bool is_selected(const struct cgroup *c, const char *path, bool container)
{
	if (c->containers && !container)
		return false;
	return !c->match.n || fusee_text_matches(c->match, path);
}

static int put(struct cgroup *c, const char *path)
{
	struct fusee_label labels[4];
	struct fusee_target t = FUSEE_SIZED(struct fusee_target, .match = FUSEE_MATCH_CGROUP,
					    .key = fusee_text(path), .cgroup = fusee_text(path),
					    .labels = {labels, 0, sizeof(labels[0])});
	struct container at;
	char uid[POD_UID];
	bool container = container_of(path, &at);

	if (!is_selected(c, path, container))
		return 0;
	labels[t.labels.n++] = fusee_text_label("cgroup", path);
	if (container)
		labels[t.labels.n++] = fusee_text_label("container_id", at.id);
	if (container && *at.runtime)
		labels[t.labels.n++] = fusee_text_label("container_runtime", at.runtime);
	if (container_pod_uid(path, uid))
		labels[t.labels.n++] = fusee_text_label("pod_uid", uid);
	return c->self.host->discovery->put(c->self.in, &t);
}

static bool has_no_node(const struct group *g)
{
	for (uint32_t i = 0; i < MAX_TREES; i++)
		if (g->nodes[i])
			return false;
	return true;
}

/* Adds a directory to its group; the first directory of a group puts the target. */
static int group_add(struct cgroup *c, struct node *n)
{
	struct group **at = place_of(c, n->path), *g = *at;
	bool first;

	if (!g) {
		g = calloc(1, sizeof(*g));
		if (!g || !(g->path = strdup(n->path))) {
			free(g);
			return -ENOMEM;
		}
		*at = g;
	}
	first = has_no_node(g);
	g->nodes[n->tree] = n;
	return first ? put(c, n->path) : 0;
}

/* Removes a directory from its group; the last directory of a group deletes the target. */
static void group_remove(struct cgroup *c, const struct node *n)
{
	struct group **at = place_of(c, n->path), *g = *at;

	if (!g || g->nodes[n->tree] != n)
		return;
	g->nodes[n->tree] = NULL;
	if (!has_no_node(g))
		return;
	c->self.host->discovery->del(c->self.in, fusee_text(g->path));
	*at = g->next;
	free(g->path);
	free(g);
}

/* ---- directories ---- */

static struct node **node_of(struct cgroup *c, int wd)
{
	struct node **at = &c->nodes[(uint32_t)wd % BUCKETS];

	while (*at && (*at)->wd != wd)
		at = &(*at)->next;
	return at;
}

static void drop_node(struct cgroup *c, struct node **at)
{
	struct node *n = *at;

	*at = n->next;
	group_remove(c, n);
	c->nnodes--;
	free(n->path);
	free(n);
}

static int warn_watches(struct cgroup *c, int err)
{
	fusee_count(&c->self, "unwatched", 1);
	if (c->warned_watches)
		return 0;
	if (c->self.host->discovery->timer(c->self.in, RESCAN_NS) == -ENOMEM)
		return -ENOMEM;
	c->warned_watches = true;
	if (err == ENOSPC)
		fusee_log(&c->self, FUSEE_WARNING,
			  "not all control groups can be watched: raise "
			  "fs.inotify.max_user_watches; new groups in the others are found late");
	else
		fusee_log(&c->self, FUSEE_WARNING, "a control group cannot be watched: %s",
			  strerror(err));
	return 0;
}

static bool is_full(struct cgroup *c)
{
	if ((int64_t)c->nnodes < c->max)
		return false;
	fusee_count(&c->self, "ignored", 1);
	if (!c->warned_limit)
		fusee_log(&c->self, FUSEE_WARNING,
			  "more than %lld control groups: the others are ignored (option 'max')",
			  (long long)c->max);
	c->warned_limit = true;
	return true;
}

static void join(char *out, const char *a, const char *b, const char *name)
{
	snprintf(out, MAX_PATH, "%.2000s%.1500s%s%.500s", a, strcmp(b, "/") ? b : "",
		 *name ? "/" : "", name);
}

static int add_tree(struct cgroup *c, uint32_t tree, const char *path);

/* Adds the directories below `path`. The path is watched already, so no directory is missed. */
static int scan(struct cgroup *c, uint32_t tree, const char *path)
{
	char dir[MAX_PATH], child[MAX_PATH];
	struct dirent *e;
	DIR *d;
	int r = 0;

	join(dir, c->trees[tree].point, path, "");
	d = opendir(dir);
	if (!d && errno == ENOMEM)
		return -ENOMEM;
	while (d && !r && (e = readdir(d))) {
		if (e->d_type != DT_DIR || !strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		join(child, "", path, e->d_name);
		r = add_tree(c, tree, child);
	}
	if (d)
		closedir(d);
	return r;
}

/* Drops the node of a directory that was removed, or replaced under the same path. */
static void drop_old(struct cgroup *c, struct node *old)
{
	struct node **at = &c->nodes[(uint32_t)old->wd % BUCKETS];

	while (*at != old)
		at = &(*at)->next;
	/* cgroupfs keeps the watch of a removed directory, and with it the inode */
	if (old->wd >= 0)
		inotify_rm_watch(c->inotify, old->wd);
	drop_node(c, at);
}

static bool is_too_deep(struct cgroup *c, const char *path)
{
	uint32_t depth = 0;

	for (const char *p = path; *p; p++)
		depth += *p == '/';
	if (depth <= MAX_DEPTH && strlen(path) <= MAX_PATH / 4)
		return false;
	fusee_count(&c->self, "ignored", 1);
	if (!c->warned_depth)
		fusee_log(
			&c->self, FUSEE_WARNING,
			"control groups more than 64 levels deep, or with paths of more than 1024 "
			"bytes, are ignored: their processes count as those of the group above");
	c->warned_depth = true;
	return true;
}

static int new_node(struct cgroup *c, uint32_t tree, int wd, const char *full)
{
	struct node *n = calloc(1, sizeof(*n));

	if (!n || !(n->path = strdup(full))) {
		free(n);
		return -ENOMEM;
	}
	n->wd = wd;
	n->tree = tree;
	n->next = c->nodes[(uint32_t)wd % BUCKETS];
	c->nodes[(uint32_t)wd % BUCKETS] = n;
	c->nnodes++;
	return group_add(c, n);
}

/* Brings the nodes of a path up to date: watches its directory and all below it, or drops the node
 * of a directory that was removed. */
static int add_tree(struct cgroup *c, uint32_t tree, const char *path)
{
	char dir[MAX_PATH], full[MAX_PATH];
	struct group *g;
	struct node *old;
	int wd, r = 0;

	if (is_too_deep(c, path))
		return 0;
	join(full, c->trees[tree].root, path, "");
	if (!*full)
		strcpy(full, "/");
	g = *place_of(c, full);
	old = g ? g->nodes[tree] : NULL;
	if (!old && is_full(c))
		return 0;
	join(dir, c->trees[tree].point, path, "");
	wd = inotify_add_watch(c->inotify, dir,
			       IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_MOVE_SELF | IN_DELETE_SELF |
				       IN_ONLYDIR | IN_DONT_FOLLOW);
	if (wd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
		if (old)
			drop_old(c, old);
		return 0;
	}
	if (wd < 0)
		r = warn_watches(c, errno);
	if (r || (old && old->wd == wd))
		return r; /* found earlier */
	if (old)
		drop_old(c, old);
	if (wd >= 0 && *node_of(c, wd))
		return 0; /* found under another path, by a mount within the tree */
	r = new_node(c, tree, wd, full);
	return r ? r : scan(c, tree, path);
}

/* ---- complete scans ---- */

static void drop_all(struct cgroup *c)
{
	for (uint32_t i = 0; i < BUCKETS; i++) {
		for (struct node *n = c->nodes[i], *next; n; n = next) {
			next = n->next;
			free(n->path);
			free(n);
		}
		for (struct group *g = c->groups[i], *next; g; g = next) {
			next = g->next;
			free(g->path);
			free(g);
		}
		c->nodes[i] = NULL;
		c->groups[i] = NULL;
	}
	c->nnodes = 0;
	if (c->inotify >= 0)
		close(c->inotify);
	c->inotify = -1;
}

/* Reads all hierarchies and puts all targets. 0 or -errno. */
static int read_all(struct cgroup *c)
{
	int r = c->self.host->discovery->begin(c->self.in);

	if (r)
		return r;
	c->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	r = c->inotify < 0 ? -errno
			   : c->self.host->discovery->watch_fd(c->self.in, c->inotify, EPOLLIN);
	c->ntrees = 0;
	r = r ? r : mounts_find(c->root, c->trees, &c->ntrees);
	for (uint32_t i = 0; !r && i < c->ntrees; i++)
		r = add_tree(c, i, "/");
	if (r != -ENOMEM) /* an incomplete scan must not remove targets */
		c->self.host->discovery->commit(c->self.in);
	return r;
}

static int cgroup_start(void *ctx)
{
	struct cgroup *c = ctx;
	int r = read_all(c);

	if (!r && !c->ntrees)
		fusee_log(&c->self, FUSEE_INFO,
			  "no control groups are mounted: processes have no cgroup labels");
	if (!r)
		return 0;
	return fusee_fail(&c->self, r, "cannot watch control groups: %s%s", strerror(-r),
			  r == -EMFILE ? " (fs.inotify.max_user_instances)" : "");
}

/* Starts a timer for a complete scan after -ENOMEM: no event will report the missing groups.
 * Returns r, or -ENOMEM if the timer cannot be set. */
static int retry(struct cgroup *c, int r)
{
	uint64_t ns = r == -ENOMEM ? RETRY_NS : c->warned_watches ? RESCAN_NS : 0;

	if (r == -ENOMEM || c->retrying)
		r = c->self.host->discovery->timer(c->self.in, ns) && !r ? -ENOMEM : r;
	c->retrying = r == -ENOMEM;
	return r;
}

/* The path of a watched directory below the mount point of its hierarchy. */
static const char *path_below_mount(const struct cgroup *c, const struct node *n)
{
	size_t root = strlen(c->trees[n->tree].root);

	return n->path[root] ? n->path + root : "/";
}

static int rescan(struct cgroup *c)
{
	fusee_count(&c->self, "rescans", 1);
	c->self.host->discovery->watch_fd(c->self.in, c->inotify, 0);
	drop_all(c);
	return read_all(c);
}

static int cgroup_tick(void *ctx)
{
	return retry(ctx, rescan(ctx));
}

static int on_event(struct cgroup *c, const struct inotify_event *e)
{
	struct node **at = node_of(c, e->wd);
	char child[MAX_PATH];

	if (!*at)
		return 0;
	if (e->mask & IN_IGNORED) {
		drop_node(c, at);
		return 0;
	}
	/* only the parent reports a removed group: in cgroupfs the group's own watch stays */
	if (!(e->mask & (IN_CREATE | IN_DELETE | IN_MOVED_TO)) || !(e->mask & IN_ISDIR) || !e->len)
		return 0;
	join(child, "", path_below_mount(c, *at), e->name);
	return add_tree(c, (*at)->tree, child);
}

static int read_events(struct cgroup *c, int fd)
{
	_Alignas(struct inotify_event) char buf[16384];
	ssize_t n;
	int r = 0;

	while (!r && (n = read(fd, buf, sizeof(buf))) > 0)
		for (char *p = buf; !r && p < buf + n;) {
			const struct inotify_event *e = (const void *)p;

			/* v1 can rename a group: all groups below it have other paths then */
			if (e->mask & (IN_Q_OVERFLOW | IN_MOVE_SELF))
				return rescan(c);
			r = on_event(c, e);
			p += sizeof(*e) + e->len;
		}
	return r;
}

static int cgroup_ready(void *ctx, int fd, uint32_t events)
{
	(void)events;
	return retry(ctx, read_events(ctx, fd));
}

static int cgroup_init(void *ctx, struct fusee_instance *in, const struct fusee_host *host)
{
	struct cgroup *c = ctx;

	fusee_self_init(ctx, in, host);
	c->inotify = -1;
	c->trees = calloc(MAX_TREES, sizeof(*c->trees));
	return c->trees ? 0 : -ENOMEM;
}

static void cgroup_fini(void *ctx)
{
	struct cgroup *c = ctx;

	if (!c->trees) /* init() failed before it opened anything */
		return;
	drop_all(c);
	free(c->trees);
}

static const struct fusee_option options[] = {
	FUSEE_OPTION_LIST(struct cgroup, match, "",
			  "Only control groups whose path matches one of these globs."),
	FUSEE_OPTION_BOOL(struct cgroup, containers, "false", "Only control groups of containers."),
	FUSEE_OPTION_STRING(struct cgroup, root, "",
			    "A folder with the layout of /sys/fs/cgroup, in place of the mounted "
			    "hierarchies."),
	FUSEE_OPTION_INT(struct cgroup, max, "50000", 1, 1000000,
			 "Most control groups that are watched."),
};

static const struct fusee_discovery_ops ops = {
	.size = sizeof(ops),
	.start = cgroup_start,
	.ready = cgroup_ready,
	.tick = cgroup_tick,
};

FUSEE_PLUGIN(cgroup, FUSEE_DISCOVERY, .version = "1.0",
	     .doc = "Labels processes with their control group and container.",
	     .options = FUSEE_TABLE(options), .ctx_size = sizeof(struct cgroup),
	     .init = cgroup_init, .fini = cgroup_fini, .ops = &ops);
