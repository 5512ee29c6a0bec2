/* SPDX-License-Identifier: Apache-2.0 */
#include "probes/usdt.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/array.h"
#include "probes/filter.h"
#include "probes/operand.h"
#include "process/elf.h"
#include "sandbox/confine.h"
#include "sandbox/loader.h"

#define MOST_PLACES 1024u
#define MOST_LISTED 32u /* other probes that an error names */
#define CHILD_MEMORY (256ull << 20)
#define NOTE_TYPE 3u
#define NOTE_NAME "stapsdt"
#define NOTE_WORDS 3u

/* ---- the child, which reads the file ---- */

struct places {
	uint32_t n;
	struct {
		uint64_t offset, semaphore;
		struct probe_operand operand;
	} at[MOST_PLACES];
};

struct search {
	int fd;
	const struct usdt_probe *probe;
	struct places *places; /* shared with the child */
};

/* A note: the texts are of the section. */
struct note {
	uint64_t pc, base, semaphore;
	const char *provider, *name;
	const char *arguments; /* NULL: there is no such text */
};

/* The text at *p, which moves behind it; NULL: it does not end. */
static const char *take_text(const char **p, const char *end)
{
	const char *text = *p, *zero = memchr(text, '\0', (size_t)(end - text));

	if (!zero)
		return NULL;
	*p = zero + 1;
	return text;
}

static bool read_note(const char *p, const char *end, struct note *n)
{
	uint64_t words[NOTE_WORDS];

	if ((size_t)(end - p) < sizeof(words))
		return false;
	memcpy(words, p, sizeof(words));
	p += sizeof(words);
	n->pc = words[0];
	n->base = words[1];
	n->semaphore = words[2];
	n->provider = take_text(&p, end);
	n->name = n->provider ? take_text(&p, end) : NULL;
	n->arguments = n->name ? take_text(&p, end) : NULL;
	return n->name != NULL;
}

/* The next note of a probe; *p moves behind it. false: there is none, or the rest is damaged. */
static bool next_note(const char **p, const char *end, struct note *n)
{
	while ((size_t)(end - *p) >= sizeof(Elf64_Nhdr)) {
		const char *name = *p + sizeof(Elf64_Nhdr), *text;
		uint64_t name_size, size, rest = (uint64_t)(end - name);
		Elf64_Nhdr h;

		memcpy(&h, *p, sizeof(h));
		name_size = ((uint64_t)h.n_namesz + 3) & ~3ull;
		size = ((uint64_t)h.n_descsz + 3) & ~3ull;
		if (name_size > rest || h.n_descsz > rest - name_size)
			return false;
		text = name + name_size;
		*p = size > rest - name_size ? end : text + size;
		if (h.n_type == NOTE_TYPE && h.n_namesz == sizeof(NOTE_NAME) &&
		    !memcmp(name, NOTE_NAME, sizeof(NOTE_NAME)) &&
		    read_note(text, text + h.n_descsz, n))
			return true;
	}
	return false;
}

/* The offset of an address in the file, in a segment with this flag. */
static bool offset_of(struct elf *e, uint64_t vaddr, uint32_t flag, uint64_t *offset)
{
	struct fusee_file_info info = {.size = sizeof(info)};

	if (elf_info(e, &info))
		return false;
	for (uint32_t i = 0; i < info.segments.n; i++) {
		const struct fusee_segment *s = FUSEE_AT(struct fusee_segment, info.segments, i);

		if (s->flags & flag && vaddr >= s->vaddr && vaddr - s->vaddr < s->filesz) {
			*offset = vaddr - s->vaddr + s->offset;
			return true;
		}
	}
	return false;
}

/* A probe is an instruction without effect: another would mean that the note is not of this code,
 * and that a breakpoint may come into the middle of an instruction. */
static bool is_nop(struct elf *e, uint64_t vaddr)
{
	unsigned char code[2] = {0};

	if (elf_read(e, vaddr, code, sizeof(code)))
		return !elf_read(e, vaddr, code, 1) && code[0] == 0x90;
	return code[0] == 0x90 || (code[0] == 0x66 && code[1] == 0x90) ||
	       (code[0] == 0x0f && code[1] == 0x1f);
}

/* An argument in a variable of the file, which lies as far from the probe in memory, too. */
static int add_variable(struct elf *e, const struct operand_symbol *symbol, uint64_t pc,
			struct probe_operand *o)
{
	struct fusee_range at;
	char *name = strndup(symbol->p, symbol->len);
	int r = name ? elf_symbol(e, name, &at) : -ENOMEM;

	free(name);
	if (!r)
		o->number = (__s64)((uint64_t)o->number + at.lo - pc);
	return r;
}

/* Where the filter's argument is, for a probe at pc. 0 or -errno, with a text. */
static int find_operand(const struct search *q, struct elf *e, const struct note *n, uint64_t pc,
			struct probe_operand *o, char *why, size_t len)
{
	const struct probe_filter *f = &q->probe->filter;
	struct operand_symbol symbol;
	char clause[128];
	int r;

	if (!f->operator)
		return 0;
	r = operand_find(n->arguments ? n->arguments : "", f->argument, o, &symbol, clause,
			 sizeof(clause));
	if (r)
		snprintf(why, len, "its probe '%s' %s", q->probe->name, clause);
	else if (symbol.p && (r = add_variable(e, &symbol, pc, o)))
		snprintf(why, len, "its probe '%s' has arg%u in the variable '%.*s', %s",
			 q->probe->name, f->argument, (int)symbol.len, symbol.p,
			 r == -ENOENT ? "which is not in the file's symbols" : strerror(-r));
	return r == -ENOENT ? -ENOTSUP : r;
}

/* Adds the place of a note. 0 or -errno, with a text. */
static int add_place(const struct search *q, struct elf *e, uint64_t shift, const struct note *n,
		     char *why, size_t len)
{
	struct places *p = q->places;
	uint64_t offset, semaphore = 0;
	int r;

	if (!offset_of(e, n->pc + shift, PF_X, &offset) || !is_nop(e, n->pc + shift)) {
		snprintf(why, len, "its note of '%s' is not of its code", q->probe->name);
		return -EBADMSG;
	}
	if (n->semaphore && !offset_of(e, n->semaphore + shift, PF_W, &semaphore)) {
		snprintf(why, len, "its note of '%s' names a semaphore that is not there",
			 q->probe->name);
		return -EBADMSG;
	}
	for (uint32_t i = 0; i < p->n; i++)
		if (p->at[i].offset == offset)
			return 0;
	if (p->n == MOST_PLACES) {
		snprintf(why, len, "it has the probe '%s' at too many places", q->probe->name);
		return -E2BIG;
	}
	p->at[p->n].offset = offset;
	p->at[p->n].semaphore = semaphore;
	r = find_operand(q, e, n, n->pc + shift, &p->at[p->n].operand, why, len);
	p->n += !r;
	return r;
}

static bool is_printable(const char *text)
{
	for (; *text; text++)
		if (!isgraph((unsigned char)*text))
			return false;
	return true;
}

/* Says which probes the file has instead. */
static int list(const struct fusee_section *s, const struct search *q, char *why, size_t len)
{
	const char *p = s->bytes.p, *end = p + s->bytes.len, *before = "";
	size_t at = (size_t)snprintf(why, len, "it has no probe '%s'; its probes are",
				     q->probe->name);
	uint32_t listed = 0;
	struct note n;

	while (at < len && listed < MOST_LISTED && next_note(&p, end, &n)) {
		if (!strcmp(n.name, before) || !is_printable(n.provider) || !is_printable(n.name))
			continue;
		at += (size_t)snprintf(why + at, len - at, "%s %s:%s", listed ? "," : "",
				       n.provider, n.name);
		before = n.name;
		listed++;
	}
	if (!listed)
		snprintf(why, len, "it has no probes that can be read");
	return -ENOENT;
}

static bool is_named(const struct usdt_probe *p, const struct note *n)
{
	return !strcmp(n->name, p->name) && (!p->provider || !strcmp(n->provider, p->provider));
}

static int search_notes(const struct search *q, struct elf *e, char *why, size_t len)
{
	struct fusee_section s = {.size = sizeof(s)}, base = {.size = sizeof(base)};
	const char *p, *end;
	struct note n;
	int r = 0;

	if (elf_section(e, ".note.stapsdt", &s) || !s.bytes.len) {
		snprintf(why, len, "it has no probes of <sys/sdt.h> (section .note.stapsdt)");
		return -ENOENT;
	}
	if (elf_section(e, ".stapsdt.base", &base))
		base.vaddr = 0;
	p = s.bytes.p;
	end = p + s.bytes.len;
	while (!r && next_note(&p, end, &n)) /* addresses may have been moved since */
		if (is_named(q->probe, &n))
			r = add_place(q, e, base.vaddr ? base.vaddr - n.base : 0, &n, why, len);
	return r || q->places->n ? r : list(&s, q, why, len);
}

static int search_in_child(void *arg, char *why, size_t len)
{
	const struct search *q = arg;
	struct elf *e = NULL;
	int r = confine_rights(0);

	if (!r)
		r = confine_limits(0, CHILD_MEMORY);
	if (!r)
		r = elf_open(&e, q->fd);
	return r ? r : search_notes(q, e, why, len); /* the exit frees the rest */
}

/* ---- the parent ---- */

static int say(char **why, int r, const char *path, const char *text)
{
	if (asprintf(why, "'%s': %s", path, text) < 0)
		*why = NULL;
	return r;
}

/* The child's answer is checked no further than that it fits: offsets are only for the kernel,
 * which probes no file beyond its end, and operands for the program, which reads no more than a
 * thread's registers and memory. */
static int add_all(struct probe_points *p, const char *path, const struct places *found,
		   const struct probe_filter *filter, char **why)
{
	uint32_t n = found->n < MOST_PLACES ? found->n : MOST_PLACES;
	enum probe_program program = filter->operator? PROBE_DESCRIBED : PROBE_CALL;
	int r = 0;

	for (uint32_t i = 0; !r && i < n; i++) {
		char *copy = strdup(path);

		if (!copy || !ARRAY_ROOM(p->at, p->n, p->cap)) {
			free(copy);
			return -ENOMEM;
		}
		p->at[p->n++] = (struct probe_point){.path = copy,
						     .offset = found->at[i].offset,
						     .program = program,
						     .filter = *filter,
						     .semaphore = found->at[i].semaphore};
		if (filter->operator)
			r = filter_describe(&p->at[p->n - 1].filter, &found->at[i].operand, why);
	}
	return r;
}

static int start(struct search *q, struct loader *child)
{
	int r;

	q->places = mmap(NULL, sizeof(*q->places), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (q->places == MAP_FAILED)
		return -ENOMEM;
	r = loader_start(child, "reading it", search_in_child, q, &q->fd, 1);
	if (r)
		munmap(q->places, sizeof(*q->places));
	return r;
}

/* r, text: what its child has answered. */
static int end(struct probe_points *p, const char *path, const struct search *q, int r, char *text,
	       char **why)
{
	if (!r)
		r = add_all(p, path, q->places, &q->probe->filter, why);
	if (r == -ENOEXEC || (r == -EBADMSG && !text))
		say(why, r, path, "no ELF file, or a damaged one");
	else if (r && !*why)
		say(why, r, path, text ? text : strerror(-r));
	free(text);
	return r;
}

static int find(struct probe_points *p, const char *path, struct search *q, char **why)
{
	struct loader child;
	char *text = NULL;
	int r = start(q, &child);

	if (r)
		return end(p, path, q, r, text, why);
	r = loader_wait(&child, &text);
	r = end(p, path, q, r, text, why);
	munmap(q->places, sizeof(*q->places));
	return r;
}

/* ---- in the background ---- */

struct usdt_search {
	struct search q;
	struct loader child;
};

int usdt_search_start(struct usdt_search **ret, int fd, const struct usdt_probe *probe)
{
	struct usdt_search *s = *ret = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->q = (struct search){.fd = fd, .probe = probe};
	r = start(&s->q, &s->child);
	if (!r)
		return 0;
	free(s);
	*ret = NULL;
	return r;
}

int usdt_search_poll(struct usdt_search *s, struct probe_points *p, char **why)
{
	char *text = NULL;
	int r;

	*why = NULL;
	r = loader_poll_stuck(&s->child, &text);
	return r == -EINPROGRESS ? r : end(p, "", &s->q, r, text, why);
}

void usdt_search_free(struct usdt_search *s)
{
	if (!s)
		return;
	loader_end(&s->child);
	munmap(s->q.places, sizeof(*s->q.places));
	free(s);
}

int usdt_find(struct probe_points *p, const char *path, const struct usdt_probe *probe, char **why)
{
	struct search q = {.probe = probe};
	char *absolute;
	int r;

	*why = NULL;
	q.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (q.fd < 0) {
		r = -errno;
		return say(why, r, path, strerror(-r));
	}
	absolute = probe_path(path);
	r = absolute ? find(p, absolute, &q, why) : -ENOMEM;
	free(absolute);
	close(q.fd);
	return r;
}
