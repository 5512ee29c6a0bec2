// SPDX-License-Identifier: Apache-2.0
/* The agent's side of fetching: the requested files, the processes and their time limits. */
#include "fetcher/fetcher.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/poller.h"
#include "base/text.h"
#include "sandbox/spawn.h"
#include "fetcher/internal/protocol.h"

#define S 1000000000ull
#define PROCESSES 4u
#define MOST_FILES 4096u
#define AGAIN_S 3600u    /* after which a file that no server sent is requested again */
#define GRACE_NS (2 * S) /* lets the process end by itself first, with a reason */
#define FD "3"           /* the process's end of the socket */

struct requested {
	uint8_t id[FETCHER_ID_MAX];
	uint32_t len;
	enum fetcher_state state;
	bool sent;
	char *name, *text; /* text: NULL: none */
	uint64_t bytes;
	uint64_t again; /* CLOCK_MONOTONIC ns: when to request a missing file again */
};

/* A time in which no file is requested, and why. */
struct pause {
	uint64_t until; /* CLOCK_MONOTONIC ns */
	int err;
	char text[sizeof(((struct fetcher_reply_message *)0)->text)];
};

struct process {
	pid_t pid; /* 0: none; the other fields are undefined then */
	int sock, pidfd;
	bool killed; /* its socket is closed */
	uint32_t file;
	uint64_t deadline;
};

struct fetcher {
	char *folder, *servers; /* servers: separated by blanks; "": none */
	uint32_t file_ms;
	void (*arrived)(void *arg, const uint8_t *build_id, uint32_t len);
	void *arg;
	struct poller poller;
	struct requested *files;
	uint32_t n, pending;
	size_t room;       /* of files */
	uint32_t failures; /* in a row */
	struct pause pause;
	bool obstacle; /* fetcher_obstacle() must return pause.text */
	struct process processes[PROCESSES];
};

/* The folder and its files are the agent's own. */
static int make_folder(const char *folder)
{
	struct stat st;

	if (mkdir(folder, 0700) && errno != EEXIST)
		return -errno;
	if (lstat(folder, &st))
		return -errno;
	return S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 022) ? 0 : -EPERM;
}

int fetcher_set_servers(struct fetcher *f, const char *servers, uint32_t file_ms,
			void (*arrived)(void *arg, const uint8_t *build_id, uint32_t len),
			void *arg)
{
	char *copy;
	int err;

	servers += strspn(servers, " ,");
	if (strlen(servers) >= FETCHER_MAX_SERVERS)
		return -ENAMETOOLONG;
	if (!f || !f->folder)
		return *servers ? -ENOENT : 0;
	err = *servers ? make_folder(f->folder) : 0;
	if (err)
		return err;
	copy = strdup(servers);
	if (!copy)
		return -ENOMEM;
	for (char *p = copy; *p; p++)
		if (*p == ',')
			*p = ' ';
	if (strcmp(copy, f->servers)) /* other servers may have files that those lacked */
		for (uint32_t i = 0; i < f->n; i++)
			f->files[i].again = 0;
	free(f->servers);
	f->servers = copy;
	f->file_ms = file_ms;
	f->arrived = arrived;
	f->arg = arg;
	f->failures = 0;
	f->pause = (struct pause){0};
	f->obstacle = false;
	return 0;
}

bool fetcher_is_on(const struct fetcher *f)
{
	return f && *f->servers;
}

/* ---- results ---- */

static void count(const char *result)
{
	metric_add("debuginfod_files_total",
		   "Total number of debug files that were requested from debuginfod servers, by "
		   "what became of them.",
		   METRIC_LABELS("result", result), 1);
}

/* Whether this machine, not a server, is the cause of the error. */
static bool is_local(int err)
{
	return err == -ENOPKG || err == -ENOSYS;
}

static const char *result_of(int err)
{
	return !err                   ? "fetched"
	       : is_local(err)        ? "unavailable"
	       : err == -ENOENT       ? "missing"
	       : err == -ETIMEDOUT    ? "late"
	       : err == -EBADMSG      ? "wrong"
	       : err == -ECONNREFUSED ? "unreachable"
				      : "failed";
}

static void settle(struct fetcher *f, struct requested *w, int err, const char *text)
{
	if (w->state != FETCHER_PENDING)
		return;
	f->pending--;
	free(w->text);
	w->text = err ? strdup(text) : NULL;
	w->state = !err                ? FETCHER_HERE
		   : err == -ENOENT    ? FETCHER_MISSING
		   : err == -ETIMEDOUT ? FETCHER_LATE
				       : FETCHER_FAILED;
	w->again = clock_now() + (w->sent && !is_local(err) ? AGAIN_S : FETCHER_PAUSE_S) * S;
	count(result_of(err));
	log_debug("debuginfod: %s: %s", w->name, err ? text : "fetched");
}

/* later: the reason for files that are requested during the pause. */
static void begin_pause(struct fetcher *f, int err, const char *text, const char *later)
{
	f->pause.until = clock_now() + FETCHER_PAUSE_S * S;
	f->pause.err = err;
	snprintf(f->pause.text, sizeof(f->pause.text), "%s", later);
	for (uint32_t i = 0; i < f->n; i++)
		if (!f->files[i].sent)
			settle(f, &f->files[i], err, text);
}

/* Pauses requests after repeated failures to reach a server in time, or if this machine lacks what
 * fetching needs. */
static void count_failure(struct fetcher *f, int err, const char *text)
{
	if (is_local(err)) {
		f->obstacle |= strcmp(f->pause.text, text) != 0;
		begin_pause(f, err, text, text);
		return;
	}
	f->failures = err == -ECONNREFUSED || err == -ETIMEDOUT ? f->failures + 1 : 0;
	if (f->failures >= FETCHER_FAILURES)
		begin_pause(f, err, text,
			    err == -ETIMEDOUT ? "the server did not send files in time a while ago"
					      : "the server could not be reached a while ago");
}

/* ---- processes ---- */

static int send_request(const struct fetcher *f, int sock, const struct requested *w)
{
	struct fetcher_request_message q = {
		.magic = FETCHER_MAGIC,
		.seconds = f->file_ms / 1000 ? f->file_ms / 1000 : 1,
		.max_bytes = FETCHER_MAX_BYTES,
		.folder_bytes = FETCHER_FOLDER_BYTES,
		.id_len = w->len,
	};

	memcpy(q.id, w->id, w->len);
	if (strlen(f->folder) >= sizeof(q.folder) || strlen(f->servers) >= sizeof(q.servers))
		return -ENAMETOOLONG;
	strcpy(q.folder, f->folder);
	strcpy(q.servers, f->servers);
	return send(sock, &q, sizeof(q), MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(q) ? 0 : -errno;
}

/* Its slot becomes free when the process has ended: reap(). */
static void end(struct fetcher *f, struct process *p)
{
	if (!p->pid || p->killed)
		return;
	kill(p->pid, SIGKILL);
	poller_remove(&f->poller, p->sock);
	close(p->sock);
	poller_add(&f->poller, p->pidfd);
	p->killed = true;
}

static void reap(struct process *p)
{
	if (!p->pid || !p->killed || waitpid(p->pid, NULL, WNOHANG) == 0)
		return;
	close(p->pidfd);
	p->pid = 0;
}

static int start(struct fetcher *f, struct process *p, uint32_t file)
{
	char *argv[] = {"fusee", "fetcher", FD, NULL};
	int err;

	*p = (struct process){.file = file};
	err = spawn_watched(&p->pid, &p->sock, &p->pidfd, argv);
	if (err)
		return err;
	p->deadline = clock_now() + f->file_ms * (S / 1000) + GRACE_NS;
	err = send_request(f, p->sock, &f->files[file]);
	if (!err)
		err = poller_add(&f->poller, p->sock);
	if (err) {
		end(f, p);
		reap(p);
	}
	return err;
}

static void set_timer(struct fetcher *f)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < PROCESSES; i++) {
		const struct process *p = &f->processes[i];

		if (p->pid && !p->killed && (!at || p->deadline < at))
			at = p->deadline;
	}
	poller_set(&f->poller, at);
}

static struct requested *next(struct fetcher *f)
{
	for (uint32_t i = 0; i < f->n; i++)
		if (f->files[i].state == FETCHER_PENDING && !f->files[i].sent)
			return &f->files[i];
	return NULL;
}

static void start_all(struct fetcher *f)
{
	for (uint32_t i = 0; i < PROCESSES; i++) {
		struct requested *w = f->processes[i].pid ? NULL : next(f);
		int err = w ? start(f, &f->processes[i], (uint32_t)(w - f->files)) : 0;

		if (!w)
			continue;
		w->sent = !err;
		if (err)
			settle(f, w, err, strerror(-err));
	}
	set_timer(f);
}

/* ---- answers ---- */

static void take(struct fetcher *f, struct process *p, struct fetcher_reply_message *r)
{
	struct requested *w = &f->files[p->file];
	const char *text;

	r->text[sizeof(r->text) - 1] = 0;
	text_ascii(r->text, "");
	if (r->err > 0 || r->err < -4095 || r->bytes > (uint64_t)FETCHER_MAX_BYTES)
		r->err = -EPROTO;
	text = *r->text ? r->text : strerror(-r->err);
	settle(f, w, r->err, text);
	count_failure(f, r->err, text);
	if (r->err)
		return;
	w->bytes = r->bytes;
	metric_add("debuginfod_bytes_total",
		   "Total number of bytes of debug files that debuginfod servers sent.", NULL,
		   r->bytes);
	if (f->arrived)
		f->arrived(f->arg, w->id, w->len);
}

static void attend(struct fetcher *f, struct process *p, uint64_t now)
{
	struct fetcher_reply_message r;
	ssize_t n;

	if (!p->pid || p->killed)
		return;
	n = recv(p->sock, &r, sizeof(r), MSG_DONTWAIT | MSG_TRUNC);
	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		if (now < p->deadline)
			return;
		r = (struct fetcher_reply_message){.err = -ETIMEDOUT,
						   .text = "the server did not send it in time"};
	} else if (n != sizeof(r) || r.magic != FETCHER_MAGIC) {
		r = (struct fetcher_reply_message){.err = -EPROTO,
						   .text = "the process that fetches it has ended"};
	}
	end(f, p);
	take(f, p, &r);
}

void fetcher_dispatch(struct fetcher *f)
{
	uint64_t now = clock_now();

	if (!f)
		return;
	poller_clear(&f->poller);
	for (uint32_t i = 0; i < PROCESSES; i++) {
		attend(f, &f->processes[i], now);
		reap(&f->processes[i]);
	}
	start_all(f);
}

/* ---- requests ---- */

static struct requested *find(const struct fetcher *f, const uint8_t *id, uint32_t len)
{
	for (uint32_t i = 0; f && i < f->n; i++)
		if (f->files[i].len == len && !memcmp(f->files[i].id, id, len))
			return &f->files[i];
	return NULL;
}

/* A place for another file: at the end, or, if there are many, that of a settled file. */
static struct requested *place(struct fetcher *f)
{
	struct requested *w;

	for (uint32_t i = 0; f->n == MOST_FILES && i < f->n; i++)
		if (f->files[i].state != FETCHER_PENDING)
			return &f->files[i];
	w = f->n < MOST_FILES ? ARRAY_ADD(f->files, f->n, f->room) : NULL;
	if (w)
		*w = (struct requested){0};
	return w;
}

static struct requested *add(struct fetcher *f, const uint8_t *id, uint32_t len, const char *name)
{
	struct requested *w = place(f);
	char *copy = w ? strdup(name) : NULL;

	if (!copy)
		return NULL;
	free(w->name);
	free(w->text);
	*w = (struct requested){.len = len, .name = copy};
	memcpy(w->id, id, len);
	return w;
}

/* Writes the path of a file in the folder; "": it is too long. */
static void path_of(const struct fetcher *f, const uint8_t *id, uint32_t len, char path[PATH_MAX])
{
	char hex[2 * FETCHER_ID_MAX + 1];
	int n = snprintf(path, PATH_MAX, "%s/%s/debuginfo", f->folder, text_hex(hex, id, len));

	if (n < 0 || n >= PATH_MAX)
		*path = '\0';
}

/* fd or -1. */
static int open_kept(const struct fetcher *f, const uint8_t *id, uint32_t len)
{
	char path[PATH_MAX];
	struct stat st;
	int fd;

	path_of(f, id, len, path);
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() && st.st_size)
		return fd;
	close(fd);
	return -1;
}

static bool is_usable(const struct fetcher *f, uint32_t len)
{
	return fetcher_is_on(f) && len > 1 && len <= FETCHER_ID_MAX;
}

int fetcher_open(struct fetcher *f, const uint8_t *id, uint32_t len, const char *name)
{
	struct requested *w = find(f, id, len);
	int fd = is_usable(f, len) ? open_kept(f, id, len) : -1;

	if (fd < 0)
		return -ENOENT;
	if (!w)
		w = add(f, id, len, name);
	if (w && w->state == FETCHER_OFF) {
		w->state = FETCHER_HERE;
		w->again = clock_now() + AGAIN_S * S; /* the file in the folder may be removed */
	}
	return fd;
}

enum fetcher_state fetcher_request(struct fetcher *f, const uint8_t *id, uint32_t len,
				   const char *name)
{
	struct requested *w = find(f, id, len);
	uint64_t now = clock_now();
	int fd;

	if (w && (w->state == FETCHER_PENDING || now < w->again))
		return w->state;
	fd = fetcher_open(f, id, len, name);
	if (fd >= 0) {
		close(fd);
		return FETCHER_HERE;
	}
	if (!is_usable(f, len) || (!w && !(w = add(f, id, len, name))))
		return FETCHER_OFF;
	w->state = FETCHER_PENDING;
	w->sent = false;
	f->pending++;
	if (now < f->pause.until)
		settle(f, w, f->pause.err, f->pause.text);
	else
		start_all(f);
	return w->state;
}

const char *fetcher_obstacle(struct fetcher *f)
{
	bool is_new = f && f->obstacle;

	if (is_new)
		f->obstacle = false;
	return is_new ? f->pause.text : NULL;
}

void fetcher_count_refused(void)
{
	count("refused");
}

uint32_t fetcher_pending(const struct fetcher *f)
{
	return f ? f->pending : 0;
}

void fetcher_give_up(struct fetcher *f)
{
	for (uint32_t i = 0; f && i < PROCESSES; i++)
		end(f, &f->processes[i]);
	for (uint32_t i = 0; f && i < f->n; i++)
		settle(f, &f->files[i], -ETIMEDOUT, "it did not come in time");
}

void fetcher_each(const struct fetcher *f, void (*each)(void *arg, const struct fetcher_file *),
		  void *arg)
{
	for (uint32_t i = 0; f && i < f->n; i++) {
		const struct requested *w = &f->files[i];
		const struct fetcher_file file = {w->name, w->state,
						  w->text ? w->text : "no memory", w->bytes};

		if (w->name) /* there was memory for the name */
			each(arg, &file);
	}
}

int fetcher_fd(const struct fetcher *f)
{
	return f->poller.epoll;
}

/* ---- the object ---- */

int fetcher_new(struct fetcher **ret, const char *folder)
{
	struct fetcher *f = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return -ENOMEM;
	f->folder = folder ? strdup(folder) : NULL;
	f->servers = strdup("");
	err = poller_open(&f->poller);
	if (!f->servers || (folder && !f->folder))
		err = -ENOMEM;
	if (err)
		fetcher_free(f);
	else
		*ret = f;
	return err;
}

void fetcher_free(struct fetcher *f)
{
	if (!f)
		return;
	for (uint32_t i = 0; i < PROCESSES; i++) {
		end(f, &f->processes[i]);
		reap(&f->processes[i]);
		if (f->processes[i].pid) /* killed; init reaps it */
			close(f->processes[i].pidfd);
	}
	for (uint32_t i = 0; i < f->n; i++) {
		free(f->files[i].name);
		free(f->files[i].text);
	}
	free(f->files);
	free(f->folder);
	free(f->servers);
	poller_close(&f->poller);
	free(f);
}
