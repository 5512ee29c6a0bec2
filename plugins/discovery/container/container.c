/* SPDX-License-Identifier: Apache-2.0 */
/* discovery "container": names, images and labels of containers, from the sockets of Docker,
 * Podman, containerd and CRI-O. */
#include <fusee/http_curl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon.h"

#define MAX_SOCKETS 64u

struct containers {
	struct fusee_self self;
	/* options, from here to poll */
	struct fusee_table sockets, labels;
	uint64_t poll;

	struct chosen *chosen;
	struct daemon_options o;
	struct daemon **daemons;
	uint32_t ndaemons;
	int timer; /* timerfd of the next deadline; -1: none */
	bool committed;
};

/* The prefixes of paths, and the part of a path by which its kind is recognized. */
static const struct {
	const char *word, *name;
	enum daemon_kind kind;
} kinds[] = {
	{"docker", "docker", DAEMON_DOCKER},
	{"podman", "podman", DAEMON_DOCKER},
	{"containerd", "containerd", DAEMON_CONTAINERD},
	{"cri", "crio", DAEMON_CRI},
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static const char *const well_known[] = {
	"/run/docker.sock",
	"/run/podman/podman.sock",
	"/run/containerd/containerd.sock",
	"/run/k3s/containerd/containerd.sock",
	"/run/crio/crio.sock",
};

/* ---- options ---- */

static int choose(struct containers *c)
{
	uint32_t n = 0;

	c->chosen = calloc(c->labels.n + 1, sizeof(*c->chosen));
	if (!c->chosen)
		return -ENOMEM;
	FUSEE_FOR_EACH (struct fusee_str, key, c->labels) {
		if (!key->len)
			return fusee_fail(&c->self, -EINVAL, "option 'labels': a key is empty");
		c->chosen[n].key = key->p;
		fusee_label_name(c->chosen[n++].name, key->p);
	}
	c->o.chosen = (struct chosen_list){c->chosen, n};
	return 0;
}

/* "/run/podman/podman.sock", or with a word before it: "cri:/run/containerd/containerd.sock". */
static int parse_socket(struct containers *c, const char *text, struct daemon_socket *at)
{
	const char *slash = strchr(text, '/'), *base = strrchr(text, '/');
	size_t word = slash ? (size_t)(slash - text) : 0;

	if (!slash || (word && text[word - 1] != ':'))
		return fusee_fail(&c->self, -EINVAL,
				  "option 'sockets': '%s' is no absolute path of a socket", text);
	at->path = slash;
	if (strlen(slash) >= sizeof(((struct sockaddr_un *)0)->sun_path))
		return fusee_fail(&c->self, -ENAMETOOLONG,
				  "option 'sockets': '%s' is longer than a socket's path can be",
				  text);
	for (size_t i = 0; i < KINDS; i++) {
		bool is = word ? word - 1 == strlen(kinds[i].word) &&
					  !strncmp(text, kinds[i].word, word - 1)
			       : strstr(base, kinds[i].name) != NULL;

		if (is) {
			at->kind = kinds[i].kind;
			return 0;
		}
	}
	return fusee_fail(&c->self, -EINVAL,
			  "option 'sockets': what answers at '%s'? Write 'docker:', 'podman:', "
			  "'containerd:' or 'cri:' before its path",
			  text);
}

static int add_daemon(struct containers *c, const char *text, bool optional)
{
	struct daemon_socket at = {.number = c->ndaemons, .optional = optional};
	int r = parse_socket(c, text, &at);

	if (r)
		return r;
	c->daemons[c->ndaemons] = daemon_new(&c->o, &at);
	return c->daemons[c->ndaemons++] ? 0 : -ENOMEM;
}

static int add_daemons(struct containers *c)
{
	int r = 0;

	if (c->sockets.n > MAX_SOCKETS)
		return fusee_fail(&c->self, -EINVAL, "option 'sockets': more than %u", MAX_SOCKETS);
	c->daemons = calloc(MAX_SOCKETS, sizeof(struct daemon *));
	if (!c->daemons)
		return -ENOMEM;
	FUSEE_FOR_EACH (struct fusee_str, path, c->sockets) {
		r = r ? r : add_daemon(c, path->p, false);
	}
	for (size_t i = 0; !c->sockets.n && i < sizeof(well_known) / sizeof(well_known[0]); i++)
		r = r ? r : add_daemon(c, well_known[i], true);
	return r;
}

/* ---- the host's callbacks ---- */

static int init(void *ctx, struct fusee_instance *in, const struct fusee_host *host)
{
	struct containers *c = ctx;
	int r;

	fusee_self_init(ctx, in, host);
	c->timer = -1;
	c->o.self = &c->self;
	c->o.period_ns = c->poll;
	r = choose(c);
	if (r)
		return r;
	c->o.client = client_new(&c->self);
	c->o.names = container_names_open(&c->self, c->o.chosen);
	if (!c->o.client || !c->o.names)
		return -ENOMEM;
	c->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	return c->timer < 0 ? -errno : add_daemons(c);
}

static void fini(void *ctx)
{
	struct containers *c = ctx;

	for (uint32_t i = 0; i < c->ndaemons; i++)
		daemon_free(c->daemons[i]);
	free(c->daemons);
	client_free(c->o.client);
	container_names_close(c->o.names);
	free(c->chosen);
	if (c->o.self && c->timer >= 0)
		close(c->timer);
}

static int arm(struct containers *c)
{
	uint64_t at = client_deadline(c->o.client), sweep = names_sweep(c->o.names, c->o.now_ns);

	at = at < sweep ? at : sweep;
	for (uint32_t i = 0; i < c->ndaemons; i++) {
		uint64_t due = daemon_deadline(c->daemons[i]);

		at = at < due ? at : due;
	}
	return fusee_http_loop_arm(c->timer, at);
}

static int commit(struct containers *c)
{
	for (uint32_t i = 0; i < c->ndaemons; i++)
		if (!daemon_is_settled(c->daemons[i]))
			return 0;
	c->committed = true;
	return c->self.host->discovery->commit(c->self.in);
}

/* Sends what is due, and sets the timer. */
static int go_on(struct containers *c)
{
	int r = 0, first = 0;

	for (uint32_t i = 0; i < c->ndaemons; i++) {
		r = daemon_go_on(c->daemons[i]);
		first = first ? first : r;
	}
	if (!c->committed) {
		r = commit(c);
		first = first ? first : r;
	}
	r = arm(c);
	return first ? first : r;
}

static int start(void *ctx)
{
	struct containers *c = ctx;
	int r = c->self.host->discovery->watch_fd(c->self.in, c->timer, EPOLLIN);

	c->o.now_ns = fusee_now(CLOCK_MONOTONIC);
	if (!r)
		r = c->self.host->discovery->begin(c->self.in);
	return r ? r : go_on(c);
}

static int ready(void *ctx, int fd, uint32_t events)
{
	struct containers *c = ctx;
	uint64_t n;

	c->o.now_ns = fusee_now(CLOCK_MONOTONIC);
	if (fd == c->timer && read(fd, &n, sizeof(n)) < 0 && errno != EAGAIN)
		return -errno;
	client_run(c->o.client, fd == c->timer ? -1 : fd, events, c->o.now_ns);
	return go_on(c);
}

static const struct fusee_option options[] = {
	FUSEE_OPTION_LIST(
		struct containers, sockets, "",
		"Sockets, with 'docker:', 'podman:', 'containerd:' or 'cri:' before paths "
		"that do not say it; empty: the usual sockets that exist."),
	FUSEE_OPTION_LIST(struct containers, labels, "",
			  "Keys of labels of containers that become labels, with '_' for what a "
			  "label's name cannot have."),
	FUSEE_OPTION_DURATION(struct containers, poll, "10s", FUSEE_SECOND, FUSEE_HOUR,
			      "Time between lists of a socket that has no events."),
};

static const struct fusee_discovery_ops ops = {.size = sizeof(ops), .start = start, .ready = ready};

FUSEE_PLUGIN(container, FUSEE_DISCOVERY, .version = "1.0",
	     .doc = "Labels containers with names, images and labels of Docker, Podman, containerd "
		    "and CRI-O.",
	     .options = FUSEE_TABLE(options), .ctx_size = sizeof(struct containers), .init = init,
	     .fini = fini, .ops = &ops);
