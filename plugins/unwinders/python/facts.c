/* SPDX-License-Identifier: Apache-2.0 */
#include "facts.h"

#include "versions.h"

#define LARGEST 4096u /* bytes of a function that are looked at; these functions are short */

/* What a fact is about. */
enum what {
	INTERPRETERS, /* in _PyRuntime */
	HOLDER,       /* the same */
	THREADS,
	NEXT,
	NEXT_THREAD,
	THREAD_ID,
	CURRENT,
	PREVIOUS,
	CODE,
	INSTRUCTION,
	LASTI,
	FIRST_LINE,
	TABLE,
	TEXT,
};

struct fact {
	const char *function; /* exported */
	uint32_t first, last; /* minor versions */
	enum what what;
};

/* Each of these functions, or a function that it calls, uses what the step uses. Of autoTSSkey
 * nothing is listed: what it leads to is confirmed at each sample. */
static const struct fact facts[] = {
	{"PyInterpreterState_Head", 8, 12, INTERPRETERS},
	{"PyThreadState_Get", 8, 10, HOLDER},
	{"PyInterpreterState_ThreadHead", 8, 12, THREADS},
	{"PyInterpreterState_Next", 8, 12, NEXT},
	{"PyThreadState_Next", 8, 12, NEXT_THREAD},
	{"PyThreadState_SetAsyncExc", 8, 12, THREAD_ID},
	{"PyThreadState_Clear", 8, 8, CURRENT},
	{"PyThreadState_GetFrame", 9, 12, CURRENT},
	{"PyFrame_GetBack", 9, 12, PREVIOUS},
	{"PyFrame_GetLineNumber", 8, 10, CODE},
	{"PyFrame_GetLineNumber", 8, 10, LASTI},
	{"PyFrame_GetCode", 9, 12, CODE},
	{"PyFrame_GetLasti", 11, 12, INSTRUCTION},
	{"PyCode_Addr2Line", 8, 12, FIRST_LINE},
	{"PyCode_Addr2Line", 8, 12, TABLE},
	{"PyUnicode_AsUTF8AndSize", 8, 12, TEXT},
};

/* The offset by the table, and by what the step has as constants. */
static uint32_t offset_of(const uint32_t *words, enum what what)
{
	int objects = words[PYTHON_FAMILY] == PYTHON_OBJECTS;
	int entries = words[PYTHON_FAMILY] == PYTHON_ENTRIES;

	switch (what) {
	case INTERPRETERS:
		return words[PYTHON_INTERPRETERS];
	case HOLDER:
		return words[PYTHON_HOLDER];
	case THREADS:
		return words[PYTHON_THREADS];
	case NEXT:
		return words[PYTHON_NEXT];
	case NEXT_THREAD:
		return 8;
	case THREAD_ID:
		return words[PYTHON_THREAD_ID];
	case CURRENT:
		return words[PYTHON_CURRENT];
	case PREVIOUS:
		return objects ? 24 : entries ? 48 : 8;
	case CODE:
		return objects || entries ? 32 : 0;
	case INSTRUCTION:
		return 56;
	case LASTI:
		return words[PYTHON_FRAME];
	case FIRST_LINE:
		return words[PYTHON_CODE] + words[PYTHON_FIRST_LINE] / 8;
	case TABLE:
		return words[PYTHON_CODE] +
		       8 * (objects ? PYTHON_OLD_FILENAME + 2 : PYTHON_NEW_FILENAME + 3);
	case TEXT:
		return words[PYTHON_TEXT] & 0xffff;
	}
	return 0;
}

static int32_t s32(const unsigned char *p)
{
	int32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* Does an operand in memory, whose ModRM byte is at i, have this offset from a register? */
static int has_offset(const struct fusee_code *c, uint32_t i, uint32_t offset)
{
	uint32_t mode = c->at[i] >> 6, base = c->at[i] & 7, at = i + 1 + (base == 4);

	if (mode == 0)
		return !offset && base != 5;
	if (mode == 1)
		return offset < 128 && at < c->n && c->at[at] == offset;
	return mode == 2 && at + 4 <= c->n && (uint32_t)s32(c->at + at) == offset;
}

/* Does an instruction of this code use the offset, or this vaddr? */
static int uses(const struct fusee_code *c, enum what what, uint32_t offset, uint64_t vaddr)
{
	for (uint32_t i = 0; i + 2 <= c->n; i++) {
		unsigned char op = c->at[i];
		/* mov, cmp, movslq */
		int loads = op == 0x8b || op == 0x39 || op == 0x3b || op == 0x63 ||
			    (op == 0x83 && (c->at[i + 1] >> 3 & 7) == 7);

		if (what == TEXT) { /* lea, or add to a register */
			if ((op == 0x8d && has_offset(c, i + 1, offset)) ||
			    (op == 0x83 && (c->at[i + 1] & 0xf8) == 0xc0 && i + 3 <= c->n &&
			     c->at[i + 2] == offset))
				return 1;
		} else if (loads && has_offset(c, i + 1, offset)) {
			return 1;
		} else if (vaddr && loads && (c->at[i + 1] & 0xc7) == 5 && i + 6 <= c->n &&
			   c->vaddr + i + 6 + (uint64_t)(int64_t)s32(c->at + i + 2) == vaddr) {
			return 1;
		}
	}
	return 0;
}

/* Does one of the functions that it calls, or goes on in? */
static int callees_use(const struct fusee_unwinder_host *host, uint64_t file,
		       const struct fusee_code *c, enum what what, uint32_t offset, uint64_t vaddr)
{
	struct fusee_range at;
	struct fusee_code callee;
	int found = 0;

	for (uint32_t i = 0; i + 5 <= c->n && !found; i++) {
		if ((c->at[i] & 0xfe) != 0xe8)
			continue;
		at.lo = c->vaddr + i + 5 + (uint64_t)(int64_t)s32(c->at + i + 1);
		if (host->file_function(file, at.lo, &at) || at.hi - at.lo > LARGEST ||
		    fusee_read_code(host, file, at, &callee))
			continue;
		found = uses(&callee, what, offset, vaddr);
		free(callee.at);
	}
	return found;
}

struct python_doubt python_check_facts(const struct fusee_unwinder_host *host, uint64_t file,
				       uint64_t runtime, const uint32_t *words)
{
	uint32_t minor = words[PYTHON_VERSION] >> 8;

	for (uint32_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
		const struct fact *f = facts + i;
		uint32_t offset = offset_of(words, f->what);
		uint64_t vaddr = f->what == INTERPRETERS || f->what == HOLDER ? runtime + offset
									      : 0;
		struct fusee_range at;
		struct fusee_code c;
		int found;

		if (minor < f->first || minor > f->last)
			continue;
		if (host->file_symbol(file, f->function, &at) || at.hi - at.lo > LARGEST ||
		    fusee_read_code(host, file, at, &c))
			return (struct python_doubt){f->function, offset, 1};
		found = uses(&c, f->what, offset, vaddr) ||
			callees_use(host, file, &c, f->what, offset, vaddr);
		free(c.at);
		if (!found)
			return (struct python_doubt){f->function, offset, 0};
	}
	return (struct python_doubt){NULL, 0, 0};
}
