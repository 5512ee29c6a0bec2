/* SPDX-License-Identifier: Apache-2.0 */
#include "view/instructions.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "console/tool.h"
#include "base/text.h"
#include "symbols/debugfile.h"
#include "symbols/source.h"
#include "symbols/symbols.h"

struct instructions {
	struct symbols *symbols;
	int fd, debug_fd; /* debug_fd -1: none was found */
};

/* Compares the build ID with the profile's and opens the separate debug file. */
static int look(struct instructions *in, const char *path, struct fusee_str build_id)
{
	struct source *s;
	uint8_t id[64];
	char hex[2 * sizeof(id) + 1] = "";
	size_t n;
	int r = source_open(&s, in->fd);

	if (r)
		return r;
	n = source_build_id(s, id);
	text_hex(hex, id, n);
	if (build_id.len && !fusee_text_is(build_id, hex))
		r = -ESTALE;
	else
		in->debug_fd = debugfile_open("", path, id, (uint32_t)n, NULL);
	source_close(s);
	return r;
}

int instructions_open(struct instructions **ret, struct fusee_str path, struct fusee_str build_id)
{
	struct instructions *in = calloc(1, sizeof(*in));
	char *text = strndup(path.len ? path.p : "", path.len);
	struct symbols_files files;
	struct stat st;
	int r = in && text ? 0 : -ENOMEM;

	if (in)
		in->fd = in->debug_fd = -1;
	if (!r && (stat(text, &st) || !S_ISREG(st.st_mode))) /* a profile may name a device */
		r = -ENOENT;
	if (!r) {
		in->fd = open(text, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
		r = in->fd < 0 ? -errno : look(in, text, build_id);
	}
	if (!r) {
		files = (struct symbols_files){in->fd, in->debug_fd < 0 ? -1 : in->debug_fd, -1};
		r = symbols_open(&in->symbols, &files, true);
	}
	free(text);
	if (r)
		instructions_close(in);
	else
		*ret = in;
	return r;
}

void instructions_close(struct instructions *in)
{
	if (!in)
		return;
	symbols_close(in->symbols);
	if (in->fd >= 0)
		close(in->fd);
	if (in->debug_fd >= 0)
		close(in->debug_fd);
	free(in);
}

/* The innermost source frame of an instruction. */
struct place {
	char file[4096];
	uint32_t line;
	bool set;
};

static void take_place(void *arg, const struct symbols_frame *f)
{
	struct place *p = arg;

	if (p->set)
		return;
	p->set = true;
	p->line = f->line;
	snprintf(p->file, sizeof(p->file), "%s", f->file);
}

/* "    1150:\tcall   1135 <leaf>" */
static void read_line(struct instructions *in, char *line, instructions_each *each, void *arg)
{
	struct place place = {.line = 0};
	uint64_t address;
	int n = 0;

	if (sscanf(line, " %" SCNx64 ":\t%n", &address, &n) != 1 || !n)
		return;
	symbols_lookup(in->symbols, address, take_place, &place);
	each(arg, address, line + n, place.file, place.line);
}

static int disassemble(const struct instructions *in, const struct symbols_span *span,
		       struct buf *out)
{
	char start[48], stop[48], file[64];
	char *argv[] = {(char[]){"objdump"},
			(char[]){"-d"},
			(char[]){"-C"},
			(char[]){"--no-show-raw-insn"},
			start,
			stop,
			file,
			NULL};
	int r;

	snprintf(start, sizeof(start), "--start-address=0x%" PRIx64, span->lo);
	snprintf(stop, sizeof(stop), "--stop-address=0x%" PRIx64, span->hi);
	/* the file whose build ID was compared, even if the path now leads to another file */
	snprintf(file, sizeof(file), "/proc/%d/fd/%d", (int)getpid(), in->fd);
	r = tool_run(argv, NULL, out);
	return r == -ENOENT ? -ENOEXEC : r;
}

int instructions_of(struct instructions *in, uint64_t address, instructions_each *each, void *arg,
		    uint64_t *end)
{
	struct symbols_span span;
	struct buf text = {0};
	char *rest, *line;
	int r;

	if (!symbols_function(in->symbols, address, &span))
		return -ENOENT;
	*end = span.hi;
	r = disassemble(in, &span, &text);
	if (!r)
		r = buf_add(&text, "", 1);
	for (line = r ? NULL : strtok_r(text.p, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest))
		read_line(in, line, each, arg);
	buf_fini(&text);
	return r;
}

const char *instructions_why(int r)
{
	switch (r) {
	case -ESTALE:
		return "the build ID of the file differs from that in the profile";
	case -ENOEXEC:
		return "objdump is needed: apt install binutils";
	default:
		return strerror(-r);
	}
}
