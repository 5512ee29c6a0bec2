// SPDX-License-Identifier: Apache-2.0
#include "record/debuginfod.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dict.h"
#include "base/log.h"
#include "base/text.h"
#include "base/utf8.h"
#include "profiler/fetching.h"
#include "record/internal/hints.h"
#include "console/package.h"
#include "fetcher/fetcher.h"

#define MS 1000000u
#define NAMED 5u /* files that are printed with the same reason */

/* ---- the command line ---- */

int debuginfod_set(const struct cli_command *command, struct session_options *o, const char *value)
{
	bool env = !strcmp(value, "env");
	const char *servers = env ? getenv("DEBUGINFOD_URLS") : value, *wrong;

	if (!servers || !servers[strspn(servers, " ,")])
		return cli_bad_usage(command, env ? "--debuginfod env: DEBUGINFOD_URLS is not set"
						  : "--debuginfod: no server is named");
	wrong = fetcher_wrong_servers(servers);
	if (wrong)
		return cli_bad_address(command, "debuginfod", servers, wrong);
	o->servers = servers;
	return 0;
}

int debuginfod_open(struct session *s)
{
	uint64_t ms = s->o.servers_wait_ns / MS;
	int r;

	if (!s->o.servers)
		return 0;
	r = fetching_set_servers(&s->profiler, s->o.servers,
				 ms < UINT32_MAX / 2 ? (uint32_t)ms : UINT32_MAX / 2);
	if (r)
		log_error("--debuginfod: %s",
			  r == -ENOENT  ? "it needs the cache, to keep files in"
			  : r == -EPERM ? "its folder in the cache must be yours, and not "
					  "writable by others"
					: strerror(-r));
	return !r ? 0 : r == -ENOENT ? EX_USAGE : EX_CANTCREAT;
}

/* ---- waiting ---- */

/* A signal ends the wait for files that have not been fetched yet. */
static bool is_interrupted(struct session *s)
{
	struct signalfd_siginfo info;
	bool interrupted = false;

	while (read(s->signals, &info, sizeof(info)) == sizeof(info))
		interrupted |= info.ssi_signo != SIGCHLD;
	s->hurried |= interrupted;
	return interrupted;
}

static void show(const struct session *s, uint32_t pending)
{
	if (!isatty(STDERR_FILENO) || !s->o.tick)
		return;
	fprintf(stderr, "\r\033[K  debuginfod: %u files to come (Ctrl-C goes on without)", pending);
	fflush(stderr);
}

/* false: the time is over, or a signal came. */
static bool wait_for_files(struct session *s, uint64_t deadline)
{
	struct worker *w = s->profiler.worker;
	struct fetcher *f = worker_fetcher(w);
	bool going = true;
	uint64_t now;

	while (going && fetcher_pending(f) && (now = clock_now()) < deadline) {
		struct pollfd fds[] = {{.fd = worker_fd(w), .events = POLLIN},
				       {.fd = s->signals, .events = POLLIN}};

		show(s, fetcher_pending(f));
		if (poll(fds, 2, (int)((deadline - now) / MS) + 1) > 0)
			worker_dispatch(w);
		going = !is_interrupted(s);
	}
	if (isatty(STDERR_FILENO) && s->o.tick)
		fputs("\r\033[K", stderr);
	return !fetcher_pending(f);
}

static void on_symbolized(void *arg)
{
	(void)arg;
}

int debuginfod_wait(struct session *s, const struct collector *c)
{
	uint64_t deadline = clock_now() + s->o.servers_wait_ns;
	struct profiler *p = &s->profiler;
	bool going = s->o.servers;
	int r = 0;

	/* A debug file may name a dwz file, which is then requested too. */
	while (!r && going && fetching_request(p, c)) {
		going = wait_for_files(s, deadline);
		if (!going)
			fetcher_give_up(worker_fetcher(p->worker));
		r = symbolizer_request(p->symbolizer, c, false, 0, on_symbolized, NULL);
		if (!r)
			r = worker_wait_until(p->worker, 0);
	}
	return r;
}

/* ---- what became of it ---- */

struct account {
	uint32_t fetched, kept;
	uint64_t bytes;
	const struct fetcher_file *one; /* whose reason is printed */
	uint32_t same;                  /* with that reason */
	struct buf names;
	struct dict named;       /* paths with that reason */
	const char *printed[64]; /* reasons */
	uint32_t nprinted;
};

static bool is_missing(const struct fetcher_file *f)
{
	return f->state == FETCHER_MISSING || f->state == FETCHER_FAILED ||
	       f->state == FETCHER_LATE;
}

static void count(void *arg, const struct fetcher_file *f)
{
	struct account *a = arg;

	a->fetched += f->state == FETCHER_HERE && f->bytes;
	a->kept += f->state == FETCHER_HERE && !f->bytes;
	a->bytes += f->state == FETCHER_HERE ? f->bytes : 0;
}

static bool is_printed(const struct account *a, const char *text)
{
	for (uint32_t i = 0; i < a->nprinted; i++)
		if (!strcmp(a->printed[i], text))
			return true;
	return false;
}

/* Collects the names of the files with the first reason that was not printed. */
static void collect(void *arg, const struct fetcher_file *f)
{
	struct account *a = arg;
	const char *base = strrchr(f->name, '/');
	const char *reason = a->nprinted ? a->printed[a->nprinted - 1] : NULL;
	uint32_t n = a->named.n;

	if (!is_missing(f))
		return;
	if (!a->same && !is_printed(a, f->text) && a->nprinted < 64)
		reason = a->printed[a->nprinted++] = f->text;
	else if (!a->same || !reason || strcmp(reason, f->text))
		return;
	/* a debug file and its dwz file count as one file that lacks names */
	if (dict_str(&a->named, f->name) != DICT_NONE && a->named.n == n)
		return;
	if (a->same++ >= NAMED)
		return;
	buf_str(&a->names, a->same > 1 ? ", " : "");
	base = base ? base + 1 : f->name;
	utf8_clean_printable(&a->names, base, strlen(base));
}

void debuginfod_print(const struct session *s)
{
	const struct fetcher *f = worker_fetcher(s->profiler.worker);
	struct account a = {0};
	char size[32];

	if (!s->o.servers)
		return;
	fetcher_each(f, count, &a);
	if (a.fetched || a.kept)
		fprintf(stderr, "  debuginfod: %u file%s fetched (%s), %u from the cache\n",
			a.fetched, a.fetched == 1 ? "" : "s", text_bytes(size, a.bytes), a.kept);
	for (;;) {
		a.same = 0;
		buf_reset(&a.names);
		if (dict_init(&a.named)) {
			log_error("debuginfod: which files are missing is not known: no memory");
			break;
		}
		fetcher_each(f, collect, &a);
		dict_fini(&a.named);
		if (!a.same)
			break;
		fprintf(stderr, "  debuginfod: without %.*s", (int)a.names.len,
			a.names.p ? a.names.p : "");
		if (a.same > NAMED)
			fprintf(stderr, " and %u more", a.same - NAMED);
		fprintf(stderr, ": %s\n", a.printed[a.nprinted - 1]);
	}
	buf_fini(&a.names);
}

/* ---- the hint ---- */

/* Servers of distributions, by ID of os-release(5). */
static const struct {
	const char *id, *server;
} servers[] = {
	{"debian", "https://debuginfod.debian.net"},
	{"ubuntu", "https://debuginfod.ubuntu.com"},
	{"fedora", "https://debuginfod.fedoraproject.org"},
	{"arch", "https://debuginfod.archlinux.org"},
	{"opensuse-tumbleweed", "https://debuginfod.opensuse.org"},
};

/* NULL: none is known. */
static const char *server_of_distribution(void)
{
	char id[64];

	package_release("ID", id);
	for (size_t i = 0; i < sizeof(servers) / sizeof(servers[0]); i++)
		if (!strcmp(id, servers[i].id))
			return servers[i].server;
	return NULL;
}

/* Whether the distribution installs files in this folder. */
static bool is_installed(const char *path)
{
	static const char *const folders[] = {"/usr/", "/lib/", "/lib64/", "/bin/", "/sbin/"};

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		if (!strncmp(path, folders[i], strlen(folders[i])))
			return strncmp(path, "/usr/local/", 11);
	return false;
}

bool debuginfod_hint(const struct session *s, const char *path, struct buf *b)
{
	const char *env = getenv("DEBUGINFOD_URLS"), *server;

	if (s->o.servers || !s->o.cache)
		return false;
	server = env && env[strspn(env, " ,")] ? "env"
		 : is_installed(path)          ? server_of_distribution()
					       : NULL;
	if (server)
		buf_printf(b, "--debuginfod %s", server);
	return server;
}
