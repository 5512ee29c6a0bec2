// SPDX-License-Identifier: Apache-2.0
/* The fetcher process: fetches one file by libdebuginfod and checks it before it is kept. */
#include <elf.h>
#include <elfutils/debuginfod.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "plugin/library.h"
#include "process/elf.h"
#include "fetcher/internal/protocol.h"

#define LIBRARY "libdebuginfod.so.1"
/* A server that sends less than 100 KiB in this time has failed (debuginfod-find(1)). */
#define IDLE_S 30u

/* libdebuginfod, loaded at run time: it links a dozen libraries that no other process of fusee
 * needs. */
struct library {
	__typeof__(debuginfod_begin) *begin;
	__typeof__(debuginfod_find_debuginfo) *find;
};

/* ---- checks ---- */

/* A transfer without a length may have ended early: checks that the file has all bytes of its
 * sections. */
static bool is_complete(const struct elf *e)
{
	struct fusee_str headers[3];
	uint64_t size = elf_size(e);

	elf_headers(e, headers);
	for (size_t at = 0; at + sizeof(Elf64_Shdr) <= headers[2].len; at += sizeof(Elf64_Shdr)) {
		Elf64_Shdr s;

		memcpy(&s, headers[2].p + at, sizeof(s));
		if (s.sh_type != SHT_NOBITS && s.sh_type != SHT_NULL &&
		    (s.sh_offset > size || s.sh_size > size - s.sh_offset))
			return false;
	}
	return headers[2].len;
}

int fetcher_judge(int fd, const uint8_t *id, uint32_t len)
{
	struct fusee_file_info info;
	struct elf *e;
	int err = elf_open(&e, fd);

	if (err)
		return err == -ENOEXEC ? -EBADMSG : err;
	err = elf_info(e, &info);
	if (!err &&
	    (info.build_id.len != len || memcmp(info.build_id.p, id, len) || !is_complete(e)))
		err = -EBADMSG;
	elf_close(e);
	return err;
}

/* ---- fetching ---- */

static bool load(struct library *l)
{
	void *handle = library_load(LIBRARY);

	if (!handle)
		return false;
	l->begin = (__typeof__(l->begin))library_function(handle, "debuginfod_begin");
	l->find = (__typeof__(l->find))library_function(handle, "debuginfod_find_debuginfo");
	return l->begin && l->find;
}

static void set_number(const char *variable, uint64_t n)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
	setenv(variable, text, 1);
}

/* The library takes its options from environment variables. */
static void set_options(const struct fetcher_request_message *q, uint64_t most)
{
	setenv("DEBUGINFOD_URLS", q->servers, 1);
	setenv("DEBUGINFOD_CACHE_PATH", q->folder, 1);
	set_number("DEBUGINFOD_TIMEOUT", q->seconds < IDLE_S ? q->seconds : IDLE_S);
	set_number("DEBUGINFOD_MAXTIME", q->seconds);
	set_number("DEBUGINFOD_MAXSIZE", most);
}

/* Also removes the empty file by which the library remembers that servers lack the file: the agent
 * remembers it. */
static void remove_file(const struct fetcher_request_message *q)
{
	char path[PATH_MAX + 160], id[2 * FETCHER_ID_MAX + 1];
	int n = snprintf(path, sizeof(path), "%s/%s", q->folder, text_hex(id, q->id, q->id_len));

	strcpy(path + n, "/debuginfo");
	unlink(path);
	path[n] = '\0';
	rmdir(path);
}

/* The library returns curl's errors as errno values. */
static int meaning(int err)
{
	switch (err) {
	case -ENOENT:
	case -ENOSPC:
	case -EFBIG:
	case -ENOMEM:
	case -EIO: /* from writing the file */
		return err;
	case -ETIME:
	case -ETIMEDOUT:
		return -ETIMEDOUT;
	default:
		return -ECONNREFUSED;
	}
}

static void explain(struct fetcher_reply_message *r, int err, const char *text)
{
	r->err = err;
	snprintf(r->text, sizeof(r->text), "%s", text);
}

static void fetch(const struct fetcher_request_message *q, const struct library *l, uint64_t most,
		  struct fetcher_reply_message *r)
{
	struct stat st;
	debuginfod_client *client = l->begin();
	int fd = client ? l->find(client, q->id, (int)q->id_len, NULL) : -ENOMEM;
	int err = fd < 0 ? meaning(fd) : fetcher_judge(fd, q->id, q->id_len);

	if (fd >= 0 && !err && !fstat(fd, &st))
		r->bytes = (uint64_t)st.st_size;
	if (err)
		remove_file(q);
	if (err == -ENOENT)
		explain(r, err, "the server does not have it, or did not send all of it");
	else if (err == -EIO)
		explain(r, err, "it cannot be written: the disk is full, or the file is too large");
	else if (err == -EBADMSG)
		explain(r, err, "the server sent another file, or a part of it");
	else if (err == -EFBIG)
		snprintf(r->text, sizeof(r->text), "it is larger than %llu MiB",
			 (unsigned long long)most >> 20);
	else if (err == -ETIMEDOUT)
		explain(r, err, "the server did not send it in time");
	else if (err == -ECONNREFUSED)
		snprintf(r->text, sizeof(r->text), "the server cannot be reached: %s",
			 strerror(fd < 0 ? -fd : -err));
	else if (err)
		explain(r, err, strerror(-err));
	r->err = err;
}

/* ---- the process ---- */

static bool is_valid(const struct fetcher_request_message *q, ssize_t n)
{
	return n == sizeof(*q) && q->magic == FETCHER_MAGIC && q->id_len > 1 &&
	       q->id_len <= FETCHER_ID_MAX && memchr(q->folder, 0, sizeof(q->folder)) &&
	       memchr(q->servers, 0, sizeof(q->servers));
}

static void serve(struct fetcher_request_message *q, struct fetcher_reply_message *r)
{
	struct library l;
	uint64_t most;
	int err;

	if (!load(&l)) {
		explain(r, -ENOPKG, "there is no " LIBRARY " (apt install libdebuginfod1)");
		return;
	}
	most = fetcher_tidy(q);
	if (most < q->max_bytes)
		q->max_bytes = most;
	err = fetcher_confine(q);
	if (err) {
		explain(r, -ENOSYS,
			"the kernel has no Landlock (Linux 5.13; landlock in lsm= of its command "
			"line), without which a process of root's is given no network");
		if (err != -ENOSYS)
			snprintf(r->text, sizeof(r->text), "its process cannot be confined: %s",
				 strerror(-err));
		return;
	}
	set_options(q, q->max_bytes);
	fetch(q, &l, q->max_bytes, r);
}

int fetcher_run(int sock)
{
	static struct fetcher_request_message q;
	struct fetcher_reply_message r = {.magic = FETCHER_MAGIC};
	ssize_t n = recv(sock, &q, sizeof(q), MSG_TRUNC);

	if (!is_valid(&q, n))
		return -EBADMSG;
	serve(&q, &r);
	return send(sock, &r, sizeof(r), MSG_NOSIGNAL) == sizeof(r) ? 0 : -errno;
}
