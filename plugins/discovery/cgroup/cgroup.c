/* SPDX-License-Identifier: Apache-2.0 */
/* discovery "cgroup": a target for each control group, with the container that it is of. Groups are
 * followed by inotify; the trees are read once, and again where the kernel's queue overflowed. */
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <fusee/plugin.h>

#include "container.h"
#include "mounts.h"

#define BUCKETS 4096u
#define MAX_PATH 4096u
#define MAX_DEPTH 64u          /* of groups below groups: the kernel has no limit of its own */
#define RESCAN_NS 60000000000u /* where not everything can be watched */
#define AGAIN_NS 1000000000u   /* where memory was short: until all is seen */

/* A directory that is watched. */
struct node {
	struct node *next;
	int wd;        /* -1: it could not be watched */
	uint32_t tree; /* index */
	char *path;    /* in its hierarchy: "/a/b" */
};

/* A path that has been put; it may stand in several hierarchies. */
struct group {
	struct group *next;
	char *path;
	struct node *nodes[MAX_TREES]; /* its directory in each; NULL: not there */
};

struct cgroup {
	struct fusee_instance *in;
	const struct fusee_host *host;
	const char *root; /* options */
	struct fusee_table match;
	uint8_t containers;
	int64_t max;

	int inotify;
	struct tree *trees;
	uint32_t ntrees, nnodes;
	struct node *nodes[BUCKETS];   /* by wd */
	struct group *groups[BUCKETS]; /* by path */
	bool said_limit, said_depth, said_watches;
	bool again; /* not everything was seen: the timer looks soon */
};

static void say(struct cgroup *c, int level, const char *text)
{
	c->host->log(c->in, level, text);
}

/* ---- targets ---- */

static uint32_t hash_of(const char *path)
{
	uint32_t h = 2166136261u;

	for (; *path; path++)
		h = (h ^ (unsigned char)*path) * 16777619u;
	return h % BUCKETS;
}

static struct group **place_of(struct cgroup *c, const char *path)
{
	struct group **at = &c->groups[hash_of(path)];

	while (*at && strcmp((*at)->path, path))
		at = &(*at)->next;
	return at;
}

static bool is_wanted(const struct cgroup *c, const char *path, bool container)
{
	if (c->containers && !container)
		return false;
	for (uint32_t i = 0; i < c->match.n; i++)
		if (!fnmatch(FUSEE_AT(struct fusee_str, c->match, i)->p, path, 0))
			return true;
	return !c->match.n;
}

static struct fusee_str str(const char *text)
{
	return (struct fusee_str){text, strlen(text)};
}

static int put(struct cgroup *c, const char *path)
{
	struct fusee_label labels[3];
	struct fusee_target t = {
		.size = sizeof(t),
		.match = FUSEE_MATCH_CGROUP,
		.key = str(path),
		.cgroup = str(path),
		.labels = {labels, 0, sizeof(labels[0])},
	};
	struct container at;
	bool container = container_of(path, &at);

	if (!is_wanted(c, path, container))
		return 0;
	labels[t.labels.n++] = (struct fusee_label){.key = str("cgroup"), .str = str(path)};
	if (container)
		labels[t.labels.n++] = (struct fusee_label){.key = str("container_id"),
							    .str = str(at.id)};
	if (container && *at.runtime)
		labels[t.labels.n++] = (struct fusee_label){.key = str("container_runtime"),
							    .str = str(at.runtime)};
	return c->host->discovery->put(c->in, &t);
}

static bool is_nowhere(const struct group *g)
{
	for (uint32_t i = 0; i < MAX_TREES; i++)
		if (g->nodes[i])
			return false;
	return true;
}

static int enter(struct cgroup *c, struct node *n)
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
	first = is_nowhere(g);
	g->nodes[n->tree] = n;
	return first ? put(c, n->path) : 0;
}

static void leave(struct cgroup *c, const struct node *n)
{
	struct group **at = place_of(c, n->path), *g = *at;

	if (!g || g->nodes[n->tree] != n)
		return;
	g->nodes[n->tree] = NULL;
	if (!is_nowhere(g))
		return;
	c->host->discovery->del(c->in, str(g->path));
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
	leave(c, n);
	c->nnodes--;
	free(n->path);
	free(n);
}

static int warn_watches(struct cgroup *c, int err)
{
	char text[256];

	c->host->count(c->in, "unwatched", NULL, 0, 1);
	if (c->said_watches)
		return 0;
	if (c->host->discovery->timer(c->in, RESCAN_NS) == -ENOMEM)
		return -ENOMEM;
	c->said_watches = true;
	snprintf(text, sizeof(text),
		 err == ENOSPC
			 ? "control groups cannot all be watched: raise "
			   "fs.inotify.max_user_watches; what begins in the others is seen late"
			 : "a control group cannot be watched: %s",
		 strerror(err));
	say(c, FUSEE_WARNING, text);
	return 0;
}

static bool is_full(struct cgroup *c)
{
	char text[128];

	if ((int64_t)c->nnodes < c->max)
		return false;
	c->host->count(c->in, "left_out", NULL, 0, 1);
	if (!c->said_limit) {
		snprintf(text, sizeof(text),
			 "more than %lld control groups: the rest is left out (option 'max')",
			 (long long)c->max);
		say(c, FUSEE_WARNING, text);
	}
	c->said_limit = true;
	return true;
}

static void join(char *out, const char *a, const char *b, const char *name)
{
	snprintf(out, MAX_PATH, "%.2000s%.1500s%s%.500s", a, strcmp(b, "/") ? b : "",
		 *name ? "/" : "", name);
}

static int add_tree(struct cgroup *c, uint32_t tree, const char *path);

/* Directories below one that is watched already: none can be missed. */
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

/* The directory of a path that is another one now, or none. */
static void drop_old(struct cgroup *c, struct node *old)
{
	struct node **at = &c->nodes[(uint32_t)old->wd % BUCKETS];

	while (*at != old)
		at = &(*at)->next;
	/* cgroupfs keeps a removed directory's watch, and its inode with it */
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
	c->host->count(c->in, "left_out", NULL, 0, 1);
	if (!c->said_depth)
		say(c, FUSEE_WARNING,
		    "control groups that lie more than 64 deep, or have paths of more than 1024 "
		    "bytes, are left out: their processes count as those of the group above");
	c->said_depth = true;
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
	return enter(c, n);
}

/* What a path is now: watches its directory and all below it, forgets one that is gone. */
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
		return r; /* met on another way */
	if (old)
		drop_old(c, old);
	if (wd >= 0 && *node_of(c, wd))
		return 0; /* under another path: a mount within the tree */
	r = new_node(c, tree, wd, full);
	return r ? r : scan(c, tree, path);
}

/* ---- all of it ---- */

static void forget_all(struct cgroup *c)
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

static int read_all(struct cgroup *c)
{
	int r = c->host->discovery->begin(c->in);

	if (r)
		return r;
	c->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	r = c->inotify < 0 ? -errno : c->host->discovery->watch_fd(c->in, c->inotify, EPOLLIN);
	c->ntrees = 0;
	r = r ? r : mounts_find(c->root, c->trees, &c->ntrees);
	for (uint32_t i = 0; !r && i < c->ntrees; i++)
		r = add_tree(c, i, "/");
	if (r != -ENOMEM) /* then it is half of what there is */
		c->host->discovery->commit(c->in);
	return r;
}

static int cgroup_start(void *ctx)
{
	struct cgroup *c = ctx;
	char text[512];
	int r = read_all(c);

	if (!r && !c->ntrees)
		say(c, FUSEE_INFO,
		    "no control groups are mounted here: processes have no cgroup labels");
	if (!r)
		return 0;
	snprintf(text, sizeof(text), "cannot watch control groups: %s%s", strerror(-r),
		 r == -EMFILE ? " (fs.inotify.max_user_instances)" : "");
	return c->host->fail(c->in, r, text);
}

/* What was not seen for want of memory is nowhere else to be learned: all is looked at again. */
static int again(struct cgroup *c, int r)
{
	uint64_t ns = r == -ENOMEM ? AGAIN_NS : c->said_watches ? RESCAN_NS : 0;

	if (r == -ENOMEM || c->again)
		r = c->host->discovery->timer(c->in, ns) && !r ? -ENOMEM : r;
	c->again = r == -ENOMEM;
	return r;
}

/* The path of a watched directory as it stands under its mount. */
static const char *below(const struct cgroup *c, const struct node *n)
{
	size_t root = strlen(c->trees[n->tree].root);

	return n->path[root] ? n->path + root : "/";
}

static int rescan(struct cgroup *c)
{
	c->host->count(c->in, "rescans", NULL, 0, 1);
	c->host->discovery->watch_fd(c->in, c->inotify, 0);
	forget_all(c);
	return read_all(c);
}

static int cgroup_tick(void *ctx)
{
	return again(ctx, rescan(ctx));
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
	/* A group that is gone is told by its parent alone: in cgroupfs its own watch stays */
	if (!(e->mask & (IN_CREATE | IN_DELETE | IN_MOVED_TO)) || !(e->mask & IN_ISDIR) || !e->len)
		return 0;
	join(child, "", below(c, *at), e->name);
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

			/* v1 can rename a group: all below it has other paths then */
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
	return again(ctx, read_events(ctx, fd));
}

static int cgroup_init(void *ctx, struct fusee_instance *in, const struct fusee_host *host)
{
	struct cgroup *c = ctx;

	c->in = in;
	c->host = host;
	c->inotify = -1;
	c->trees = calloc(MAX_TREES, sizeof(*c->trees));
	return c->trees ? 0 : -ENOMEM;
}

static void cgroup_fini(void *ctx)
{
	struct cgroup *c = ctx;

	if (!c->trees) /* init failed: no descriptor is ours */
		return;
	forget_all(c);
	free(c->trees);
}

#define OPTION(field) .name = #field, .offset = offsetof(struct cgroup, field)
static const struct fusee_option options[] = {
	{OPTION(match), .type = FUSEE_LIST, .def = "",
	 .doc = "Only control groups whose path matches one of these globs."},
	{OPTION(containers), .type = FUSEE_BOOL, .def = "false",
	 .doc = "Only control groups of containers."},
	{OPTION(root), .type = FUSEE_STRING, .def = "",
	 .doc = "A folder that is laid out like /sys/fs/cgroup, in place of what is mounted."},
	{OPTION(max), .type = FUSEE_INT, .def = "50000", .min = 1, .max = 1000000,
	 .doc = "At most so many control groups are watched."},
};

static const struct fusee_discovery_ops ops = {
	.size = sizeof(ops),
	.start = cgroup_start,
	.ready = cgroup_ready,
	.tick = cgroup_tick,
};

FUSEE_PLUGIN(cgroup, FUSEE_DISCOVERY, .version = "1.0",
	     .doc = "Labels processes with their control group and container.",
	     .options = {options, sizeof(options) / sizeof(options[0]), sizeof(options[0])},
	     .ctx_size = sizeof(struct cgroup), .init = cgroup_init, .fini = cgroup_fini,
	     .ops = &ops);
