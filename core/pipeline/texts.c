/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that may have code of a file, which its process has moved there: it is compared when it is
 * mapped, when the file was inspected, and a few times later, as the process may be copying. */
#include <errno.h>

#include "base/clock.h"
#include "opener/opener.h"
#include "pipeline/state.h"
#include "unwind/moved_text.h"

#define MOST_PAUSE_NS 3200000000ull
#define SECOND_NS 1000000000ull
#define MOST_OF_PROCESS 8u /* comparisons in a second */
#define MOST_OF_ALL 64u

/* Each process can map ever new memory. */
static bool may_compare(struct time_used *t, uint64_t now, uint32_t most)
{
	if (now / SECOND_NS != t->second)
		*t = (struct time_used){.second = now / SECOND_NS};
	return t->records < most;
}

static int compare(struct pipeline *p, struct process *proc, const struct process_mapping *m,
		   struct moved_text *part)
{
	struct followed *f = followed_of(proc);
	uint64_t now = clock_now();
	int err;

	if (now < f->text_pause.until_ns && m->text.tries)
		return -EAGAIN;
	if (!may_compare(&f->compared, now, MOST_OF_PROCESS) ||
	    !may_compare(&p->texts.compared, now, MOST_OF_ALL))
		return -EAGAIN;
	err = moved_text_compare(proc, m, part);
	f->compared.records += err != -ENOENT;
	p->texts.compared.records += err != -ENOENT;
	return err;
}

static void note_due(struct pipeline *p, const struct followed *f)
{
	if (!p->texts.due_ns || f->text_pause.until_ns < p->texts.due_ns)
		p->texts.due_ns = f->text_pause.until_ns;
}

/* The memory does not have the file's code, or not yet. */
static void note_failure(struct pipeline *p, struct process *proc, struct process_text *t, int err)
{
	struct followed *f = followed_of(proc);

	if (err != -ENOENT && !opener_is_temporary(err)) {
		t->differed = clock_now();
		t->tries++;
	}
	if (err == -ENOENT || t->tries == MOVED_TEXT_TRIES) {
		t->file = NULL;
		return;
	}
	if (clock_now() >= f->text_pause.until_ns)
		pipeline_begin_pause(&f->text_pause, MOST_PAUSE_NS);
	note_due(p, f);
}

/* Maps the part of the memory, and what is below it. The rest remains. */
static void put_part(struct pipeline *p, struct process *proc, struct process_mapping *rest,
		     const struct moved_text *part)
{
	struct process_mapping below = *rest, text = *rest;

	below.hi = part->lo;
	below.text.file = NULL;
	if (below.lo < below.hi)
		pipeline_put_mapping(p, proc, &below);
	text.lo = part->lo;
	text.hi = part->hi;
	text.offset = part->offset;
	if (text.text.differed > text.since) /* samples of that time are not of this code */
		text.since = text.text.differed;
	text.file = part->file;
	text.moved = true;
	pipeline_put_mapping(p, proc, &text);
	rest->offset += part->hi - rest->lo;
	rest->lo = part->hi;
}

void pipeline_put_memory(struct pipeline *p, struct process *proc, const struct process_mapping *m)
{
	struct process_mapping rest = *m;
	struct moved_text part;

	while (rest.text.file && rest.text.file->state == FILE_READY && rest.lo < rest.hi) {
		int err = compare(p, proc, &rest, &part);

		if (err) {
			note_failure(p, proc, &rest.text, err);
			break;
		}
		put_part(p, proc, &rest, &part);
	}
	if (rest.lo == rest.hi)
		return;
	followed_of(proc)->texts |= rest.text.file != NULL;
	pipeline_put_mapping(p, proc, &rest);
}

void pipeline_settle_texts(struct pipeline *p, struct process *proc)
{
	struct followed *f = followed_of(proc);

	if (!f->texts || f->paused || proc->ended || proc->replaced)
		return;
	if (clock_now() < f->text_pause.until_ns) {
		note_due(p, f);
		return;
	}
	f->texts = false;
	p->scanned = true; /* samples wait for it */
	for (uint32_t i = 0; i < proc->n && !f->paused; i++) {
		struct process_mapping m = proc->mappings[i];

		if (!m.text.file || m.moved)
			continue;
		if (m.text.file->state == FILE_REFUSED)
			proc->mappings[i].text.file = NULL;
		f->texts |= m.text.file->state == FILE_PENDING;
		if (m.text.file->state != FILE_READY)
			continue;
		proc->mappings[i].text.file = NULL; /* until it is known better */
		pipeline_put_memory(p, proc, &m);
		i = process_first_above(proc, m.hi - 1);
	}
}

bool pipeline_awaits_text(struct pipeline *p, pid_t pid)
{
	struct process *proc = process_find(p->processes, pid);
	bool awaits = false;

	if (!proc)
		return false;
	pipeline_settle_texts(p, proc);
	for (uint32_t i = 0; followed_of(proc)->texts && !awaits && i < proc->n; i++)
		awaits = moved_text_awaited(&proc->mappings[i]);
	return awaits;
}

static void settle_at_once(void *arg, struct process *proc)
{
	followed_of(proc)->text_pause.until_ns = 0;
	pipeline_settle_texts(arg, proc);
}

void pipeline_finish_texts(struct pipeline *p)
{
	process_each(p->processes, settle_at_once, p);
}

static void settle(void *arg, struct process *proc)
{
	pipeline_settle_texts(arg, proc);
}

void pipeline_settle_all_texts(struct pipeline *p)
{
	uint64_t now = p->texts.due_ns ? clock_now() : 0;

	if (p->texts.answers == p->files->answers && (!p->texts.due_ns || now < p->texts.due_ns))
		return;
	p->texts.answers = p->files->answers;
	p->texts.due_ns = 0;
	process_each(p->processes, settle, p);
}
