/* SPDX-License-Identifier: Apache-2.0 */
#include "mapfile.h"

#include <errno.h>
#include <fusee/helpers.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CHUNK 65536u
#define MAX_FILE (64ull << 20) /* bytes of one file that are read */
#define SLACK_NS 2000000000u   /* difference of the clocks that date a process and a file */
#define PAUSE 10u              /* a large map is read again after so many times the last reading */

int mapfile_init(struct mapfile *s, const struct mapfile_owner *owner, int folder,
		 uint64_t max_bytes)
{
	*s = (struct mapfile){.owner = *owner,
			      .folder = folder,
			      .fd = -1,
			      .first = 1,
			      .generation = 1,
			      .max_bytes = max_bytes / 2};
	s->map = map_new(s->max_bytes);
	return s->map ? 0 : -ENOMEM;
}

void mapfile_fini(struct mapfile *s)
{
	map_free(s->map);
	map_free(s->before);
	if (s->fd >= 0)
		close(s->fd);
	if (s->folder >= 0)
		close(s->folder);
}

uint64_t mapfile_bytes(const struct mapfile *s)
{
	return map_bytes(s->map) + (s->before ? map_bytes(s->before) : 0);
}

void mapfile_limit(struct mapfile *s, uint64_t max_bytes)
{
	s->max_bytes = max_bytes / 2;
	map_limit(s->map, s->max_bytes);
}

void mapfile_reread(struct mapfile *s)
{
	s->reread = s->fd >= 0;
}

/* ---- which file ---- */

static enum mapfile_refusal judge(const struct mapfile *s, const struct stat *st)
{
	uint64_t mtime = (uint64_t)st->st_mtim.tv_sec * 1000000000u + (uint64_t)st->st_mtim.tv_nsec;

	if (!S_ISREG(st->st_mode))
		return MAPFILE_NOT_A_FILE;
	if (st->st_uid != s->owner.uid && st->st_uid != s->owner.fs_uid &&
	    (st->st_uid || !(st->st_mode & S_IROTH)))
		return MAPFILE_FOREIGN;
	if (st->st_nlink > 1)
		return MAPFILE_LINKED;
	return mtime + SLACK_NS < s->owner.start_ns ? MAPFILE_OLD : MAPFILE_ACCEPTED;
}

/* Returns an O_PATH descriptor of the name, or -errno. The file may be replaced at any moment, so
 * the descriptor is checked, and the file is opened through the descriptor. */
static int hold(struct mapfile *s, struct stat *st)
{
	/* NO_XDEV: in a user namespace any user can mount another user's file on the name, or a
	 * file whose file system keeps its users waiting. CACHED: a process that creates a file
	 * holds the lock of its folder, and may be stopped then; names in the kernel's cache need
	 * no lock. */
	struct open_how how = {.flags = O_PATH | O_CLOEXEC,
			       .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV};
	char name[64];
	int held;

	snprintf(name, sizeof(name), "perf-%u.map", s->owner.pid);
	how.resolve |= RESOLVE_CACHED;
	held = (int)syscall(SYS_openat2, s->folder, name, &how, sizeof(how));
	if (held < 0 && errno == EINVAL) { /* before Linux 5.12 */
		how.resolve &= ~(uint64_t)RESOLVE_CACHED;
		held = (int)syscall(SYS_openat2, s->folder, name, &how, sizeof(how));
	}
	s->uncached = held < 0 && errno == EAGAIN && !s->found;
	if (s->uncached)
		return -ENOENT;
	s->found = false;
	if (held < 0 && errno == EAGAIN) /* the kernel looks at no mount without a lock */
		errno = EXDEV;
	if (held < 0 && (errno == ELOOP || errno == EXDEV)) {
		s->refusal = errno == ELOOP ? MAPFILE_NOT_A_FILE : MAPFILE_MOUNTED;
		return -EPERM;
	}
	if (held < 0)
		return -errno;
	if (!fstat(held, st))
		return held;
	close(held);
	return -EIO;
}

/* fd or -errno. */
static int open_judged(struct mapfile *s, int held, const struct stat *st)
{
	char path[64];
	int fd;

	s->refusal = judge(s, st);
	if (s->refusal)
		return -EPERM;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", held);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static void forget_file(struct mapfile *s)
{
	s->offset = 0;
	s->full = false;
	s->nhead = s->ntail = 0;
	s->written = (struct timespec){0};
}

/* Opens the file that is there now unless it is open. *another: it has replaced a file that
 * was read. 0, or -errno: there is none and never was. */
static int find_file(struct mapfile *s, bool *another)
{
	struct stat st;
	int held = s->folder < 0 ? -ENOENT : hold(s, &st), fd;

	*another = false;
	if (held < 0) /* what is open stays */
		return s->fd >= 0 ? 0 : held;
	if (s->fd >= 0 && st.st_dev == s->dev && st.st_ino == s->ino) {
		close(held);
		return 0;
	}
	fd = open_judged(s, held, &st);
	close(held);
	if (fd < 0)
		return s->fd >= 0 ? 0 : fd;
	if (s->fd >= 0) {
		close(s->fd);
		*another = s->offset;
	}
	s->fd = fd;
	s->dev = st.st_dev;
	s->ino = st.st_ino;
	forget_file(s);
	return 0;
}

/* ---- what is new in it ---- */

/* Whether the file still has these bytes. */
static bool still(const struct mapfile *s, const char *mark, uint32_t n, uint64_t at)
{
	char now[MAPFILE_MARK];

	return pread(s->fd, now, n, (off_t)at) == (ssize_t)n && !memcmp(now, mark, n);
}

/* Whether the file was truncated or rewritten, and not only appended to. */
static bool is_rewritten(const struct mapfile *s, const struct stat *st)
{
	if ((uint64_t)st->st_size < s->offset)
		return true;
	if (st->st_mtim.tv_sec == s->written.tv_sec && st->st_mtim.tv_nsec == s->written.tv_nsec)
		return false;
	return !still(s, s->head, s->nhead, 0) ||
	       !still(s, s->tail, s->ntail, s->offset - s->ntail);
}

/* Keeps the first bytes of the file and the last bytes read. */
static void mark(struct mapfile *s, const char *p, uint32_t n)
{
	uint32_t keep;

	if (s->nhead < MAPFILE_MARK) {
		uint32_t take = n < MAPFILE_MARK - s->nhead ? n : MAPFILE_MARK - s->nhead;

		memcpy(s->head + s->nhead, p, take);
		s->nhead += take;
	}
	if (n > MAPFILE_MARK) {
		p += n - MAPFILE_MARK;
		n = MAPFILE_MARK;
	}
	keep = s->ntail < MAPFILE_MARK - n ? s->ntail : MAPFILE_MARK - n;
	memmove(s->tail, s->tail + s->ntail - keep, keep);
	memcpy(s->tail + keep, p, n);
	s->ntail = keep + n;
}

struct reading {
	uint32_t (*changed)(void *arg);
	void *arg;
	bool raised;    /* the generation changes once for each reading */
	uint64_t until; /* when it ends at the latest; the next one goes on */
};

static void raise_generation(struct mapfile *s, struct reading *r)
{
	if (!r->raised)
		s->generation = r->changed(r->arg);
	r->raised = true;
}

static void commit(struct mapfile *s, struct reading *r)
{
	if (map_replaces(s->map))
		raise_generation(s, r);
	map_commit(s->map, s->generation);
}

static void add_faults(struct mapfile *s, const struct map *m, const uint64_t *before)
{
	for (int i = 0; i < MAP_FAULTS; i++)
		s->faults[i] += map_faults(m)[i] - before[i];
}

static int read_on(struct mapfile *s, struct reading *r)
{
	uint64_t before[MAP_FAULTS];
	char *buf = malloc(CHUNK);
	ssize_t n = 0;

	if (!buf)
		return -ENOMEM;
	memcpy(before, map_faults(s->map), sizeof(before));
	while (!s->full && s->offset < MAX_FILE && fusee_now(CLOCK_MONOTONIC) <= r->until &&
	       (n = pread(s->fd, buf, CHUNK, (off_t)s->offset)) > 0) {
		map_feed(s->map, buf, (size_t)n);
		mark(s, buf, (uint32_t)n);
		s->offset += (uint64_t)n;
		if (map_pending(s->map) >= MAP_PENDING)
			commit(s, r);
		/* the rest has no room either */
		s->full = map_faults(s->map)[MAP_FULL] > before[MAP_FULL] + 1000;
	}
	commit(s, r);
	add_faults(s, s->map, before);
	free(buf);
	return n < 0 ? -errno : 0;
}

/* The entries so far are kept for frames of earlier generations. */
static int begin_anew(struct mapfile *s, struct reading *r)
{
	struct map *m = map_new(s->max_bytes);

	if (!m)
		return -ENOMEM;
	map_free(s->before);
	s->before = s->map;
	s->map = m;
	s->rewrites++;
	forget_file(s);
	raise_generation(s, r);
	s->first = s->generation;
	return 0;
}

/* There is room now for lines that had none. */
static int read_again(struct mapfile *s)
{
	struct map *m = map_new(s->max_bytes);

	s->reread = false;
	if (!m)
		return -ENOMEM;
	map_free(s->map);
	s->map = m;
	forget_file(s);
	return 0;
}

int mapfile_read(struct mapfile *s, uint32_t (*changed)(void *arg), void *arg)
{
	struct reading reading = {.changed = changed, .arg = arg};
	uint64_t begin = fusee_now(CLOCK_MONOTONIC), end;
	struct stat st;
	bool another;
	int r;

	if (begin < s->next_ns)
		return 0;
	reading.until = s->most_ns ? begin + s->most_ns : UINT64_MAX;
	r = find_file(s, &another);
	if (r)
		return r;
	if (fstat(s->fd, &st))
		return -errno;
	if (another || is_rewritten(s, &st))
		r = begin_anew(s, &reading);
	else if (s->reread)
		r = read_again(s);
	if (!r && (uint64_t)st.st_size > s->offset)
		r = read_on(s, &reading);
	s->written = st.st_mtim;
	end = fusee_now(CLOCK_MONOTONIC);
	s->next_ns = end + PAUSE * (end - begin);
	return r;
}

bool mapfile_lookup(const struct mapfile *s, uint64_t addr, uint32_t generation,
		    struct fusee_str *name)
{
	if (s->before && generation < s->first && map_lookup(s->before, addr, generation, name))
		return true;
	return map_lookup(s->map, addr, generation, name);
}
