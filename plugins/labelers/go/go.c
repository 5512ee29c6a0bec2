/* SPDX-License-Identifier: Apache-2.0 */
/* labeler "go": finds where the runtime of a Go program keeps the labels of goroutines, which
 * runtime/pprof sets. */
#include <errno.h>
#include <string.h>

#include <fusee/gotable.h>
#include <fusee/helpers.h>
#include <fusee/labeler.h>

#include "words.h"

FUSEE_EMBED(go_bpf, "go.bpf.o");

struct go {
	struct fusee_self self;
};

/* The functions that are looked at. */
enum { SYSTEMSTACK, SET_LABEL, MERGE_SETS, KINDS };

static const char *const names[KINDS] = {
	"runtime.systemstack",
	"runtime/pprof.runtime_setProfLabel",
	"runtime/pprof.mergeLabelSets",
};

struct functions {
	struct fusee_go_func at[KINDS]; /* name NULL: it was not found */
};

/* Finds the functions. A wrapper for another ABI has the same name as its function, but is
 * smaller. */
static void find_functions(const struct fusee_go_table *go, struct functions *fs)
{
	struct fusee_go_func f;

	memset(fs, 0, sizeof(*fs));
	for (uint64_t i = 0; i < go->n; i++) {
		if (fusee_go_function(go, i, &f) || f.name_len < 19 || f.name[0] != 'r')
			continue;
		for (size_t k = 0; k < KINDS; k++)
			if (f.name_len == strlen(names[k]) &&
			    !memcmp(f.name, names[k], f.name_len) &&
			    (!fs->at[k].name || f.hi - f.lo > fs->at[k].hi - fs->at[k].lo))
				fs->at[k] = f;
	}
}

/*
 * Reads the offset from the function that sets the labels of the goroutine, which is in R14, to
 *RAX: mov %rax,labels(%r14) or, from Go 1.21 on, mov %r14,(%rsp) mov (%rsp),%rcx; mov
 *%rax,labels(%rcx)
 */
static int find_offset(const struct fusee_go_table *go, const struct fusee_go_func *f,
		       uint32_t *offset)
{
	int saved = 0, found = 0;

	*offset = 0;

	for (uint64_t pc = f->lo; pc < f->hi; pc++) {
		const uint8_t *c = fusee_go_code(go, pc, 11);
		uint32_t at;

		if (!c)
			break;
		if (!memcmp(c, "\x4c\x89\x34\x24", 4))
			saved = 1;
		if (!memcmp(c, "\x49\x89\x86", 3))
			memcpy(&at, c + 3, sizeof(at));
		else if (saved && !memcmp(c, "\x48\x8b\x0c\x24\x48\x89\x81", 7))
			memcpy(&at, c + 7, sizeof(at));
		else
			continue;
		if (at >= GO_MOST_OFFSET || at % 8 || (found && at != *offset))
			return -EBADMSG;
		*offset = at;
		found = 1;
	}
	return found ? 0 : -ENOENT;
}

#define BUILD_INFO 14u /* bytes of the mark with which .go.buildinfo begins */
#define BUILD_HEAD 32u /* .. and before the version, where that is inline: from Go 1.18 on */

/* The minor number of the release, N of "go1.N"; 0: it is not known. */
static uint32_t minor_of(const struct fusee_unwinder_host *host, uint64_t file)
{
	static const char mark[] = "\xff Go buildinf:", release[] = "go1.";
	struct fusee_section s;
	uint32_t minor = 0;
	const char *p, *end;

	if (fusee_file_section(host, file, ".go.buildinfo", &s) || s.bytes.len < BUILD_HEAD + 1)
		return 0;
	p = s.bytes.p;
	if (memcmp(p, mark, BUILD_INFO) || p[BUILD_INFO] != 8 || !(p[BUILD_INFO + 1] & 2))
		return 0;
	end = p + BUILD_HEAD + 1; /* the length of a version is below 128 */
	if ((uint8_t)end[-1] >= 0x80 || (uint8_t)end[-1] > s.bytes.len - BUILD_HEAD - 1)
		return 0;
	p = end;
	end += (uint8_t)p[-1];
	if ((size_t)(end - p) < sizeof(release) || memcmp(p, release, sizeof(release) - 1))
		return 0;
	for (p += sizeof(release) - 1; p < end && *p >= '0' && *p <= '9' && minor < 1000; p++)
		minor = minor * 10 + (uint32_t)(*p - '0');
	return minor;
}

/* What labels are. The functions that make a set were others when it was a map. */
static uint32_t form_of(const struct fusee_unwinder_host *host, uint64_t file,
			const struct functions *fs)
{
	uint32_t minor;

	if (fs->at[MERGE_SETS].name)
		return GO_SLICE;
	minor = minor_of(host, file);
	return minor >= 18 && minor <= 23 ? GO_MAP : 0;
}

static int go_inspect(void *ctx, uint64_t file)
{
	struct go *g = ctx;
	const struct fusee_unwinder_host *host = g->self.host->unwinder;
	struct fusee_go_places places;
	struct fusee_go_table table;
	uint32_t words[GO_WORDS], form, offset;
	struct functions fs;
	int r;

	if (fusee_go_find(&table, host, file)) /* the dwarf unwinder says what is wrong */
		return 0;
	find_functions(&table, &fs);
	if (!fs.at[SET_LABEL].name) /* the program sets no labels */
		return 0;
	if (!fs.at[SYSTEMSTACK].name || fusee_go_find_places(&table, &fs.at[SYSTEMSTACK], &places))
		return fusee_fail(&g->self, -ENOTSUP,
				  "labels of goroutines are not read: %s is not as in Go 1.18 to "
				  "1.26, or the program is a library",
				  names[SYSTEMSTACK]);
	if (find_offset(&table, &fs.at[SET_LABEL], &offset))
		return fusee_fail(&g->self, -ENOTSUP,
				  "labels of goroutines are not read: %s is not as in Go 1.18 to "
				  "1.26",
				  names[SET_LABEL]);
	form = form_of(host, file, &fs);
	if (!form)
		return fusee_fail(&g->self, -ENOTSUP,
				  "labels of goroutines are not read: their form is that of no Go "
				  "from 1.18 to 1.26");
	words[GO_G] = (uint32_t)places.g;
	words[GO_M] = places.m;
	words[GO_CURG] = places.curg;
	words[GO_LABELS] = offset;
	words[GO_FORM] = form;
	r = host->file_slab(g->self.in, file, words, GO_WORDS);
	return r ? r : 1;
}

/* A process has one runtime of Go: that of its program. */
static int go_mapped(void *ctx, uint64_t process, const struct fusee_mapping_view *view)
{
	struct go *g = ctx;
	uint32_t words[GO_WORDS];

	if (!(view->flags & FUSEE_VIEW_LIBRARY) || !FUSEE_HAS(view, table) ||
	    view->table.n != GO_WORDS)
		return 0;
	memcpy(words, view->table.at, sizeof(words));
	return g->self.host->unwinder->process_slab(g->self.in, process, words, GO_WORDS);
}

static const char *const reasons[] = {NULL};

static const struct fusee_unwinder_ops ops = {
	.size = sizeof(ops),
	.flags = FUSEE_UNWINDER_LABELS,
	.order = 110,
	.slab_version = 1,
	.frame_type = "go",
	.reasons = reasons,
	.bpf = go_bpf,
	.bpf_end = go_bpf_end,
	.inspect = go_inspect,
	.mapped = go_mapped,
	.tested = "Go 1.19.8, 1.21.0, 1.22.5, 1.23.4, 1.24.3, 1.25.3, 1.26.8",
};

FUSEE_PLUGIN(go, FUSEE_UNWINDER, .version = "0.1",
	     .doc = "Gives samples the labels that goroutines have set with runtime/pprof.",
	     .ctx_size = sizeof(struct go), .init = fusee_self_init, .ops = &ops);
