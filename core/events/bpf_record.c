/* SPDX-License-Identifier: Apache-2.0 */
#include "events/internal/bpf_record.h"

#include <linux/perf_event.h>
#include <string.h>

#include <fusee/unwinder.bpf.h>

/* The least and the largest size of a record of this kind. false: an unknown kind. */
static bool size_of_kind(uint32_t kind, uint32_t *least, uint32_t *most)
{
	static const struct {
		uint32_t least, most;
	} sizes[] = {
		[RECORD_STACK] = {RECORD_STACK_HEAD, sizeof(struct record_stack)},
		[RECORD_COPY] = {RECORD_COPY_HEAD, sizeof(struct record_copy)},
		[RECORD_DEFERRED] = {sizeof(struct record_deferred),
				     sizeof(struct record_deferred)},
		[RECORD_MISSED] = {sizeof(struct record_missed), sizeof(struct record_missed)},
		[RECORD_EMISSION] = {sizeof(struct record_emission), sizeof(union record)},
		[RECORD_RETURNS] = {RECORD_RETURNS_HEAD, sizeof(struct record_returns)},
		[RECORD_CONTINUATION] = {RECORD_STACK_HEAD, sizeof(struct record_stack)},
		[RECORD_LABELS] = {RECORD_LABELS_HEAD, sizeof(struct record_labels)},
	};

	if (kind >= sizeof(sizes) / sizeof(*sizes) || !sizes[kind].least)
		return false;
	*least = sizes[kind].least;
	*most = sizes[kind].most;
	return true;
}

bool bpf_record_read(union record *r, const void *from, uint32_t len)
{
	uint32_t least, most;

	if (len < sizeof(r->head))
		return false;
	memcpy(&r->head, from, sizeof(r->head));
	if (!size_of_kind(r->head.kind, &least, &most) || r->head.size < least ||
	    r->head.size > most || r->head.size > len)
		return false;
	memcpy(r, from, r->head.size);
	return true;
}

bool bpf_record_has_texts(const struct record_labels *r)
{
	uint32_t at = 0;

	if (r->bytes != r->head.size - RECORD_LABELS_HEAD || r->n > RECORD_TEXTS)
		return false;
	for (uint32_t i = 0; i < r->n; i++) {
		struct record_text t;

		if (r->bytes - at < sizeof(t))
			return false;
		memcpy(&t, r->texts + at, sizeof(t));
		at += (uint32_t)sizeof(t);
		if (t.key > RECORD_TEXT_KEY || t.value > RECORD_TEXT_VALUE ||
		    r->bytes - at < (uint32_t)t.key + t.value)
			return false;
		at += (uint32_t)t.key + t.value;
	}
	return at == r->bytes;
}

bool bpf_record_is_sample(const void *from, uint32_t len)
{
	struct record_head head;

	if (len < sizeof(head))
		return false;
	memcpy(&head, from, sizeof(head));
	return head.kind == RECORD_STACK || head.kind == RECORD_COPY || head.kind == RECORD_MISSED;
}

bool bpf_record_of_cpu(const void *from)
{
	struct record_head head;

	memcpy(&head, from, sizeof(head));
	return head.flags & (RECORD_CPU_EVENT | RECORD_CHOSEN | RECORD_HIT);
}

/* Writes each page of the copy to its offset in stack; absent pages are zero. Returns the bytes
 * up to the end of the last present page. */
static uint32_t place_pages(unsigned char *stack, const struct record_copy *copy)
{
	uint64_t sp = copy->regs[FUSEE_X86_RSP];
	uint32_t from = 0, to = 0, end = 0;

	for (uint32_t page = 0; page < RECORD_COPY_PAGES && from < copy->bytes; page++) {
		uint32_t n = RECORD_PAGE - (uint32_t)((sp + to) % RECORD_PAGE);

		if (copy->holes >> page & 1) {
			memset(stack + to, 0, n);
		} else {
			n = n < copy->bytes - from ? n : copy->bytes - from;
			memcpy(stack + to, copy->stack + from, n);
			from += n;
			end = to + n;
		}
		to += n;
	}
	return end;
}

/* Kernel frames that come from a callchain begin with a marker of perf. */
static void set_kernel_frames(const struct record_copy *copy, struct sample *to)
{
	bool marked = copy->nkernel && copy->kernel[0] >= (uint64_t)PERF_CONTEXT_MAX;

	to->kernel = (const uint64_t *)copy->kernel + marked;
	to->nkernel = copy->nkernel - marked;
}

bool bpf_record_sample(struct bpf_record_reader *reader, uint64_t time, uint32_t cpu,
		       struct sample *s)
{
	const struct record_copy *r = &reader->record.copy;

	if (r->bytes > r->tick.head.size - RECORD_COPY_HEAD || r->bytes > RECORD_MAX_COPY ||
	    r->nkernel > RECORD_MAX_KERNEL)
		return false;
	*s = (struct sample){.pid = (pid_t)r->tick.head.pid,
			     .tid = (pid_t)r->tick.head.tid,
			     .cpu = cpu,
			     .time = time,
			     .period = record_weight(&r->tick),
			     .hit.followed = record_followed(&r->tick),
			     .hit.hook = record_hook(&r->tick.head),
			     .share = bpf_record_share(&r->tick.head),
			     .chosen.is = r->tick.head.flags & RECORD_CHOSEN,
			     .chosen.sampler = bpf_record_sampler(&r->tick.head),
			     .chosen.words = {r->tick.words[0], r->tick.words[1]},
			     .hit.value = r->tick.head.flags & RECORD_HIT ? r->tick.value : 0,
			     .abi = 2,
			     .stop = r->stop,
			     .continuations.since = r->continued,
			     .stack = reader->stack};
	memcpy(s->regs, r->regs, sizeof(s->regs));
	s->stack_len = place_pages(reader->stack, r);
	s->holes = r->holes;
	s->stack_full = r->bytes == r->limit;
	set_kernel_frames(r, s);
	if (!r->bytes && s->nkernel)
		s->abi = 0; /* the process is ending, without user memory: a complete stack */
	return true;
}

void bpf_record_wipe(struct bpf_record_reader *reader, const struct sample *s)
{
	explicit_bzero(reader->stack, s->stack_len);
	explicit_bzero(&reader->record.copy, reader->record.head.size);
}
