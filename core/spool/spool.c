// SPDX-License-Identifier: Apache-2.0
/*
 * The index of all waiting records is in memory, 32 bytes each; a profile is read when its turn
 * comes. The lock protects the index. The last segment of the list is being written; only the
 * writer accesses its file, without the lock. A segment whose records are all read is removed,
 * unless it is still being written.
 */
#include "spool/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "spool/internal/folder.h"
#include "spool/internal/position.h"

/* Times that a record is read, a second apart, before it counts as damaged. */
#define UNREAD_MAX 60u
#define MAX_RECORDS (1u << 20) /* limits the index to 32 MiB */
#define SEGMENTS 16            /* into which the limit of bytes is divided */
#define MIN_SEGMENT (64u << 10)
#define MAX_SEGMENT (16u << 20)
#define MAX_FILE (1ull << 30) /* a larger file is no segment */

struct segment {
	struct segment *next;
	uint64_t number, bytes; /* of the file */
	struct spool_record *records;
	size_t cap;
	uint32_t first, n; /* records[first] is the oldest that waits */
};

struct spool {
	int dir, position_fd;
	int fd; /* of the segment that is written; -1: none is */
	pthread_mutex_t lock;
	struct spool_limits limits;
	struct segment *oldest, **last;
	struct segment *written; /* the last segment, or NULL */
	uint64_t next_number;
	uint64_t file_bytes; /* of all segments */
	struct spool_position position;
	struct spool_counts counts;
	struct spool_record taken; /* by spool_first() */
	bool is_taken, taken_dropped;
	uint32_t attempt;
	uint32_t unread; /* failed reads of the first record */
	bool unsynced;
};

static void remove_segment(const struct spool *s, uint64_t number)
{
	char name[32];

	spool_segment_name(name, number);
	unlinkat(s->dir, name, 0);
}

/* ---- the index; all with the lock ---- */

static void drop(struct spool_dropped *to, const struct spool_record *r)
{
	to->profiles++;
	to->samples += r->samples;
}

static void uncount(struct spool *s, const struct spool_record *r)
{
	s->counts.profiles--;
	s->counts.bytes -= r->bytes;
}

static void remove_oldest(struct spool *s)
{
	struct segment *g = s->oldest;

	remove_segment(s, g->number);
	s->file_bytes -= g->bytes;
	s->oldest = g->next;
	if (!s->oldest)
		s->last = &s->oldest;
	if (s->written == g) {
		close(s->fd);
		s->fd = -1;
		s->written = NULL;
	}
	free(g->records);
	free(g);
}

static void remove_read(struct spool *s)
{
	while (s->oldest && s->oldest != s->written && s->oldest->first == s->oldest->n)
		remove_oldest(s);
}

/* Does not count a record that the reader has taken: spool_keep() does. */
static void drop_oldest(struct spool *s)
{
	struct segment *g = s->oldest;

	if (!s->is_taken)
		s->attempt = 0;
	for (; g->first < g->n; g->first++) {
		const struct spool_record *r = &g->records[g->first];

		uncount(s, r);
		if (s->is_taken && !s->taken_dropped)
			s->taken_dropped = true;
		else
			drop(&s->counts.full, r);
	}
	remove_oldest(s);
}

/* Removes the oldest record; there must be one. */
static void pop(struct spool *s)
{
	struct segment *g = s->oldest;

	s->attempt = 0;
	uncount(s, &g->records[g->first++]);
	s->position.segment = g->number;
	s->position.offset = g->first < g->n ? g->records[g->first].offset : g->bytes;
	spool_position_write(s->position_fd, &s->position); /* if it fails, a restart repeats it */
	s->unsynced = true;
	remove_read(s);
}

static const struct spool_record *first(const struct spool *s)
{
	const struct segment *g = s->oldest;

	return g && g->first < g->n ? &g->records[g->first] : NULL;
}

/* Drops records that are too old. A clock that was set back makes none old. */
static void drop_old(struct spool *s)
{
	uint64_t now = clock_ns(CLOCK_REALTIME);
	const struct spool_record *r;

	while (!s->is_taken && (r = first(s)) && r->stored_ns < now &&
	       now - r->stored_ns > s->limits.age_ns) {
		drop(&s->counts.old, r);
		pop(s);
	}
}

/* Drops the oldest segments until `bytes` more fit. */
static void make_room(struct spool *s, uint64_t bytes)
{
	while (s->oldest && (s->file_bytes > s->limits.bytes - bytes ||
			     (bytes && s->counts.profiles >= MAX_RECORDS)))
		drop_oldest(s);
	remove_read(s); /* segments without records may follow */
	drop_old(s);
}

static struct segment *add_segment(struct spool *s, uint64_t number)
{
	struct segment *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->number = number;
	*s->last = g;
	s->last = &g->next;
	return g;
}

/* Makes room, so that add_record() cannot fail. */
static int reserve(struct segment *g)
{
	return ARRAY_ROOM(g->records, g->n, g->cap) ? 0 : -ENOMEM;
}

static void add_record(struct spool *s, struct segment *g, const struct spool_record *r)
{
	g->records[g->n++] = *r;
	s->counts.profiles++;
	s->counts.bytes += r->bytes;
}

/* ---- what an earlier process has written ---- */

struct found {
	struct spool *s;
	struct segment *g;
};

static int on_record(void *arg, const struct spool_record *r)
{
	struct found *f = arg;

	if (reserve(f->g))
		return -ENOMEM;
	add_record(f->s, f->g, r);
	return 0;
}

/* -EBADMSG: not a segment. */
static int read_file(struct spool *s, uint64_t number, struct buf *b)
{
	struct stat st;
	char name[32];
	int fd, r;

	spool_segment_name(name, number);
	fd = openat(s->dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno == ELOOP ? -EBADMSG : -errno;
	if (fstat(fd, &st))
		r = -errno;
	else
		r = S_ISREG(st.st_mode) ? buf_read_fd(b, fd, MAX_FILE) : -EBADMSG;
	close(fd);
	return r == -EFBIG ? -EBADMSG : r;
}

static int find_records(struct spool *s, uint64_t number)
{
	uint64_t damaged, from = number == s->position.segment ? s->position.offset : 0;
	struct found f = {s, add_segment(s, number)};
	struct buf b = {0};
	int r = f.g ? read_file(s, number, &b) : -ENOMEM;

	if (!r || (r == -EIO && b.len)) { /* uses what could be read */
		f.g->bytes = b.len;
		s->file_bytes += b.len;
		r = spool_segment_scan(b.p, b.len, from < b.len ? from : b.len, on_record, &f,
				       &damaged);
		s->counts.damaged.profiles += damaged;
	} else if (r == -EBADMSG || r == -EIO) {
		s->counts.damaged.profiles++;
		r = 0;
	}
	buf_fini(&b);
	return r;
}

static int recover(struct spool *s)
{
	struct buf numbers = {0};
	int r;

	s->position_fd = openat(s->dir, "position", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
				0600);
	if (s->position_fd < 0)
		return -errno;
	spool_position_read(s->position_fd, &s->position);
	s->next_number = s->position.segment + 1;
	r = spool_folder_segments(s->dir, &numbers);
	for (size_t i = 0; !r && i < numbers.len / sizeof(uint64_t); i++) {
		uint64_t number = ((const uint64_t *)(const void *)numbers.p)[i];

		if (number < s->position.segment)
			remove_segment(s, number); /* read completely */
		else
			r = find_records(s, number);
		if (number >= s->next_number)
			s->next_number = number + 1;
		remove_read(s);
	}
	buf_fini(&numbers);
	return r;
}

int spool_open(struct spool **ret, const char *dir, const char *name,
	       const struct spool_limits *limits, char **text)
{
	struct spool *s = calloc(1, sizeof(*s));
	int r;

	*text = NULL;
	if (!s)
		return -ENOMEM;
	s->position_fd = s->fd = -1;
	s->limits = *limits;
	s->last = &s->oldest;
	pthread_mutex_init(&s->lock, NULL);
	r = spool_folder_open(dir, name, &s->dir, text);
	if (r)
		s->dir = -1;
	else
		r = recover(s);
	if (r) {
		if (!*text &&
		    asprintf(text, "the spool %s cannot be read: %s", dir, strerror(-r)) < 0)
			*text = NULL;
		spool_close(s);
		return r;
	}
	make_room(s, 0);
	*ret = s;
	return 0;
}

/* ---- the writer ---- */

void spool_limit(struct spool *s, const struct spool_limits *limits)
{
	pthread_mutex_lock(&s->lock);
	s->limits = *limits;
	make_room(s, 0);
	pthread_mutex_unlock(&s->lock);
}

static uint64_t segment_limit(const struct spool *s)
{
	uint64_t bytes = s->limits.bytes / SEGMENTS;

	return bytes < MIN_SEGMENT ? MIN_SEGMENT : bytes > MAX_SEGMENT ? MAX_SEGMENT : bytes;
}

static int create_segment(struct spool *s)
{
	char name[32];

	spool_segment_name(name, s->next_number);
	s->fd = openat(s->dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (s->fd < 0)
		return -errno;
	s->written = add_segment(s, s->next_number);
	if (!s->written) {
		close(s->fd);
		s->fd = -1;
		unlinkat(s->dir, name, 0);
		return -ENOMEM;
	}
	s->next_number++;
	return 0;
}

/* With the lock. Makes `written` a segment with room for a record of so many bytes. */
static int choose_segment(struct spool *s, uint64_t bytes)
{
	int r = 0;

	if (s->written && s->written->bytes && s->written->bytes + bytes > segment_limit(s)) {
		if (s->unsynced)
			fdatasync(s->fd);
		close(s->fd);
		s->fd = -1;
		s->written = NULL;
		remove_read(s);
	}
	make_room(s, bytes);
	if (!s->written)
		r = create_segment(s);
	return r ? r : reserve(s->written);
}

/* If it fails, the file is unchanged. */
static int write_at(int fd, const struct buf *b, uint64_t at)
{
	size_t done = 0;

	while (done < b->len) {
		ssize_t n = pwrite(fd, b->p + done, b->len - done, (off_t)(at + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			int err = n ? -errno : -ENOSPC, unused = ftruncate(fd, (off_t)at);

			(void)unused; /* if this fails too, the next write overwrites it */
			return err;
		}
		done += (size_t)n;
	}
	return 0;
}

int spool_append(struct spool *s, const struct fusee_profile *p, uint64_t samples)
{
	struct spool_record rec = {.stored_ns = clock_ns(CLOCK_REALTIME), .samples = samples};
	struct buf b = {0};
	int r = spool_record_encode(p, rec.stored_ns, samples, &b);

	pthread_mutex_lock(&s->lock);
	if (!r && b.len > s->limits.bytes)
		r = -EMSGSIZE;
	if (!r)
		r = choose_segment(s, b.len);
	pthread_mutex_unlock(&s->lock);
	if (!r)
		r = write_at(s->fd, &b, s->written->bytes);
	if (!r) {
		pthread_mutex_lock(&s->lock);
		rec.offset = (uint32_t)s->written->bytes;
		rec.bytes = (uint32_t)b.len;
		add_record(s, s->written, &rec);
		s->written->bytes += b.len;
		s->file_bytes += b.len;
		s->unsynced = true;
		pthread_mutex_unlock(&s->lock);
	}
	buf_fini(&b);
	return r;
}

int spool_sync(struct spool *s)
{
	bool unsynced;
	int r = 0;

	pthread_mutex_lock(&s->lock);
	unsynced = s->unsynced;
	s->unsynced = false;
	pthread_mutex_unlock(&s->lock);
	if (!unsynced)
		return 0;
	if ((s->fd >= 0 && fdatasync(s->fd)) || fdatasync(s->position_fd) || fsync(s->dir)) {
		r = -errno;
		pthread_mutex_lock(&s->lock);
		s->unsynced = true;
		pthread_mutex_unlock(&s->lock);
	}
	return r;
}

/* ---- the reader ---- */

static int read_record(const struct spool *s, uint64_t number, const struct spool_record *r,
		       struct spool_profile **ret)
{
	char name[32], *bytes = malloc(r->bytes + 1ul);
	ssize_t n;
	int fd, err = 0;

	if (!bytes)
		return -ENOMEM;
	spool_segment_name(name, number);
	fd = openat(s->dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0) {
		err = errno == ENOENT || errno == ELOOP ? -EBADMSG : -errno;
	} else {
		n = pread(fd, bytes, r->bytes, r->offset);
		err = n < 0 ? -errno : n != (ssize_t)r->bytes ? -EBADMSG : 0;
		close(fd);
		if (!err)
			err = spool_record_decode(bytes, r->bytes, ret);
	}
	free(bytes);
	return err;
}

enum outcome { DONE, KEPT, NOT_READ, DAMAGED };

/* Ends what spool_first() began. */
static void settle(struct spool *s, enum outcome how)
{
	pthread_mutex_lock(&s->lock);
	s->is_taken = false;
	if (s->taken_dropped && how != DONE)
		drop(&s->counts.full, &s->taken);
	else if (!s->taken_dropped && how == DAMAGED)
		drop(&s->counts.damaged, &s->taken);
	if (!s->taken_dropped && (how == DONE || how == DAMAGED))
		pop(s);
	else if (!s->taken_dropped)
		s->oldest->records[s->oldest->first].samples = s->taken.samples;
	if (how == KEPT && !s->taken_dropped)
		s->attempt++;
	else if (how != NOT_READ || s->taken_dropped)
		s->attempt = 0;
	pthread_mutex_unlock(&s->lock);
}

int spool_first(struct spool *s, struct spool_item *ret)
{
	const struct spool_record *r;
	uint64_t number;
	int err;

	do {
		pthread_mutex_lock(&s->lock);
		drop_old(s);
		r = first(s);
		if (!r) {
			pthread_mutex_unlock(&s->lock);
			return -ENOENT;
		}
		s->taken = *r;
		s->is_taken = true;
		s->taken_dropped = false;
		number = s->oldest->number;
		pthread_mutex_unlock(&s->lock);
		err = read_record(s, number, &s->taken, &ret->profile);
		s->unread = err == -EIO ? s->unread + 1 : 0;
		if (s->unread >= UNREAD_MAX)
			err = -EBADMSG;
		if (err)
			settle(s, err == -EBADMSG ? DAMAGED : NOT_READ);
	} while (err == -EBADMSG);
	ret->samples = s->taken.samples;
	ret->attempt = s->attempt;
	return err;
}

void spool_done(struct spool *s)
{
	settle(s, DONE);
}

void spool_keep(struct spool *s, uint64_t samples)
{
	s->taken.samples = samples;
	settle(s, KEPT);
}

/* ---- both ---- */

void spool_take_counts(struct spool *s, struct spool_counts *ret)
{
	const struct spool_record *r;

	pthread_mutex_lock(&s->lock);
	r = first(s);
	s->counts.oldest_ns = r ? r->stored_ns : 0;
	s->counts.turn++;
	*ret = s->counts;
	s->counts.full = s->counts.old = s->counts.damaged = (struct spool_dropped){0};
	pthread_mutex_unlock(&s->lock);
}

void spool_close(struct spool *s)
{
	if (!s)
		return;
	if (s->written) {
		s->written = NULL;
		remove_read(s);
	}
	while (s->oldest) {
		struct segment *next = s->oldest->next;

		free(s->oldest->records);
		free(s->oldest);
		s->oldest = next;
	}
	if (s->fd >= 0)
		close(s->fd);
	if (s->position_fd >= 0)
		close(s->position_fd);
	if (s->dir >= 0)
		close(s->dir);
	pthread_mutex_destroy(&s->lock);
	free(s);
}
