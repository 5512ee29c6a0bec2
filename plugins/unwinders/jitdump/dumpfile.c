/* SPDX-License-Identifier: Apache-2.0 */
#include "dumpfile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fusee/helpers.h>

#define CHUNK 65536u
#define PAUSE 10u /* a large file is read again after so many times the last reading */

int dumpfile_init(struct dumpfile *s, uint32_t pid, uint64_t max_bytes)
{
	*s = (struct dumpfile){
		.fd = -1, .pid = pid, .first = 1, .generation = 1, .max_bytes = max_bytes / 2};
	s->dump = dump_new(s->max_bytes);
	return s->dump ? 0 : -ENOMEM;
}

void dumpfile_fini(struct dumpfile *s)
{
	dump_free(s->dump);
	dump_free(s->before);
	if (s->fd >= 0)
		close(s->fd);
}

uint64_t dumpfile_bytes(const struct dumpfile *s)
{
	return dump_bytes(s->dump) + (s->before ? dump_bytes(s->before) : 0);
}

void dumpfile_limit(struct dumpfile *s, uint64_t max_bytes)
{
	s->max_bytes = max_bytes / 2;
	dump_limit(s->dump, s->max_bytes);
}

/* What is read of the file: [at, at + have) of it. */
struct reading {
	struct dumpfile *s;
	uint32_t (*changed)(void *arg);
	void *arg;
	bool raised;         /* the generation changes once for each reading */
	uint64_t until, end; /* when it ends at the latest; the file's size */
	uint8_t *buf;
	uint64_t cap, at, have;
};

static void commit(struct reading *r)
{
	struct dumpfile *s = r->s;

	if (dump_replaces(s->dump) && !r->raised) {
		s->generation = r->changed(r->arg);
		r->raised = true;
	}
	dump_commit(s->dump, s->generation);
}

/* Finds len bytes of the file at an offset. NULL: they are not there; *err: 0 or -errno. */
static const uint8_t *bytes_at(struct reading *r, uint64_t offset, uint32_t len, int *err)
{
	uint64_t want = len > CHUNK ? len : CHUNK;
	ssize_t n;

	if (offset >= r->at && offset - r->at <= r->have && len <= r->have - (offset - r->at))
		return r->buf + (offset - r->at);
	if (want > r->cap) {
		uint8_t *more = realloc(r->buf, want);

		if (!more) {
			*err = -ENOMEM;
			return NULL;
		}
		r->buf = more;
		r->cap = want;
	}
	r->at = offset;
	r->have = 0;
	n = pread(r->s->fd, r->buf, want, (off_t)offset);
	if (n < 0)
		*err = -errno;
	else
		r->have = (uint64_t)n;
	return r->have >= len ? r->buf : NULL;
}

/* Takes the record at the offset. false: it is not complete yet, or nothing more is read. */
static bool take_record(struct reading *r, int *err)
{
	struct dumpfile *s = r->s;
	uint64_t body = s->offset + DUMP_PREFIX;
	const uint8_t *p;
	uint32_t id, size, needed;

	if (body > r->end)
		return false;
	p = bytes_at(r, s->offset, DUMP_PREFIX, err);
	if (!p)
		return false;
	memcpy(&id, p, sizeof(id));
	memcpy(&size, p + 4, sizeof(size));
	if (!id && !size) /* a file can be longer than what was written to it */
		return false;
	if (size < DUMP_PREFIX || size > DUMP_LONGEST) {
		s->damaged = true;
		return false;
	}
	if (s->offset + size > r->end)
		return false;
	needed = dump_requires(id);
	if (needed > size - DUMP_PREFIX)
		needed = size - DUMP_PREFIX;
	p = needed ? bytes_at(r, body, needed, err) : NULL;
	if (needed && !p)
		return false;
	if (needed)
		dump_record(s->dump, id, p, needed);
	s->offset += size;
	return true;
}

static void read_records(struct reading *r, int *err)
{
	struct dumpfile *s = r->s;
	uint64_t before[DUMP_FAULTS];

	memcpy(before, dump_faults(s->dump), sizeof(before));
	while (!s->full && !s->damaged && fusee_now(CLOCK_MONOTONIC) <= r->until &&
	       take_record(r, err)) {
		if (dump_pending(s->dump) >= DUMP_PENDING)
			commit(r);
		/* what follows has no room either */
		s->full = dump_faults(s->dump)[DUMP_FULL] > before[DUMP_FULL] + 1000;
	}
	commit(r);
	for (int i = 0; i < DUMP_FAULTS; i++)
		s->faults[i] += dump_faults(s->dump)[i] - before[i];
}

/* The names so far are kept for frames of earlier generations. */
static int begin_anew(struct reading *r)
{
	struct dumpfile *s = r->s;
	struct dump *d = dump_new(s->max_bytes);

	if (!d)
		return -ENOMEM;
	dump_free(s->before);
	s->before = s->dump;
	s->dump = d;
	s->rewrites++;
	s->offset = 0;
	s->full = s->damaged = false;
	s->generation = r->changed(r->arg);
	r->raised = true;
	s->first = s->generation;
	return 0;
}

/* Reads the header, again if the file was rewritten. 0, -errno, or -EAGAIN: it is not there yet. */
static int read_header(struct reading *r)
{
	struct dumpfile *s = r->s;
	uint8_t header[DUMP_HEADER];
	ssize_t n = pread(s->fd, header, sizeof(header), 0);
	uint32_t size;
	int err = 0;

	if (n < 0)
		return -errno;
	if (s->offset && (n < (ssize_t)sizeof(header) || r->end < s->offset ||
			  memcmp(header, s->header, sizeof(header))))
		err = begin_anew(r);
	if (err || s->offset)
		return err;
	if (n < (ssize_t)sizeof(header))
		return -EAGAIN;
	s->refusal = dump_header(s->dump, header, s->pid, &size);
	if (s->refusal)
		return -EPERM;
	memcpy(s->header, header, sizeof(header));
	s->offset = size;
	return 0;
}

int dumpfile_read(struct dumpfile *s, uint32_t (*changed)(void *arg), void *arg)
{
	struct reading r = {.s = s, .changed = changed, .arg = arg};
	uint64_t begin = fusee_now(CLOCK_MONOTONIC), end;
	struct stat st;
	int err;

	if (s->fd < 0 || begin < s->next_ns)
		return 0;
	r.until = s->most_ns ? begin + s->most_ns : UINT64_MAX;
	if (fstat(s->fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	r.end = (uint64_t)st.st_size;
	err = read_header(&r);
	if (!err)
		read_records(&r, &err);
	free(r.buf);
	end = fusee_now(CLOCK_MONOTONIC);
	s->next_ns = end + PAUSE * (end - begin);
	return err == -EAGAIN ? 0 : err;
}

bool dumpfile_lookup(const struct dumpfile *s, uint64_t addr, uint32_t generation,
		     struct dump_found *found)
{
	if (s->before && generation < s->first && dump_lookup(s->before, addr, generation, found))
		return true;
	return dump_lookup(s->dump, addr, generation, found);
}
