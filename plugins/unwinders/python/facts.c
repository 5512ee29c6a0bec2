/* SPDX-License-Identifier: Apache-2.0 */
#include "facts.h"

#include "versions.h"

/* The offset that a fact is about. */
enum what {
	INTERPRETERS, /* in _PyRuntime */
	HOLDER,       /* in _PyRuntime, too */
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

/* Each of these exported functions, or a function that it calls, uses an offset that the step uses.
 * autoTSSkey has no entry, as the step confirms at each sample what it leads to. */
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

/* The offset that the step uses, from the table or as a constant of the step. */
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

struct fusee_doubt python_check_facts(const struct fusee_unwinder_host *host, uint64_t file,
				      uint64_t runtime, const uint32_t *words)
{
	uint32_t minor = words[PYTHON_VERSION] >> 8;

	for (uint32_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
		const struct fact *f = facts + i;
		uint32_t offset = offset_of(words, f->what);
		uint64_t vaddr = f->what == INTERPRETERS || f->what == HOLDER ? runtime + offset
									      : 0;
		int used;

		if (minor < f->first || minor > f->last)
			continue;
		used = fusee_function_uses(host, file, f->function,
					   f->what == TEXT ? FUSEE_USE_ADDRESS : FUSEE_USE_VALUE,
					   offset, vaddr);
		if (used <= 0)
			return (struct fusee_doubt){f->function, offset, used < 0};
	}
	return (struct fusee_doubt){NULL, 0, 0};
}
