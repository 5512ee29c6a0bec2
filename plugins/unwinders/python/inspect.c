/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect.h"

#include <stdlib.h>

#include <fusee/code.h>

#include "calls.h"
#include "facts.h"
#include "find.h"
#include "tables.h"
#include "versions.h"

#define EVAL "_PyEval_EvalFrameDefault"
#define GET_VERSION 256 /* bytes of Py_GetVersion() that are read */

struct interpreter {
	const struct fusee_self *self;
	const struct fusee_unwinder_host *host;
	uint64_t file;
	struct fusee_range runtime, eval, cold;
	struct fusee_code code; /* of eval */
	uint32_t version;       /* PY_VERSION_HEX; 0: not known */
	uint32_t claim_flags;
	uint32_t words[PYTHON_WORDS];
	struct python_calls calls; /* n: 0 if the interpreter is one function */
};

/* ---- the version ---- */

/* Returns "3.9.18" or "3.10.0rc1" as PY_VERSION_HEX without the kind of release. 0: the text is no
 * version. */
static uint32_t parse_version(const char text[16])
{
	unsigned int minor, micro;
	int n = 0;

	return sscanf(text, "3.%2u.%2u%n", &minor, &micro, &n) == 2 && n >= 5
		       ? 3u << 24 | minor << 16 | micro << 8
		       : 0;
}

/* Finds the version's text by the addresses in the code of Py_GetVersion(), which formats it. */
static uint32_t version_in_code(const struct interpreter *in)
{
	unsigned char code[GET_VERSION];
	struct fusee_range at;
	uint64_t n;

	if (in->host->file_symbol(in->file, "Py_GetVersion", &at) || at.hi <= at.lo)
		return 0;
	n = at.hi - at.lo < sizeof(code) ? at.hi - at.lo : sizeof(code);
	if (in->host->file_read(in->file, at.lo, code, (uint32_t)n))
		return 0;
	for (uint32_t i = 0; i + 7 <= n; i++) {
		char text[16] = "";
		uint64_t to = 0;
		uint32_t version;

		if ((code[i] & 0xfb) == 0x48 && code[i + 1] == 0x8d && (code[i + 2] & 0xc7) == 5)
			to = at.lo + i + 7 +
			     (uint64_t)fusee_code_s32(code + i + 3); /* lea N(%rip) */
		else if ((code[i] & 0xf8) == 0xb8)
			to = fusee_code_u32(code + i + 1); /* mov $N */
		if (!to || in->host->file_read(in->file, to, text, sizeof(text) - 1))
			continue;
		version = parse_version(text);
		if (version)
			return version;
	}
	return 0;
}

/* The version, which files from 3.11 on have as a number. 0: not known. */
static uint32_t version_of(const struct interpreter *in)
{
	struct fusee_range at;
	uint32_t version;

	if (in->host->file_symbol(in->file, "Py_Version", &at))
		return version_in_code(in);
	return in->host->file_read(in->file, at.lo, &version, sizeof(version)) ? 0 : version;
}

/* Finds the version and fills in->words. 0, or what host->fail() returned. */
static int find_version(struct interpreter *in)
{
	unsigned char offsets[PYTHON_DEBUG_OFFSETS];
	uint32_t major, minor;
	int err;

	in->version = version_of(in);
	major = in->version >> 24;
	minor = in->version >> 16 & 255;
	if (!in->version)
		return fusee_fail(in->self, -ENOTSUP,
				  "the version of the Python in it was not found");
	err = major == 3 && minor < 13 ? python_version_words(in->version, in->words) : -ENOTSUP;
	if (major == 3 && minor >= 13) {
		err = in->host->file_read(in->file, in->runtime.lo, offsets, sizeof(offsets));
		err = err ? err : python_debug_words(offsets, sizeof(offsets), in->words);
	}
	if (err == -ENOTSUP)
		return fusee_fail(in->self, err, "Python %u.%u is not known: only 3.8 to 3.14 are",
				  major, minor);
	if (err)
		return fusee_fail(in->self, err, "Python %u.%u's own offsets are not those of it",
				  major, minor);
	return 0;
}

/* ---- its code ---- */

/* Finds the cold part of the function, by its symbol or by the jumps into it. */
static void find_cold(struct interpreter *in)
{
	if (in->host->file_symbol(in->file, EVAL ".cold", &in->cold))
		fusee_find_cold(in->host, in->file, &in->code, &in->cold);
}

/* ---- the counter of code objects ---- */

/* Looks for the counter in a function. 0: it is not there. */
static uint64_t counter_in(const struct interpreter *in, struct fusee_range at)
{
	struct fusee_code code;
	uint64_t found;

	if (fusee_read_code(in->host, in->file, at, &code))
		return 0;
	found = python_find_counter(code, in->words[PYTHON_FAMILY] == PYTHON_CHAIN);
	free(code.at);
	return found;
}

/* Looks for the counter in the functions that this exported function calls: _PyCode_New(), which
 * may have no symbol, is among them. */
static uint64_t counter_in_callees(const struct interpreter *in)
{
	struct fusee_range at, callee;
	struct fusee_code code;
	uint64_t found = 0, to;

	if (in->host->file_symbol(in->file, "PyUnstable_Code_NewWithPosOnlyArgs", &at) ||
	    fusee_read_code(in->host, in->file, at, &code))
		return 0;
	for (uint32_t i = 0; i + 5 <= code.n && !found; i++) {
		if (code.at[i] != 0xe8) /* call */
			continue;
		to = fusee_code_target(&code, i + 5);
		if (!in->host->file_function(in->file, to, &callee) && callee.lo == to)
			found = counter_in(in, callee);
	}
	free(code.at);
	return found;
}

/* Finds the counter of 3.12 and 3.13; later versions export its offset. Not without the GIL, as
 * other threads may make code objects meanwhile. */
static void find_counter(struct interpreter *in)
{
	uint32_t minor = in->version >> 16 & 255;
	struct fusee_range at;
	uint64_t found = 0;

	if (minor < 12 || minor > 13 || in->words[PYTHON_HEADER])
		return;
	if (!in->host->file_symbol(in->file, "_PyCode_New", &at))
		found = counter_in(in, at);
	if (!found)
		found = counter_in_callees(in);
	in->words[PYTHON_COUNTER] = (uint32_t)found;
	in->words[PYTHON_COUNTER_HIGH] = (uint32_t)(found >> 32);
}

/* ---- all of it ---- */

static int claim(const struct interpreter *in, struct fusee_range at, uint64_t arg)
{
	struct fusee_claim c = FUSEE_SIZED(struct fusee_claim, .flags = in->claim_flags,
					   .range = at, .arg = arg);

	return in->host->file_claim(in->self->in, in->file, &c);
}

static uint32_t claim_flags(const struct interpreter *in)
{
	static const char *const own[] = {"Py", "_Py", NULL};

	return fusee_exports_mostly(in->host, in->file, own)
		       ? FUSEE_CLAIM_STEP | FUSEE_CLAIM_INTERPRETER
		       : FUSEE_CLAIM_STEP;
}

/* Claims the interpreter's function, or the calls of instructions' functions. 0 or -errno. */
static int claim_code(const struct interpreter *in)
{
	int err = 0;

	for (uint32_t i = 0; i < in->calls.n && !err; i++) {
		err = claim(in, in->calls.call[i].at,
			    PYTHON_CALL | (uint64_t)in->calls.call[i].place << 32);
		if (err == -EEXIST) /* the file's segments overlap: the call was found twice */
			err = 0;
	}
	if (in->calls.n)
		return err;
	err = claim(in, in->eval, PYTHON_EVAL);
	if (!err && in->cold.lo < in->cold.hi)
		err = claim(in, in->cold, PYTHON_COLD);
	return err;
}

/* Makes the table and claims the code. 1 or -errno. */
static int publish(struct interpreter *in)
{
	struct python_places places;
	int err;

	python_find_places(in->code, in->words, &places);
	find_cold(in);
	find_counter(in);
	in->claim_flags = claim_flags(in);
	in->words[PYTHON_RUNTIME] = (uint32_t)in->runtime.lo;
	in->words[PYTHON_RUNTIME_HIGH] = (uint32_t)(in->runtime.lo >> 32);
	in->words[PYTHON_PLACE] = places.place;
	in->words[PYTHON_PROLOGUE] = places.prologue;
	in->words[PYTHON_EPILOGUE] = places.epilogue;
	in->words[PYTHON_EPILOGUE_END] = places.epilogue_end;
	memcpy(in->words + PYTHON_UNLINKED, places.unlinked, sizeof(places.unlinked));
	err = in->host->file_slab(in->self->in, in->file, in->words, PYTHON_WORDS);
	if (!err)
		err = claim_code(in);
	return err ? err : 1;
}

#define MOST_CONSTANT (64u << 20) /* bytes of constants that are searched */
#define PIECE (64u << 10)         /* bytes that are read at once */

/* The interpreter prints this text for an unknown instruction. */
static const char opcode_text[] = "XXX lineno: %d, opcode: %d\n";

/* Is the text in [at, to)? *rest: how many bytes may still be read. */
static int is_text_in(const struct interpreter *in, uint64_t at, uint64_t to, uint64_t *rest)
{
	char *piece = malloc(PIECE);
	int found = 0;

	while (piece && !found && to - at >= sizeof(opcode_text) && *rest) {
		uint32_t n = to - at < PIECE ? (uint32_t)(to - at) : PIECE;

		if (in->host->file_read(in->file, at, piece, n))
			break;
		found = memmem(piece, n, opcode_text, sizeof(opcode_text)) != NULL;
		at += n - (sizeof(opcode_text) - 1); /* the text may lie across pieces */
		*rest -= n < *rest ? n : *rest;
	}
	free(piece);
	return found;
}

/* Does a file without the interpreter's symbols contain the interpreter? From 3.10 on it has the
 * section .PyRuntime. Older versions, in stripped programs, are recognized by the text. */
static int is_stripped(const struct interpreter *in, const struct fusee_file_info *info)
{
	struct fusee_section section = FUSEE_SIZED(struct fusee_section);
	uint64_t rest = MOST_CONSTANT;
	struct fusee_range at;

	if (!in->host->file_section(in->file, ".PyRuntime", &section))
		return 1;
	if (!info->entry || !in->host->file_symbol(in->file, "_start", &at))
		return 0;
	FUSEE_FOR_EACH (struct fusee_segment, s, info->segments)
		if (!(s->flags & 2) &&
		    is_text_in(in, s->vaddr, s->vaddr + s->filesz, &rest)) /* PF_W */
			return 1;
	return 0;
}

/* Says what contradicts the table of this minor version, if anything does. r: what inspect()
 * returns. */
static int doubt(const struct interpreter *in, int r)
{
	struct fusee_doubt d = python_check_facts(in->host, in->file, in->runtime.lo, in->words);
	uint32_t minor = in->version >> 16 & 255, micro = in->version >> 8 & 255;

	if (!d.function)
		return r;
	if (d.missing)
		return fusee_fail(
			in->self, r,
			"whether Python 3.%u.%u is laid out as other releases of 3.%u is not "
			"known: it has no %s()",
			minor, micro, minor, d.function);
	return fusee_fail(
		in->self, r,
		"Python 3.%u.%u may be laid out otherwise than other releases of 3.%u: its "
		"%s() does not use offset %u",
		minor, micro, minor, d.function, d.offset);
}

int python_inspect(const struct fusee_self *self, uint64_t file, int tasks)
{
	struct interpreter in = {.self = self, .host = self->host->unwinder, .file = file};
	struct fusee_file_info info = FUSEE_SIZED(struct fusee_file_info);
	struct fusee_range other;
	int err;

	if (in.host->file_info(file, &info) || info.machine != 62)
		return 0;
	if (!in.host->file_symbol(file, "PyPy_GetVersion", &other))
		return fusee_fail(
			self, -ENOTSUP,
			"functions of PyPy programs cannot be shown, only those of CPython");
	if (in.host->file_symbol(file, "_PyRuntime", &in.runtime) ||
	    in.host->file_symbol(file, EVAL, &in.eval)) {
		if (!is_stripped(&in, &info))
			return 0;
		return fusee_fail(self, -ENOENT,
				  "the Python in it was stripped of its symbols, so its functions "
				  "cannot be shown: strip -g would keep them");
	}
	err = find_version(&in);
	if (err)
		return err;
	err = fusee_read_code(in.host, in.file, in.eval, &in.code);
	if (err)
		return fusee_fail(self, err, "the code of the Python in it was not found");
	err = python_find_calls(in.host, in.file, &in.code, in.words, &in.calls);
	if (err || (in.words[PYTHON_FAMILY] == PYTHON_CHAIN && in.code.n < PYTHON_LEAST_CODE &&
		    !in.calls.n)) {
		free(in.code.at);
		return fusee_fail(self, err ? err : -ENOENT,
				  "the code of the instructions of the Python in it was not found");
	}
	in.words[PYTHON_TASKS] = tasks ? python_task_word(in.words) : 0;
	err = publish(&in);
	free(in.code.at);
	return err > 0 ? doubt(&in, err) : err;
}
