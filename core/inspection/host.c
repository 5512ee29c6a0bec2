// SPDX-License-Identifier: Apache-2.0
/* The functions that inspect() may call, the key of a file, and its inspection. */
#include "inspection/host.h"

#include <elf.h>
#include <errno.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "symbols/compiler.h"
#include "symbols/fde.h"
#include "symbols/source.h"
#include "plugin/instance.h"
#include "inspection/internal/block.h"

/* The sections that the key covers. */
enum covered { ALWAYS, IF_GO, IF_SMALL };

static const struct {
	const char *name;
	enum covered when;
} covered[] = {
	{".eh_frame", ALWAYS},    {".eh_frame_hdr", ALWAYS},
	{".debug_frame", ALWAYS}, {".gopclntab", ALWAYS},
	{".dynsym", ALWAYS},      {".dynstr", ALWAYS},
	{".interp", ALWAYS},      {".init", ALWAYS},
	{".fini", ALWAYS},        {".data.rel.ro.gopclntab", ALWAYS},
	{".comment", ALWAYS},     {".text", IF_SMALL},
	{".text", IF_GO},         {".data", IF_GO},
	{".data.rel.ro", IF_GO},  {".noptrdata", IF_GO},
	{".go.module", IF_GO},    {".go.buildinfo", IF_GO},
	{".rela.dyn", IF_GO},     {".rela", IF_GO},
};

#define INSPECT_LATE 2     /* a result of inspect() */
#define SMALL (256u << 10) /* bytes of a small file; the vDSO is smaller */
#define ENTRY_BYTES 64u    /* from the entry point on, which the key covers */

static bool is_covered_when(const struct elf *e, enum covered when)
{
	if (when == IF_GO)
		return elf_has_section(e, ".gopclntab") ||
		       elf_has_section(e, ".data.rel.ro.gopclntab") ||
		       elf_has_section(e, ".go.buildinfo");
	return when == ALWAYS || elf_size(e) <= SMALL;
}

/* The bytes at the entry point. They are read once, so that unwinders see the bytes that the key
 * covers even if the file changes. */
struct entry {
	uint64_t vaddr;
	uint32_t len;
	unsigned char bytes[ENTRY_BYTES];
};

static int read_entry(struct elf *e, struct entry *entry)
{
	struct fusee_file_info info;
	int err = elf_info(e, &info);

	*entry = (struct entry){.vaddr = info.entry};
	for (uint32_t len = ENTRY_BYTES; !err && len && !entry->len; len /= 2)
		if (!elf_read(e, info.entry, entry->bytes, len))
			entry->len = len;
	return err;
}

/* One file while it is inspected: the `file` handle of the plugins. */
struct host_file {
	struct elf *elf;
	const struct fusee_instance *at; /* the instance whose inspect() runs */
	struct inspection_slab slabs[INSPECTION_MAX_SLABS];
	struct inspection_claim *claims[INSPECTION_MAX_SLABS]; /* owned; NULL: none */
	uint32_t nslabs;
	bool short_of_memory;
	struct fdes fdes;
	bool have_fdes;
	struct entry entry;
	bool brief; /* what takes long may be omitted */
};

/* A plugin's handle of a file, which is valid while inspect() runs. */
static struct host_file *file_of(uint64_t file)
{
	return (struct host_file *)(uintptr_t)file;
}

static int file_info(uint64_t file, struct fusee_file_info *info)
{
	struct host_file *f = file_of(file);
	struct fusee_file_info all;
	uint32_t size = info->size;
	int err;

	if (size < 4)
		return -EINVAL;
	err = elf_info(f->elf, &all);
	if (err)
		return err;
	all.flags = f->brief ? FUSEE_FILE_BRIEF : 0;
	all.size = size < sizeof(all) ? size : (uint32_t)sizeof(all);
	memset(info, 0, size); /* a plugin of another version has another size */
	memcpy(info, &all, all.size);
	return 0;
}

static int file_section(uint64_t file, const char *name, struct fusee_section *section)
{
	struct host_file *f = file_of(file);
	struct fusee_section all;
	uint32_t size = section->size;
	int err;

	if (size < 4)
		return -EINVAL;
	err = elf_section(f->elf, name, &all);
	f->short_of_memory |= err == -ENOMEM;
	if (err)
		return err;
	all.size = size < sizeof(all) ? size : (uint32_t)sizeof(all);
	memset(section, 0, size);
	memcpy(section, &all, all.size);
	return 0;
}

static int file_read(uint64_t file, uint64_t vaddr, void *buf, uint32_t len)
{
	struct host_file *f = file_of(file);

	if (vaddr >= f->entry.vaddr && vaddr - f->entry.vaddr <= f->entry.len &&
	    len <= f->entry.len - (vaddr - f->entry.vaddr)) {
		memcpy(buf, f->entry.bytes + (vaddr - f->entry.vaddr), len);
		return 0;
	}
	return elf_read(f->elf, vaddr, buf, len);
}

static int file_symbol(uint64_t file, const char *name, struct fusee_range *at)
{
	struct host_file *f = file_of(file);
	int err;

	err = elf_symbol(f->elf, name, at);
	f->short_of_memory |= err == -ENOMEM;
	return err;
}

/* The slab of the unwinder whose inspect() runs. NULL: there are too many. */
static struct inspection_slab *slab_of(struct host_file *f)
{
	const struct fusee_plugin *d = f->at->descriptor;
	const struct fusee_unwinder_ops *ops = d->ops;
	struct inspection_slab *s = &f->slabs[f->nslabs];

	if (f->nslabs && !strcmp(s[-1].unwinder, d->name))
		return s - 1;
	if (f->nslabs == INSPECTION_MAX_SLABS)
		return NULL;
	f->nslabs++;
	*s = (struct inspection_slab){.version = ops->slab_version};
	snprintf(s->unwinder, sizeof(s->unwinder), "%s", d->name);
	return s;
}

static void drop_last_slab(struct host_file *f)
{
	uint32_t i = --f->nslabs;

	free((void *)f->slabs[i].words);
	free(f->claims[i]);
	f->claims[i] = NULL;
}

static int file_slab(struct fusee_instance *instance, uint64_t file, const uint32_t *words,
		     uint64_t n)
{
	struct host_file *f = file_of(file);
	struct inspection_slab *s;
	uint64_t bytes;
	uint32_t *copy;

	if (f->at != instance)
		return -EBADF;
	s = slab_of(f);
	if (!s)
		return -ENOSPC;
	if (s->words)
		return -EEXIST;
	if (__builtin_mul_overflow(n, 4, &bytes) || bytes > INSPECTION_MAX_BYTES)
		return -EFBIG;
	copy = malloc(bytes ? bytes : 1);
	if (!copy) {
		f->short_of_memory = true;
		return -ENOMEM;
	}
	memcpy(copy, words, bytes);
	s->words = copy;
	s->n = n;
	return 0;
}

static int file_claim(struct fusee_instance *instance, uint64_t file, const struct fusee_claim *c)
{
	struct host_file *f = file_of(file);
	struct inspection_claim *claims;
	struct inspection_slab *s;
	uint32_t i;

	if (f->at != instance)
		return -EBADF;
	if (c->range.lo >= c->range.hi)
		return plugin_misused(instance, PLUGIN_FILE_CLAIM_RANGE);
	if ((c->flags & ~(uint32_t)(FUSEE_CLAIM_INTERPRETER | FUSEE_CLAIM_REGISTERS |
				    FUSEE_CLAIM_READS_NOTHING)) != FUSEE_CLAIM_STEP)
		return plugin_misused(instance, PLUGIN_FILE_CLAIM_FLAGS);
	s = slab_of(f);
	if (!s || s->nclaims == INSPECTION_MAX_CLAIMS)
		return -ENOSPC;
	if (!f->claims[s - f->slabs])
		f->claims[s - f->slabs] = calloc(INSPECTION_MAX_CLAIMS, sizeof(*claims));
	claims = f->claims[s - f->slabs];
	if (!claims) {
		f->short_of_memory = true;
		return -ENOMEM;
	}
	for (i = 0; i < s->nclaims && claims[i].hi <= c->range.lo; i++)
		;
	if (i < s->nclaims && claims[i].lo < c->range.hi)
		return -EEXIST;
	memmove(&claims[i + 1], &claims[i], (s->nclaims++ - i) * sizeof(*claims));
	claims[i] = (struct inspection_claim){c->range.lo, c->range.hi, c->arg, c->flags};
	s->claims = claims;
	return 0;
}

static int file_function(uint64_t file, uint64_t vaddr, struct fusee_range *at)
{
	struct host_file *f = file_of(file);
	struct source *source = NULL;
	const struct fde *fde;
	int err = 0;

	if (!f->have_fdes) {
		err = source_open(&source, elf_fd(f->elf));
		if (!err)
			err = fdes_add(&f->fdes, source);
		source_close(source);
		if (err)
			goto out;
		fdes_sort(&f->fdes);
		f->have_fdes = true;
	}
	fde = fdes_find(&f->fdes, vaddr);
	if (fde)
		*at = (struct fusee_range){fde->start, fde->end};
	else
		err = -ENOENT;
out:
	f->short_of_memory |= err == -ENOMEM;
	return err;
}

static const struct fusee_unwinder_host unwinder_host = {
	.size = sizeof(unwinder_host),
	.file_info = file_info,
	.file_section = file_section,
	.file_read = file_read,
	.file_symbol = file_symbol,
	.file_function = file_function,
	.file_slab = file_slab,
	.file_claim = file_claim,
};

const struct fusee_host worker_host = {
	.size = sizeof(worker_host),
	.abi_minor = FUSEE_ABI_MINOR,
	.log = plugin_host_log,
	.fail = plugin_host_fail,
	.unwinder = &unwinder_host,
};

/* ---- the key ---- */

/* The length precedes the contents, so that other divisions into pieces have other hashes. */
static void add_piece(SHA256_CTX *h, const void *p, uint64_t len)
{
	SHA256_Update(h, &len, sizeof(len));
	if (len)
		SHA256_Update(h, p, len);
}

static void add_unwinders(SHA256_CTX *h, const struct plugin_set *set)
{
	for (uint32_t i = 0; i < set->n; i++) {
		const struct fusee_plugin *d = set->instances[i]->descriptor;
		const struct fusee_unwinder_ops *ops = d->ops;

		add_piece(h, d->name, strlen(d->name));
		add_piece(h, &ops->slab_version, sizeof(ops->slab_version));
		add_piece(h, set->instances[i]->given, strlen(set->instances[i]->given));
	}
}

static int add_sections(SHA256_CTX *h, struct elf *elf)
{
	struct fusee_section s;
	int err;

	for (size_t i = 0; i < sizeof(covered) / sizeof(*covered); i++) {
		if (!is_covered_when(elf, covered[i].when))
			continue;
		err = elf_section(elf, covered[i].name, &s);
		if (err == -ENOMEM || err == -EIO)
			return err;
		/* A malformed section adds no bytes; the key covers its header. */
		add_piece(h, err ? NULL : s.bytes.p, err ? 0 : s.bytes.len);
	}
	return 0;
}

static int make_key(struct elf *elf, const struct plugin_set *set, const struct entry *entry,
		    uint8_t key[32])
{
	uint64_t size = elf_size(elf);
	uint32_t version = INSPECTION_VERSION;
	struct fusee_file_info info;
	struct fusee_str headers[3];
	SHA256_CTX h;
	int err = elf_info(elf, &info);

	if (err)
		return err;
	SHA256_Init(&h);
	add_piece(&h, &version, sizeof(version));
	add_piece(&h, &size, sizeof(size));
	add_piece(&h, info.build_id.p, info.build_id.len);
	elf_headers(elf, headers);
	for (int i = 0; i < 3; i++)
		add_piece(&h, headers[i].p, headers[i].len);
	add_piece(&h, entry->bytes, entry->len);
	add_unwinders(&h, set);
	err = add_sections(&h, elf);
	SHA256_Final(key, &h);
	return err;
}

int host_key(struct elf *elf, const struct plugin_set *set, uint8_t key[32])
{
	struct entry entry;
	int err = read_entry(elf, &entry);

	return err ? err : make_key(elf, set, &entry, key);
}

/* ---- the inspection ---- */

/* Functions by which a program loads a library at run time, or starts another program. */
static const char *const starters[] = {"dlopen",       "dlmopen",
				       "execl",        "execle",
				       "execlp",       "execv",
				       "execve",       "execveat",
				       "execvp",       "execvpe",
				       "fexecve",      "fork",
				       "forkpty",      "popen",
				       "posix_spawn",  "posix_spawnp",
				       "syscall.Exec", "syscall.forkExec",
				       "system",       "vfork",
				       "wordexp",      NULL};
/* The first functions of the list: static programs contain them for the C library's own use. */
#define STARTERS_LOAD 2u

/* Whether it may load libraries by name or start programs; true if that cannot be determined. */
static bool starts_others(struct elf *e)
{
	bool starts = false, go = elf_has_section(e, ".gopclntab");
	struct fusee_range at;

	/* Static programs, and all programs in Go, contain such functions themselves. */
	if (!elf_imports(e, starters, &starts) && (starts || !go))
		return starts;
	if (!elf_has_section(e, ".symtab"))
		return true;
	for (size_t i = STARTERS_LOAD; starters[i]; i++)
		if (elf_symbol(e, starters[i], &at) != -ENOENT)
			return true;
	return false;
}

static uint32_t flags_of(struct elf *e)
{
	static const struct {
		const char *name;
		uint32_t flag;
	} sections[] = {
		{".gopclntab", INSPECTION_GO},
		{".data.rel.ro.gopclntab", INSPECTION_GO},
		{".symtab", INSPECTION_SYMTAB},
		{".dynsym", INSPECTION_DYNSYM},
		{".gnu_debugdata", INSPECTION_DEBUGDATA},
		{".debug_info", INSPECTION_DWARF},
	};
	uint32_t flags = 0;

	for (size_t i = 0; i < sizeof(sections) / sizeof(*sections); i++)
		if (elf_has_section(e, sections[i].name))
			flags |= sections[i].flag;
	return starts_others(e) ? flags | INSPECTION_STARTS : flags;
}

/* Adds a line. `text` may be of the file. */
static void add_note(struct buf *notes, const char *who, const char *text)
{
	buf_printf(notes, "%s%s: ", notes->len ? "\n" : "", who);
	utf8_clean_printable(notes, text, strlen(text));
}

static void run_unwinders(struct host_file *f, const struct plugin_set *set,
			  const struct host_inspection *how, struct buf *notes)
{
	for (uint32_t i = 0; i < set->n; i++) {
		const struct fusee_unwinder_ops *ops = set->instances[i]->descriptor->ops;
		const char *name = set->instances[i]->descriptor->name, *text;
		uint32_t before = f->nslabs;
		int r;

		if (!FUSEE_HAS(ops, inspect) || !ops->inspect || (i < 64 && how->skip >> i & 1))
			continue;
		if (i < 64)
			how->begins(how->arg, i, name);
		f->at = set->instances[i];
		free(set->instances[i]->error);
		set->instances[i]->error = NULL;
		r = ops->inspect(f->at->ctx, (uint64_t)(uintptr_t)f);
		*how->late |= r == INSPECT_LATE;
		text = f->at->error;
		if (r < 0 || (r && text))
			add_note(notes, name, text && *text ? text : strerror(-r));
		if (r >= 0)
			continue;
		f->short_of_memory |= r == -ENOMEM;
		while (f->nslabs > before) /* slabs of a failed inspect() are dropped */
			drop_last_slab(f);
	}
}

/* Only for a file with an entry point, which may be a program. -ENOMEM. */
static int find_compiler(struct elf *e, uint64_t entry, struct buf *text)
{
	struct source *source = NULL;
	int err = entry ? source_open(&source, elf_fd(e)) : 0;

	if (!err && entry)
		err = compiler_of(source, text);
	source_close(source);
	buf_add(text, "", 1);
	return text->error ? text->error : err == -ENOMEM ? err : 0;
}

static int describe(struct host_file *f, const struct plugin_set *set, struct inspection *i)
{
	struct fusee_file_info info;
	struct elf *elf = f->elf;
	int err = elf_info(elf, &info);

	if (!err)
		err = read_entry(elf, &f->entry);
	if (!err)
		err = make_key(elf, set, &f->entry, i->key);
	if (err)
		return err;
	i->machine = info.machine;
	i->type = info.type;
	i->entry = info.entry;
	i->flags = flags_of(elf);
	i->segments = info.segments.at;
	i->nsegments = info.segments.n;
	i->build_id_len = (uint32_t)info.build_id.len;
	if (info.build_id.len)
		memcpy(i->build_id, info.build_id.p, info.build_id.len);
	if (elf_debuglink(elf, &i->debuglink, &i->debuglink_crc) ||
	    !inspection_is_file_name(i->debuglink))
		i->debuglink = "";
	return 0;
}

int host_inspect(struct elf *elf, const struct plugin_set *set, const struct host_inspection *how,
		 struct buf *block, bool *incomplete)
{
	struct host_file f = {.elf = elf, .brief = how->brief};
	struct inspection i = {0};
	struct buf notes = {0}, compiler = {0};
	int err = describe(&f, set, &i);

	if (err)
		return err;
	if (find_compiler(elf, i.entry, &compiler))
		f.short_of_memory = true;
	run_unwinders(&f, set, how, &notes);
	buf_add(&notes, "", 1);
	err = notes.error | compiler.error;
	if (err)
		goto out;
	if (how->brief && *how->late) {
		i.flags |= INSPECTION_BRIEF;
		*how->late = false;
	}
	i.slabs = f.slabs;
	i.nslabs = f.nslabs;
	i.notes = notes.p;
	i.compiler = compiler.p;
	err = inspection_write(block, &i);
	*incomplete = f.short_of_memory;
out:
	while (f.nslabs)
		drop_last_slab(&f);
	fdes_fini(&f.fdes);
	buf_fini(&notes);
	buf_fini(&compiler);
	return err;
}
