/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/moved_text.h"

#include <elf.h>
#include <errno.h>
#include <unistd.h>

#include "inspection/inspection.h"
#include "opener/opener.h"

#define MOST 8u        /* parts of one memory that are compared: a file may have any segments */
#define FAR (4u << 20) /* between a program's code and what is mapped above it, at most */

/* ---- which file ---- */

static bool may_have_code(const struct file *f)
{
	return f && f->source.readable && f->state != FILE_REFUSED;
}

static struct process_text text_of(const struct process_mapping *m)
{
	if (!m->file || m->moved)
		return m->text;
	return (struct process_text){.file = m->file, .lo = m->lo, .offset = m->offset};
}

static struct process_text text_at(struct files *fs, pid_t pid, const struct procfs_mapping *m)
{
	return (struct process_text){
		.file = files_of(fs, pid, m), .lo = m->lo, .offset = m->offset};
}

/* What the process has, or had, in this place, or maps right beside it. */
static struct process_text known(const struct process *p, uint64_t lo, uint64_t hi)
{
	struct process_text t = {0};
	uint32_t i = process_first_above(p, lo);

	for (uint32_t k = i; k < p->n && p->mappings[k].lo < hi && !may_have_code(t.file); k++)
		t = text_of(&p->mappings[k]);
	if (!may_have_code(t.file) && i && p->mappings[i - 1].hi == lo)
		t = text_of(&p->mappings[i - 1]);
	for (; i < p->n && p->mappings[i].lo < hi; i++)
		;
	if (!may_have_code(t.file) && i < p->n && p->mappings[i].lo == hi)
		t = text_of(&p->mappings[i]);
	t.tries = 0;
	t.differed = 0;
	return may_have_code(t.file) ? t : (struct process_text){0};
}

/* When this memory last had other bytes. */
static uint64_t differed(const struct process *p, uint64_t lo, uint64_t hi)
{
	uint64_t last = 0;

	for (uint32_t i = process_first_above(p, lo); i < p->n && p->mappings[i].lo < hi; i++)
		if (p->mappings[i].text.differed > last)
			last = p->mappings[i].text.differed;
	return last;
}

static bool is_same_file(const struct procfs_mapping *a, const struct procfs_mapping *b)
{
	return a->ino == b->ino && a->dev_major == b->dev_major && a->dev_minor == b->dev_minor;
}

/* Files of data lie beside memory, too; nothing is opened of them. A file's code is between its
 * other segments, or the first of them. */
static struct process_text shown(struct files *fs, const struct process *p,
				 const struct procfs_mapping *m)
{
	const struct procfs_mapping *below = m->below, *above = m->above;

	if (below && above && is_same_file(below, above) && below->lo < above->lo &&
	    above->offset - below->offset <= above->lo - below->lo + FAR)
		return text_at(fs, p->pid, below);
	if (above && above->offset && above->lo - above->offset - m->lo <= FAR)
		return text_at(fs, p->pid, above);
	return (struct process_text){0};
}

struct process_text moved_text_of(struct files *fs, struct process *p,
				  const struct procfs_mapping *m)
{
	struct process_text t = {0};

	if (!procfs_is_memory(m))
		return t;
	t = shown(fs, p, m);
	if (!may_have_code(t.file))
		t = known(p, m->lo, m->hi);
	t.differed = differed(p, m->lo, m->hi);
	return t;
}

struct file *moved_text_awaited(const struct process_mapping *m)
{
	struct file *f = m->text.file;

	if (m->file && m->file->state == FILE_PENDING)
		return m->file;
	return f && !m->moved && f->state != FILE_REFUSED && m->text.tries < MOVED_TEXT_AWAITED
		       ? f
		       : NULL;
}

/* ---- the bytes ---- */

/* Of what a file's mapping from this offset on may be: a mapping has complete pages. */
static bool has_offset(const struct fusee_segment *s, uint64_t offset)
{
	uint64_t page = (uint64_t)getpagesize();

	return s->filesz && s->filesz <= UINT64_MAX - s->offset - page &&
	       offset >= (s->offset & -page) &&
	       offset < ((s->offset + s->filesz + page - 1) & -page);
}

/* The part of [lo, hi) where this segment belongs, if the file's addresses are `bias` lower. */
static bool overlap(const struct fusee_segment *s, uint64_t bias, uint64_t *lo, uint64_t *hi)
{
	uint64_t from = s->vaddr + bias, to = from + s->filesz;

	if (!(s->flags & PF_X) || to <= from || to <= *lo || from >= *hi)
		return false;
	*lo = from > *lo ? from : *lo;
	*hi = to < *hi ? to : *hi;
	return true;
}

static int compare(const struct process *p, const struct process_mapping *m, uint64_t lo,
		   uint64_t hi, uint64_t offset)
{
	struct file *f = m->text.file;
	struct opener_query q = {.kind = OPENER_COMPARE,
				 .pid = p->pid,
				 .address = lo,
				 .offset = offset,
				 .bytes = hi - lo,
				 .since = m->since,
				 .fd = files_hold(f)};
	struct opener_answer a;
	int err;

	if (q.fd < 0)
		return q.fd;
	err = opener_call(worker_opener(f->files->worker), &q, &a);
	files_release(f);
	return err;
}

/* The segment `code` at its place; complete pages of the memory are its own. */
static int compare_segment(const struct process *p, const struct process_mapping *m,
			   const struct fusee_segment *code, uint64_t bias, struct moved_text *part)
{
	uint64_t lo = part->lo, hi = part->hi, page = (uint64_t)getpagesize();
	int err;

	if (!overlap(code, bias, &lo, &hi))
		return -ENOENT;
	err = compare(p, m, lo, hi, code->offset + (lo - bias - code->vaddr));
	if (err)
		return err;
	lo &= -page;
	hi = (hi + page - 1) & -page;
	part->lo = lo > part->lo ? lo : part->lo;
	part->hi = hi < part->hi ? hi : part->hi;
	part->offset = part->lo - bias - code->vaddr + code->offset;
	return 0;
}

int moved_text_compare(const struct process *p, const struct process_mapping *m,
		       struct moved_text *ret)
{
	const struct process_text *t = &m->text;
	const struct inspection *in = t->file->inspection;
	uint32_t compared = 0;
	int err = -ENOENT;

	for (uint32_t i = 0; i < in->nsegments; i++) {
		const struct fusee_segment *at = &in->segments[i];
		uint64_t bias = t->lo - (t->offset - at->offset + at->vaddr);

		for (uint32_t k = 0; k < in->nsegments && compared < MOST; k++) {
			struct moved_text part = {.file = t->file, .lo = m->lo, .hi = m->hi};
			int r = has_offset(at, t->offset)
					? compare_segment(p, m, &in->segments[k], bias, &part)
					: -ENOENT;

			if (!r) {
				*ret = part;
				return 0;
			}
			compared += r != -ENOENT;
			err = r == -ENOENT ? err : r;
		}
	}
	return err;
}
