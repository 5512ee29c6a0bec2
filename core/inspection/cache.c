// SPDX-License-Identifier: Apache-2.0
/* Inspections on disk. */
#include "inspection/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/buf.h"
#include "base/hashmap.h"
#include "base/pread.h"
#include "base/text.h"
#include "inspection/internal/block.h"
#include "inspection/internal/cache.h"

#define CACHE_MAGIC "fusee-i\n"
#define CACHE_VERSION 2
#define USED_SECONDS 86400 /* how often a file's time of use is renewed */

struct cache {
	int dir;
	uint64_t max_bytes;
	uint64_t bytes; /* of all files, if counted; other processes may change it */
	bool counted;
	struct hashmap names; /* prefixes of the keys that may be on disk */
};

/* The start of a file. The inspection's block follows. */
struct cache_head {
	char magic[8];
	uint32_t version, block_version; /* of an inspection: INSPECTION_VERSION */
	uint64_t bytes, checksum;        /* of the block; XXH3, 64 bits */
	uint8_t key[32];
};

/* Failures are found when the folder is opened. */
static void make_dirs(const char *dir)
{
	char *path = strdup(dir);

	if (!path)
		return;
	for (char *p = path + 1; *p; p++)
		if (*p == '/') {
			*p = 0;
			mkdir(path, 0755);
			*p = '/';
		}
	mkdir(path, 0700);
	free(path);
}

static uint64_t prefix_of(const uint8_t key[32])
{
	uint64_t prefix;

	memcpy(&prefix, key, sizeof(prefix));
	return prefix | 1;
}

void cache_expect(struct cache *c, const uint8_t key[32])
{
	hashmap_put(&c->names, prefix_of(key), c); /* without memory the inspection is made again */
}

bool cache_may_have(const struct cache *c, const uint8_t key[32])
{
	return hashmap_get(&c->names, prefix_of(key));
}

static int note_name(struct cache *c, const char *name)
{
	uint8_t key[32] = {0};

	for (size_t i = 0; i < 8; i++)
		if (sscanf(name + 2 * i, "%2hhx", &key[i]) != 1)
			return 0; /* not an inspection */
	return hashmap_put(&c->names, prefix_of(key), c) ? -ENOMEM : 0;
}

/* Notes which names exist, because opening a file that does not exist can block while another file
 * is written. */
static int note_names(struct cache *c)
{
	int fd = openat(c->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), err = 0;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!d) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	while (!err && (e = readdir(d)))
		if (strlen(e->d_name) == 64)
			err = note_name(c, e->d_name);
	closedir(d);
	return err;
}

int cache_open(struct cache **ret, const char *dir, uint64_t max_bytes)
{
	struct cache *c = calloc(1, sizeof(*c));
	struct stat st;
	int err;

	if (!c)
		return -ENOMEM;
	c->max_bytes = max_bytes;
	make_dirs(dir);
	c->dir = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (c->dir < 0 || fstat(c->dir, &st))
		err = -errno;
	else
		err = st.st_uid != geteuid() || st.st_mode & 022 ? -EPERM : 0;
	if (!err)
		err = note_names(c);
	if (err)
		cache_close(c);
	else
		*ret = c;
	return err;
}

void cache_close(struct cache *c)
{
	if (!c)
		return;
	if (c->dir >= 0)
		close(c->dir);
	hashmap_fini(&c->names);
	free(c);
}

/* ---- reading ---- */

/* Reads instead of mapping the file, because a disk error in a mapped page is a SIGBUS. */
static int read_block(int fd, const struct cache_head *h, struct inspection **ret)
{
	void *p = mmap(NULL, h->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int err;

	if (p == MAP_FAILED)
		return -ENOMEM;
	err = pread_all(fd, p, h->bytes, sizeof(*h));
	if (!err && XXH3_64bits(p, h->bytes) != h->checksum)
		err = -EBADMSG;
	if (!err && mprotect(p, h->bytes, PROT_READ))
		err = -ENOMEM;
	if (!err)
		return inspection_open(ret, p, h->bytes, NULL);
	munmap(p, h->bytes);
	return err;
}

static int read_head(int fd, const uint8_t key[32], uint32_t block_version, struct cache_head *h,
		     struct stat *st)
{
	int err;

	if (fstat(fd, st))
		return -errno;
	if (!S_ISREG(st->st_mode) || st->st_uid != geteuid() || st->st_mode & 022)
		return -EBADMSG;
	err = pread_all(fd, h, sizeof(*h), 0);
	if (err)
		return err;
	if (memcmp(h->magic, CACHE_MAGIC, sizeof(h->magic)) || h->version != CACHE_VERSION ||
	    h->block_version != block_version || memcmp(h->key, key, sizeof(h->key)) || !h->bytes ||
	    h->bytes > INSPECTION_MAX_BYTES || (uint64_t)st->st_size != sizeof(*h) + h->bytes)
		return -EBADMSG;
	return 0;
}

/* Updates the file's time of use at most once a day, as a write can wait for the disk. */
static void mark_used(int fd, const struct stat *st)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (now.tv_sec < st->st_mtim.tv_sec || now.tv_sec - st->st_mtim.tv_sec > USED_SECONDS)
		futimens(fd, NULL);
}

void cache_remove(struct cache *c, const uint8_t key[32])
{
	char name[65];

	text_hex(name, key, 32);
	unlinkat(c->dir, name, 0);
}

/* Opens the file of a key and checks its head. 0, -ENOENT or -errno. */
static int open_valid(struct cache *c, const uint8_t key[32], uint32_t block_version, int *fd,
		      struct cache_head *h, struct stat *st)
{
	char name[65];
	int err;

	if (!cache_may_have(c, key))
		return -ENOENT;
	text_hex(name, key, 32);
	*fd = openat(c->dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (*fd < 0) {
		if (errno == ELOOP)
			unlinkat(c->dir, name, 0);
		return -ENOENT;
	}
	err = read_head(*fd, key, block_version, h, st);
	if (!err)
		return 0;
	close(*fd);
	if (err != -EBADMSG)
		return err;
	unlinkat(c->dir, name, 0);
	return -ENOENT;
}

int cache_load(struct cache *c, const uint8_t key[32], struct inspection **ret)
{
	struct cache_head h;
	struct stat st;
	int fd, err = open_valid(c, key, INSPECTION_VERSION, &fd, &h, &st);

	if (err)
		return err;
	err = read_block(fd, &h, ret);
	if (!err) {
		(*ret)->flags |= INSPECTION_CACHED;
		inspection_set_stored(*ret, key);
		mark_used(fd, &st);
	} else if (err == -EBADMSG) {
		cache_remove(c, key);
		err = -ENOENT;
	}
	close(fd);
	return err;
}

int cache_open_block(struct cache *c, const uint8_t key[32], uint32_t version, int *fd,
		     uint64_t *at, uint64_t *bytes)
{
	struct cache_head h;
	struct stat st;
	int err = open_valid(c, key, version, fd, &h, &st);

	if (err)
		return err;
	mark_used(*fd, &st);
	*at = sizeof(h);
	*bytes = h.bytes;
	return 0;
}

int cache_read_block(struct cache *c, const uint8_t key[32], uint32_t version, void *block,
		     uint64_t bytes)
{
	struct cache_head h;
	struct stat st;
	int fd, err = open_valid(c, key, version, &fd, &h, &st);

	if (err)
		return err;
	err = h.bytes == bytes ? pread_all(fd, block, bytes, sizeof(h)) : -EBADMSG;
	if (!err && XXH3_64bits(block, bytes) != h.checksum)
		err = -EBADMSG;
	if (!err)
		mark_used(fd, &st);
	close(fd);
	if (err != -EBADMSG)
		return err;
	cache_remove(c, key);
	return -ENOENT;
}

/* ---- writing ---- */

struct cache_entry {
	char name[65];
	uint64_t bytes;
	struct timespec used;
};

static int by_age(const void *a, const void *b)
{
	const struct timespec *x = &((const struct cache_entry *)a)->used,
			      *y = &((const struct cache_entry *)b)->used;

	if (x->tv_sec != y->tv_sec)
		return x->tv_sec < y->tv_sec ? -1 : 1;
	return x->tv_nsec < y->tv_nsec ? -1 : x->tv_nsec > y->tv_nsec;
}

/* Appends all files to an empty buf, the longest unused first. */
static int list_files(struct cache *c, struct buf *b)
{
	int fd = openat(c->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	struct stat st;

	if (!d) {
		if (fd >= 0)
			close(fd);
		return -EIO;
	}
	while ((e = readdir(d))) {
		struct cache_entry entry = {0};

		if (strlen(e->d_name) >= sizeof(entry.name) ||
		    fstatat(c->dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
			continue;
		strcpy(entry.name, e->d_name);
		entry.bytes = (uint64_t)st.st_size;
		entry.used = st.st_mtim;
		buf_add(b, &entry, sizeof(entry));
	}
	closedir(d);
	if (!b->error && b->len)
		qsort(b->p, b->len / sizeof(struct cache_entry), sizeof(struct cache_entry),
		      by_age);
	return b->error;
}

/* Makes room for `more` bytes. Removes files down to nine tenths of the limit, so that not every
 * store removes some. */
static int make_room(struct cache *c, uint64_t more)
{
	struct buf b = {0};
	struct cache_entry *e;
	int err;

	if (more > c->max_bytes)
		return -EFBIG;
	if (c->counted && c->bytes + more <= c->max_bytes)
		return 0;
	err = list_files(c, &b);
	if (err)
		goto out;
	e = (void *)b.p;
	c->bytes = 0;
	for (size_t i = 0; i < b.len / sizeof(*e); i++)
		c->bytes += e[i].bytes;
	c->counted = true;
	if (c->bytes + more <= c->max_bytes)
		goto out;
	for (size_t i = 0;
	     i < b.len / sizeof(*e) && c->bytes && c->bytes + more > c->max_bytes / 10 * 9; i++)
		if (!unlinkat(c->dir, e[i].name, 0))
			c->bytes -= e[i].bytes;
out:
	buf_fini(&b);
	return err;
}

static int write_file(struct cache *c, const char *name, const struct cache_head *h,
		      const void *block)
{
	struct buf head = {.p = (void *)h, .len = sizeof(*h)},
		   body = {.p = (void *)block, .len = h->bytes};
	int fd = openat(c->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int err;

	if (fd < 0)
		return -errno;
	err = buf_write(&head, fd);
	if (!err)
		err = buf_write(&body, fd);
	if (close(fd) && !err)
		err = -errno;
	return err;
}

int cache_store_block(struct cache *c, const uint8_t key[32], uint32_t version, const void *block,
		      uint64_t bytes)
{
	struct cache_head h = {.magic = CACHE_MAGIC,
			       .version = CACHE_VERSION,
			       .block_version = version,
			       .bytes = bytes};
	char name[65], temporary[32];
	int err = make_room(c, sizeof(h) + h.bytes);

	if (err)
		return err;
	memcpy(h.key, key, sizeof(h.key));
	h.checksum = XXH3_64bits(block, h.bytes);
	text_hex(name, key, 32);
	snprintf(temporary, sizeof(temporary), "tmp.%d", (int)getpid());
	unlinkat(c->dir, temporary, 0);
	err = write_file(c, temporary, &h, block);
	if (!err && renameat(c->dir, temporary, c->dir, name))
		err = -errno;
	if (err)
		unlinkat(c->dir, temporary, 0);
	else
		c->bytes += sizeof(h) + h.bytes;
	return err;
}

int cache_store(struct cache *c, const uint8_t key[32], const struct inspection *i)
{
	uint64_t bytes;
	const void *block = inspection_bytes(i, &bytes);

	return cache_store_block(c, key, INSPECTION_VERSION, block, bytes);
}

/* ---- texts ---- */

#define TEXT_BYTES (1 << 20)

/* fd or -errno. -EBADMSG: the file is not the user's, or others can write to it. */
static int open_text(struct cache *c, const char *name, int flags, struct stat *st)
{
	int fd = openat(c->dir, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	if (!fstat(fd, st) && S_ISREG(st->st_mode) && st->st_uid == geteuid() &&
	    !(st->st_mode & 022))
		return fd;
	close(fd);
	return -EBADMSG;
}

int cache_append(struct cache *c, const char *name, const struct buf *line)
{
	struct stat st;
	int fd = open_text(c, name, O_WRONLY | O_CREAT | O_APPEND, &st), err;

	if (fd < 0)
		return fd;
	err = st.st_size > TEXT_BYTES ? -EFBIG : buf_write(line, fd);
	close(fd);
	return err;
}

int cache_text(struct cache *c, const char *name, struct buf *text)
{
	struct stat st;
	int fd = open_text(c, name, O_RDONLY, &st), err;

	if (fd < 0)
		return fd;
	err = buf_read_fd(text, fd, TEXT_BYTES * 2);
	close(fd);
	if (st.st_size > TEXT_BYTES / 2)
		unlinkat(c->dir, name, 0);
	return err < 0 ? err : 0;
}
