/* SPDX-License-Identifier: Apache-2.0 */
/* Formats: proc_pid_stat(5), proc_pid_status(5), proc_pid_environ(5), passwd(5). */
#include "read.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <fusee/helpers.h>

#include "resource.h"

#define MAX_ENVIRON (256u << 10)
#define MOST_ENVIRONS (64u << 10) /* bytes: most have less. malloc() maps larger blocks */
#define FULL_QUERY 4096           /* process_text(): fewer bytes end at its end */
#define MAX_USERS 1024u

/* ---- text ---- */

void text_clean(char *out, size_t cap, const char *text, size_t len)
{
	size_t at = 0;

	for (size_t i = 0; i < len && at + 1 < cap;) {
		uint32_t point;
		size_t n = fusee_character(text + i, len - i, &point);

		if (n && (point < 0x20 || (point >= 0x7f && point < 0xa0)))
			n = 0;
		if (n && at + n + 1 > cap)
			break;
		if (n)
			memcpy(out + at, text + i, n);
		else
			out[at] = '?';
		at += n ? n : 1;
		i += n ? n : 1;
	}
	out[at] = '\0';
}

/* ---- users ---- */

struct passwd_cache {
	struct timespec changed;
	time_t looked; /* the second in which the file was last looked at */
	uint32_t n;
	struct {
		unsigned long uid;
		char name[64];
	} users[MAX_USERS];
};

struct passwd_cache *passwd_open(void)
{
	return calloc(1, sizeof(struct passwd_cache));
}

void passwd_close(struct passwd_cache *c)
{
	free(c);
}

/* "name:x:1000:..." */
static void passwd_line(struct passwd_cache *c, char *line)
{
	char *rest = line, *name = strsep(&rest, ":"), *end;
	unsigned long uid;

	if (!rest || !strsep(&rest, ":") || !rest || c->n == MAX_USERS)
		return;
	uid = strtoul(rest, &end, 10);
	if (end == rest || *end != ':')
		return;
	c->users[c->n].uid = uid;
	text_clean(c->users[c->n++].name, sizeof(c->users[0].name), name, strlen(name));
}

static time_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return t.tv_sec;
}

/* 0 or -ENOMEM: the next call reads it again. A file that cannot be read has no users. */
static int passwd_refresh(struct passwd_cache *c)
{
	char *line = NULL;
	size_t cap = 0;
	struct stat st;
	bool complete;
	FILE *f;

	c->looked = now();
	if (stat("/etc/passwd", &st) ||
	    (st.st_mtim.tv_sec == c->changed.tv_sec && st.st_mtim.tv_nsec == c->changed.tv_nsec))
		return 0;
	f = fopen("/etc/passwd", "re");
	if (!f)
		return errno == ENOMEM ? -ENOMEM : 0;
	c->n = 0;
	while (getline(&line, &cap, f) > 0)
		passwd_line(c, line);
	complete = feof(f) || ferror(f);
	c->changed = complete ? st.st_mtim : (struct timespec){0};
	free(line);
	fclose(f);
	return complete ? 0 : -ENOMEM;
}

/* NULL: it has none. */
static const char *find_name(const struct passwd_cache *c, unsigned long uid)
{
	for (uint32_t i = 0; i < c->n; i++)
		if (c->users[i].uid == uid)
			return c->users[i].name;
	return NULL;
}

/* A user's other name is noticed within a second, a new user at once. */
static int user_name(struct passwd_cache *c, unsigned long uid, char *out, size_t cap)
{
	const char *name = c->looked == now() ? find_name(c, uid) : NULL;
	int r = name ? 0 : passwd_refresh(c);

	if (r)
		return r;
	if (!name)
		name = find_name(c, uid);
	if (name)
		snprintf(out, cap, "%s", name);
	else
		snprintf(out, cap, "%lu", uid);
	return 0;
}

/* ---- files of /proc ---- */

/* Reads at most cap - 1 bytes and terminates them. Length or -errno. */
static ssize_t read_proc(uint32_t pid, const char *what, char *buf, size_t cap)
{
	char path[64];
	size_t len = 0;
	ssize_t n = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, what);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	while (len + 1 < cap && (n = read(fd, buf + len, cap - 1 - len)) > 0)
		len += (size_t)n;
	n = n < 0 ? -errno : (ssize_t)len;
	buf[len] = '\0';
	close(fd);
	return n;
}

/* Fields 3, 20 and 22; the name in field 2 may hold blanks and parentheses. The kernel blocks
 * readers while the process executes a program. */
static int read_start(struct facts *f, const struct facts_source *from, uint32_t pid)
{
	char text[1024], *p, state;
	uint32_t threads;
	int64_t n = from->text(from->in, pid, "stat", 0, text, sizeof(text) - 1);

	f->unread = n == -ETIMEDOUT || n == -EAGAIN;
	if (f->unread)
		return 0;
	text[n > 0 ? n : 0] = '\0';
	p = n > 0 ? strrchr(text, ')') : NULL;
	if (!p || sscanf(p + 1,
			 " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %u "
			 "%*d %" SCNu64,
			 &state, &threads, &f->start_ticks) != 3)
		return -ESRCH;
	/* the number includes an ended main thread as long as other threads run */
	return state == 'X' || (state == 'Z' && threads < 2) ? -ESRCH : 0;
}

/* The start, or what stands for it, and the user, in one call that never waits. 0; -ENOMEM; another
 * -errno: the host or the kernel is older. */
static int read_id(struct facts *f, const struct facts_source *from, uint32_t pid,
		   struct passwd_cache *c)
{
	char text[64], *blank, *end;
	int64_t n = from->text(from->in, pid, "id", 0, text, sizeof(text) - 1);
	unsigned long user;

	text[n > 0 ? n : 0] = '\0';
	f->start_ticks = strtoull(text, &blank, 10);
	user = strtoul(blank, &end, 10);
	if (blank == text || end == blank)
		return -ENOSYS;
	return user_name(c, user, f->user, sizeof(f->user));
}

static int read_exe(struct facts *f, const struct facts_source *from, uint32_t pid)
{
	char exe[sizeof(f->exe)], comm[64];
	int64_t n = from->text(from->in, pid, "exe", 0, exe, sizeof(exe) - 1);
	const char *base;

	if (n == -ENOENT)
		return n;
	if (n < 0) { /* no permission: another user's process */
		n = read_proc(pid, "comm", comm, sizeof(comm));
		if (n <= 0)
			return -ESRCH;
		text_clean(f->name, sizeof(f->name), comm, (size_t)n - (comm[n - 1] == '\n'));
		return 0;
	}
	text_clean(f->exe, sizeof(f->exe), exe, fusee_path_length(exe, (size_t)n));
	base = strrchr(f->exe, '/');
	base = base ? base + 1 : f->exe;
	text_clean(f->name, sizeof(f->name), base, strlen(base));
	return 0;
}

static int read_user(struct facts *f, uint32_t pid, struct passwd_cache *c)
{
	char text[4096], *uid;

	if (read_proc(pid, "status", text, sizeof(text)) <= 0)
		return 0;
	uid = strstr(text, "\nUid:");
	return uid ? user_name(c, strtoul(uid + 5, NULL, 10), f->user, sizeof(f->user)) : 0;
}

/* Reads a text in the process's memory from byte `len` on, up to cap or its end. Its length or
 * -errno. Each query costs the opener a turn, so a short one is known to be the last. */
static ssize_t read_text(const struct facts_source *from, uint32_t pid, const char *name, char *buf,
			 size_t len, size_t cap)
{
	int64_t n = FULL_QUERY;

	while (len < cap && n >= FULL_QUERY) {
		n = from->text(from->in, pid, name, len, buf + len, cap - len);
		len += n > 0 ? (size_t)n : 0;
	}
	return n < 0 ? (ssize_t)n : (ssize_t)len;
}

/* false: no memory. */
static bool resize_environ(struct facts *f, size_t bytes)
{
	char *resized = realloc(f->environ, bytes);

	if (resized)
		f->environ = resized;
	return resized;
}

static int read_environ(struct facts *f, const struct facts_source *from, uint32_t pid)
{
	ssize_t n;

	if (!resize_environ(f, MOST_ENVIRONS + 1))
		return -ENOMEM;
	n = read_text(from, pid, "environ", f->environ, 0, MOST_ENVIRONS);
	if (n == MOST_ENVIRONS) {
		if (!resize_environ(f, MAX_ENVIRON))
			return -ENOMEM;
		n = read_text(from, pid, "environ", f->environ, MOST_ENVIRONS, MAX_ENVIRON - 1);
	}
	f->unread |= n == -ETIMEDOUT || n == -EAGAIN;
	f->empty = !n;
	f->environ_len = n > 0 ? (size_t)n : 0;
	f->environ[f->environ_len] = '\0';
	(void)resize_environ(f, f->environ_len + 1);
	return 0;
}

static int read_context(struct facts *f, const struct facts_source *from, uint32_t pid)
{
	int64_t n;

	f->context = malloc(RESOURCE_MAX);
	if (!f->context)
		return -ENOMEM;
	n = from->text(from->in, pid, "otel_context", 0, f->context, RESOURCE_MAX);
	if (n <= 0) {
		free(f->context);
		f->context = NULL;
	}
	f->context_len = n > 0 ? (size_t)n : 0;
	f->unread |= n == -ETIMEDOUT || n == -EAGAIN || n == -EBUSY;
	return 0;
}

static void read_cmdline(struct facts *f, const struct facts_source *from, uint32_t pid)
{
	char text[4 * sizeof(f->cmdline)];
	ssize_t n = read_text(from, pid, "cmdline", text, 0, sizeof(text));

	f->no_cmdline = n == -ETIMEDOUT || n == -EAGAIN;
	f->unread |= f->no_cmdline;
	while (n > 0 && !text[n - 1])
		n--;
	for (ssize_t i = 0; i < n; i++)
		if (!text[i])
			text[i] = ' ';
	text_clean(f->cmdline, sizeof(f->cmdline), text, n > 0 ? (size_t)n : 0);
}

int facts_read(struct facts *f, uint32_t pid, uint32_t which, struct passwd_cache *c,
	       const struct facts_source *from)
{
	bool id;
	int r;

	f->start_ticks = 0;
	*f->exe = *f->name = *f->user = *f->cmdline = '\0';
	f->environ = NULL;
	f->environ_len = 0;
	f->context = NULL;
	f->context_len = 0;
	f->unread = f->no_cmdline = f->empty = false;
	r = read_exe(f, from, pid);
	if (r)
		return r;
	/* a process with an executable has not ended */
	r = *f->exe && which & FACTS_STATUS ? read_id(f, from, pid, c) : -ENOSYS;
	id = !r;
	if (r && r != -ENOMEM)
		r = read_start(f, from, pid);
	if (!r && which & FACTS_ENVIRON)
		r = read_environ(f, from, pid);
	if (!r && which & FACTS_CONTEXT)
		r = read_context(f, from, pid);
	if (!r && !id && which & FACTS_STATUS)
		r = read_user(f, pid, c);
	if (!r && which & FACTS_CMDLINE)
		read_cmdline(f, from, pid);
	return r;
}

void facts_free(struct facts *f)
{
	free(f->environ);
	free(f->context);
	f->environ = NULL;
	f->context = NULL;
}

/* ---- the environment ---- */

int environment_get(const char *environ, size_t len, const char *name, char *out, size_t cap)
{
	size_t n = strlen(name);

	for (size_t at = 0; at < len;) {
		size_t word = strnlen(environ + at, len - at);

		if (word > n + 1 && !memcmp(environ + at, name, n) && environ[at + n] == '=') {
			text_clean(out, cap, environ + at + n + 1, word - n - 1);
			return 0;
		}
		at += word + 1;
	}
	return -ENOENT;
}
