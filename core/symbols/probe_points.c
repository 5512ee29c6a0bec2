/* SPDX-License-Identifier: Apache-2.0 */
#include "symbols/probe_points.h"

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
#include "sandbox/loader.h"
#include "process/elf.h"
#include "process/instruction.h"
#include "sandbox/confine.h"

#define MOST_FOUND 1024u
#define CHILD_MEMORY (1ull << 30) /* symbol tables of large programs */

/* ---- the child, which reads the file ---- */

struct found {
	uint32_t n;
	bool full; /* there are more */
	struct found_place {
		uint64_t offset, bytes;
		uint32_t function; /* its index in the list */
	} at[MOST_FOUND];
};

struct search {
	int fd;
	const struct probe_function *functions;
	uint32_t n;
	struct found *found; /* shared with the child */
};

/* A table of symbols. */
struct symbols {
	struct elf *elf;
	struct fusee_section entries, names;
};

static const char *name_of(const struct symbols *t, const Elf64_Sym *s)
{
	return s->st_name < t->names.bytes.len ? t->names.bytes.p + s->st_name : NULL;
}

/* A name of .symtab may have a version: "malloc@@GLIBC_2.2.5". */
static bool is_named(const char *name, const char *end, const char *sought)
{
	size_t len = strlen(sought);

	return (size_t)(end - name) > len && !memcmp(name, sought, len) &&
	       (!name[len] || name[len] == '@');
}

/* The offset of an address of code in the file. */
static bool offset_of(struct elf *e, uint64_t vaddr, uint64_t *offset)
{
	struct fusee_file_info info = {.size = sizeof(info)};

	if (elf_info(e, &info))
		return false;
	for (uint32_t i = 0; i < info.segments.n; i++) {
		const struct fusee_segment *s = FUSEE_AT(struct fusee_segment, info.segments, i);

		if (s->flags & PF_X && vaddr >= s->vaddr && vaddr - s->vaddr < s->filesz) {
			*offset = vaddr - s->vaddr + s->offset;
			return true;
		}
	}
	return false;
}

static void add_found(struct found *f, uint64_t offset, uint64_t bytes, uint32_t function)
{
	for (uint32_t i = 0; i < f->n; i++)
		if (f->at[i].offset == offset)
			return; /* another name of it, or of both tables */
	f->full |= f->n == MOST_FOUND;
	if (f->full)
		return;
	f->at[f->n++] = (struct found_place){offset, bytes, function};
}

/* A breakpoint behind an instruction's begin changes what it does. */
static int explain_inside(int r, const struct probe_function *f,
			  const struct instruction_begins *around, char *why, size_t len)
{
	if (r != -EILSEQ)
		snprintf(why, len, "the code of its '%s' cannot be read: %s", f->name,
			 strerror(-r));
	else if (around->after)
		snprintf(why, len,
			 "no instruction of its '%s' begins at +0x%llx: the nearest begin at "
			 "+0x%llx and +0x%llx",
			 f->name, (unsigned long long)f->plus, (unsigned long long)around->before,
			 (unsigned long long)around->after);
	else
		snprintf(why, len,
			 "no instruction of its '%s' is known to begin at +0x%llx: the last before "
			 "begins at +0x%llx",
			 f->name, (unsigned long long)f->plus, (unsigned long long)around->before);
	return r;
}

/* Whether a probe can be at this offset of the function. -errno, with a text. */
static int check_plus(struct elf *e, const struct probe_function *f, const Elf64_Sym *s, char *why,
		      size_t len)
{
	struct fusee_range code = {s->st_value, s->st_value + s->st_size};
	struct instruction_begins around = {0};
	int r;

	if (!s->st_size) {
		snprintf(why, len,
			 "its '%s' has no size in the symbol table: only its begin can be probed",
			 f->name);
		return -ERANGE;
	}
	if (f->plus >= s->st_size) {
		snprintf(why, len, "its '%s' has %llu bytes", f->name,
			 (unsigned long long)s->st_size);
		return -ERANGE;
	}
	r = instruction_begins(e, code, f->plus, &around);
	return r ? explain_inside(r, f, &around, why, len) : 0;
}

static bool is_in_code(struct elf *e, uint16_t section)
{
	struct fusee_str headers[3];
	Elf64_Shdr s;

	elf_headers(e, headers);
	if (section >= SHN_LORESERVE || section >= headers[2].len / sizeof(s))
		return false;
	memcpy(&s, headers[2].p + section * sizeof(s), sizeof(s));
	return s.sh_flags & SHF_EXECINSTR;
}

/* A table or a variable may be in a segment of code, too, and of no type. */
static bool is_function(struct elf *e, const Elf64_Sym *s)
{
	unsigned int type = ELF64_ST_TYPE(s->st_info);

	if (s->st_shndx == SHN_UNDEF || s->st_shndx == SHN_ABS)
		return false;
	return type == STT_FUNC || type == STT_GNU_IFUNC ||
	       (type == STT_NOTYPE && is_in_code(e, s->st_shndx));
}

/* Adds the place of a function that is called. -errno, with a text: it cannot be probed there. */
static int add_symbol(const struct search *q, struct elf *e, const Elf64_Sym *s, uint32_t i,
		      char *why, size_t len)
{
	const struct probe_function *f = &q->functions[i];
	uint64_t offset, plus = f->plus;
	int r;

	if (!is_function(e, s) || !offset_of(e, s->st_value, &offset))
		return 0; /* it is of another file, or no code */
	if (ELF64_ST_TYPE(s->st_info) == STT_GNU_IFUNC) {
		if (q->n > 1)
			return 0; /* others are found */
		snprintf(why, len,
			 "its '%s' is chosen when a program starts: name the function that is "
			 "chosen",
			 f->name);
		return -ENOTSUP;
	}
	r = f->plus ? check_plus(e, f, s, why, len) : 0;
	if (f->program != PROBE_CALL)
		plus = instruction_emulated_in(e, s->st_value, s->st_size,
					       f->program == PROBE_FREE);
	if (!r)
		add_found(q->found, offset + plus, s->st_size - plus, i);
	return r;
}

static int search_table(const struct search *q, const struct symbols *t, char *why, size_t len)
{
	const char *end = t->names.bytes.p + t->names.bytes.len;

	for (uint64_t i = 0; i < t->entries.bytes.len / sizeof(Elf64_Sym); i++) {
		const char *name;
		Elf64_Sym s;
		int r = 0;

		memcpy(&s, t->entries.bytes.p + i * sizeof(s), sizeof(s));
		name = name_of(t, &s);
		for (uint32_t k = 0; name && !r && k < q->n; k++)
			if (is_named(name, end, q->functions[k].name))
				r = add_symbol(q, t->elf, &s, k, why, len);
		if (r)
			return r;
	}
	return 0;
}

static int search_file(const struct search *q, struct elf *e, char *why, size_t len)
{
	static const char *const tables[][2] = {{".symtab", ".strtab"}, {".dynsym", ".dynstr"}};
	int r = 0;

	for (uint32_t i = 0; !r && i < 2; i++) {
		struct symbols t = {
			.elf = e, .entries.size = sizeof(t.entries), .names.size = sizeof(t.names)};

		if (!elf_section(e, tables[i][0], &t.entries) &&
		    !elf_section(e, tables[i][1], &t.names) && t.names.bytes.len)
			r = search_table(q, &t, why, len);
	}
	return r;
}

/* The kernel replaces the return address of what is timed. Go looks up the return addresses of its
 * stacks, as exceptions do, and ends the program at an address that it does not know. */
static int check_timed(const struct search *q, struct elf *e, char *why, size_t len)
{
	static const char *const unwinds[] = {"__gxx_personality_v0", "rust_eh_personality",
					      "_Unwind_RaiseException", "_Unwind_Resume", NULL};
	bool timed = false, found, imports[4] = {false};
	struct fusee_range at;

	for (uint32_t i = 0; i < q->n; i++)
		timed |= q->functions[i].program == PROBE_RETURN;
	if (!timed)
		return 0;
	elf_imports(e, unwinds, imports);
	found = elf_has_section(e, ".go.buildinfo");
	for (uint32_t i = 0; unwinds[i]; i++)
		found |= imports[i] || !elf_symbol(e, unwinds[i], &at);
	if (!found)
		return 0;
	snprintf(why, len,
		 "it has exceptions, or goroutines, which end the program where a return is "
		 "probed. Its calls can be counted with uprobe:PATH:FUNCTION");
	return -ENOTSUP;
}

/* The kernel reads the places when probes are put there, and nothing can end its wait for a file
 * that does not answer; it has them in memory then. */
static void read_places(const struct search *q)
{
	char byte;

	for (uint32_t i = 0; i < q->found->n; i++)
		if (pread(q->fd, &byte, 1, (off_t)q->found->at[i].offset) < 0)
			return;
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
	if (r)
		return r;
	r = check_timed(q, e, why, len);
	if (!r)
		r = search_file(q, e, why, len); /* the exit frees the rest */
	if (!r)
		read_places(q);
	return r;
}

/* ---- the parent ---- */

static int say(char **why, int r, const char *format, const char *a, const char *b)
{
	if (asprintf(why, format, a, b) < 0)
		*why = NULL;
	return r;
}

static int add_point(struct probe_points *p, const char *path, const struct search *q, uint32_t i)
{
	uint32_t function = q->found->at[i].function;
	char *copy;

	if (function >= q->n)
		return 0;
	copy = strdup(path);
	if (!copy || !ARRAY_ROOM(p->at, p->n, p->cap)) {
		free(copy);
		return -ENOMEM;
	}
	p->at[p->n++] = (struct probe_point){
		.path = copy,
		.offset = q->found->at[i].offset,
		.program = q->functions[function].program,
		.kind = q->functions[function].kind,
		.bytes = q->found->at[i].bytes,
	};
	return 0;
}

/* Why the file could not be searched. */
static int explain(int r, const char *path, char *text, char **why)
{
	*why = NULL;
	if (r == -ENOEXEC || r == -EBADMSG)
		r = say(why, r, "'%s' is no ELF file, or a damaged one%s", path, "");
	else
		r = say(why, r, "'%s': %s", path, text ? text : strerror(-r));
	free(text);
	return r;
}

static int add_all(struct probe_points *p, const char *path, const struct search *q, char **why)
{
	int r = 0;

	for (uint32_t i = 0; !r && i < q->found->n && i < MOST_FOUND; i++)
		r = add_point(p, path, q, i);
	if (r)
		return say(why, r, "%s%s", strerror(-r), "");
	if (q->found->full)
		return say(why, -E2BIG, "'%s' has too many functions of the name '%s'", path,
			   q->functions[0].name);
	if (q->found->n)
		return 0;
	return say(why, -ENOENT, "'%s' has no function '%s' in its symbol tables", path,
		   q->functions[0].name);
}

static int start(struct search *q, struct loader *child)
{
	int r;

	q->found = mmap(NULL, sizeof(*q->found), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	if (q->found == MAP_FAILED)
		return -errno;
	r = loader_start(child, "reading it", search_in_child, q, &q->fd, 1);
	if (r)
		munmap(q->found, sizeof(*q->found));
	return r;
}

static int find(struct probe_points *p, const char *path, struct search *q, char **why)
{
	struct loader child;
	char *text = NULL;
	int r = start(q, &child);

	if (r)
		return explain(r, path, text, why);
	r = loader_wait(&child, &text);
	r = r ? explain(r, path, text, why) : add_all(p, path, q, why);
	munmap(q->found, sizeof(*q->found));
	return r;
}

/* ---- in the background ---- */

struct probe_search {
	struct search q;
	struct loader child;
};

int probe_search_start(struct probe_search **ret, int fd, const struct probe_function *f,
		       uint32_t n)
{
	struct probe_search *s = calloc(1, sizeof(*s));
	int r = s ? 0 : -ENOMEM;

	*ret = NULL;
	if (r)
		return r;
	s->q = (struct search){.fd = fd, .functions = f, .n = n};
	r = start(&s->q, &s->child);
	if (r)
		free(s);
	else
		*ret = s;
	return r;
}

int probe_search_poll(struct probe_search *s, struct probe_points *p, char **why)
{
	char *text = NULL;
	int r = loader_poll_stuck(&s->child, &text);

	if (!r)
		r = add_all(p, "", &s->q, &text);
	if (why)
		*why = text;
	else
		free(text);
	return r;
}

bool probe_search_is_stuck(const struct probe_search *s)
{
	return s->child.stuck;
}

void probe_search_free(struct probe_search *s)
{
	if (!s)
		return;
	loader_end(&s->child);
	munmap(s->q.found, sizeof(*s->q.found));
	free(s);
}

char *probe_path(const char *path)
{
	char *cwd = *path == '/' ? NULL : getcwd(NULL, 0), *absolute = NULL;

	if (*path == '/')
		return strdup(path);
	if (cwd && asprintf(&absolute, "%s/%s", cwd, path) < 0)
		absolute = NULL;
	free(cwd);
	return absolute;
}

int probe_points_find(struct probe_points *p, const char *path, const struct probe_function *f,
		      uint32_t n, char **why)
{
	char *absolute = probe_path(path);
	struct search q = {.functions = f, .n = n};
	int r;

	*why = NULL;
	q.fd = absolute ? open(absolute, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
	if (q.fd < 0) {
		r = -errno;
		free(absolute);
		return say(why, r, "cannot open '%s': %s", path, strerror(-r));
	}
	r = find(p, absolute, &q, why);
	close(q.fd);
	free(absolute);
	return r;
}

void probe_points_fini(struct probe_points *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->at[i].path);
	free(p->at);
	*p = (struct probe_points){0};
}
