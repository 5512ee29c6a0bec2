/* SPDX-License-Identifier: Apache-2.0 */
#include "tables.h"

#include <errno.h>
#include <string.h>

#define BIT(byte) \
	(((byte)-64) * 8) /* the first bit of a byte of a frame, counted from byte 64 on */

/*
 * From the headers of each version (Include/cpython/{code,frameobject,pystate}.h,
 * Include/internal/pycore_{runtime,interp,frame,pystate}.h), as tests/run/python-offsets computes
 * them where these headers are installed. The layouts of a minor version are the same in all its
 * releases.
 */
struct version {
	uint32_t minor, family, key, interpreters, threads, thread_id, current, frame, code, line,
		bytecode, ascii, holder;
};

static const struct version versions[] = {
	{8, PYTHON_OBJECTS, 1392, 32, 8, 176, 24, 104, 40, 0, 0, 48, 1368},
	{9, PYTHON_OBJECTS, 584, 32, 8, 176, 24, 104, 40, 0, 0, 48, 568},
	{10, PYTHON_OBJECTS, 584, 32, 8, 176, 24, 96, 40, 0, 0, 48, 568},
	{11, PYTHON_ENTRIES, 592, 40, 16, 152, 56, BIT(68) | 1 << 8, 64, 64, 184, 48, 0},
	{12, PYTHON_SHIMS, 1544, 40, 72, 136, 56, BIT(70) | 3 << 8, 64, 32, 192, 40, 0},
};

const char python_tested[] = "CPython 3.8.18, 3.9.18, 3.10.13, 3.10.16, 3.11.2, 3.11.7, 3.11.11, "
			     "3.12.1, 3.13.0, 3.13.1, 3.13.5, 3.14.4, 3.14.6, 3.14.10";

int python_version_words(uint32_t version, uint32_t words[PYTHON_WORDS])
{
	const struct version *v = versions, *end = versions + sizeof(versions) / sizeof(*versions);

	while (v < end && (version >> 24 != 3 || v->minor != (version >> 16 & 255)))
		v++;
	if (v == end)
		return -ENOTSUP;
	memset(words, 0, PYTHON_WORDS * sizeof(*words));
	words[PYTHON_FAMILY] = v->family;
	words[PYTHON_KEY] = v->key;
	words[PYTHON_HOLDER] = v->holder;
	words[PYTHON_INTERPRETERS] = v->interpreters;
	words[PYTHON_THREADS] = v->threads;
	words[PYTHON_THREAD_ID] = v->thread_id;
	words[PYTHON_CURRENT] = v->current;
	words[PYTHON_FRAME] = v->frame;
	words[PYTHON_CODE] = v->code;
	words[PYTHON_FIRST_LINE] = v->line;
	words[PYTHON_BYTECODE] = v->bytecode;
	words[PYTHON_TEXT] = v->ascii | (v->ascii == 48 ? 72u : 56u) << 16;
	words[PYTHON_KIND] = 2;
	words[PYTHON_VERSION] = version >> 8 & 0xffff;
	return 0;
}

/*
 * The offsets of _fut_waiter in TaskObj (Modules/_asynciomodule.c), and of the frame in PyGenObject
 * (pycore_genobject.h or genobject.h), as tests/run/python-asyncio finds them in running
 * interpreters.
 */
uint32_t python_task_word(const uint32_t words[PYTHON_WORDS])
{
	if (words[PYTHON_HEADER])
		return 0;
	switch (words[PYTHON_VERSION] >> 8) {
	case 11:
		return 128 | 80 << 16;
	case 12:
		return 128 | 72 << 16;
	case 13:
		return 112 | 72 << 16;
	case 14:
		return 120 | 72 << 16;
	default:
		return 0;
	}
}

/* ---- 3.13 and later ---- */

/* Where the parts of _Py_DebugOffsets begin, in 64-bit words, and offsets that it does not
 * contain. */
struct layout {
	uint32_t minor, words;
	uint32_t thread, frame, code, unicode; /* each begins with its own size */
	uint32_t generation;                   /* the counter of freed code objects; 0: none */
	uint32_t key;                          /* autoTSSkey in _PyRuntime */
};

static const struct layout layouts[] = {
	{13, 73, 19, 28, 34, 67, 0, 2160},
	{14, 95, 22, 31, 39, 77, 20, 2336},
};

/* Indices of members in their parts. */
enum { FREE_THREADED = 2, INTERPRETERS = 5, NEXT = 8, THREADS = 9 };
enum { THREAD_NEXT = 2, THREAD_CURRENT = 4, THREAD_ID = 5 };
enum { FRAME_PREVIOUS = 1, FRAME_EXECUTABLE, FRAME_INSTRUCTION, FRAME_OWNER = 5, FRAME_COPY = 7 };
enum {
	CODE_FILENAME = 1,
	CODE_NAME,
	CODE_QUALNAME,
	CODE_TABLE,
	CODE_FIRST_LINE,
	CODE_BYTECODE = 9,
	CODE_COPIES
};
enum { TEXT_STATE = 1, TEXT_LENGTH, TEXT_ASCII };

#define MORE_HEADER 16u /* bytes of an object's header without the GIL beyond those with it */
#define COOKIE "xdebugpy"

/* The offset of co_tlbc: from 3.14 on, without the GIL, each thread has a copy of the bytecode. 0:
 * there are no copies. */
static uint32_t copies(const uint64_t *o, const struct layout *l)
{
	return o[FREE_THREADED] && l->minor >= 14 ? (uint32_t)o[l->code + CODE_COPIES] : 0;
}

static int copies_fit(const uint64_t *o, const struct layout *l)
{
	if (!o[FREE_THREADED] || l->minor < 14)
		return 1;
	return o[l->frame + FRAME_COPY] == 72 && copies(o, l) && copies(o, l) % 8 == 0;
}

/* Are the offsets that the step has as constants the same here? */
static int fits(const uint64_t *o, const struct layout *l)
{
	const uint64_t *frame = o + l->frame, *code = o + l->code, *text = o + l->unicode;
	uint64_t header = o[FREE_THREADED] ? MORE_HEADER : 0;

	for (uint32_t i = 3; i < l->words; i++)
		if (o[i] > 1u << 30)
			return 0;
	return o[l->thread + THREAD_NEXT] == 8 && frame[FRAME_PREVIOUS] == 8 &&
	       frame[FRAME_EXECUTABLE] == 0 && frame[FRAME_INSTRUCTION] == 56 &&
	       frame[FRAME_OWNER] >= 64 && frame[FRAME_OWNER] < 80 && code[CODE_FILENAME] >= 48 &&
	       code[CODE_NAME] == code[CODE_FILENAME] + 8 &&
	       code[CODE_QUALNAME] == code[CODE_FILENAME] + 16 &&
	       code[CODE_TABLE] == code[CODE_FILENAME] + 24 &&
	       (code[CODE_FIRST_LINE] == code[CODE_FILENAME] - 44 ||
		code[CODE_FIRST_LINE] == code[CODE_FILENAME] - 40) &&
	       text[TEXT_STATE] == 32 + header && text[TEXT_LENGTH] == 16 + header &&
	       text[TEXT_ASCII] < 256 && copies_fit(o, l);
}

int python_debug_words(const unsigned char *offsets, uint32_t n, uint32_t words[PYTHON_WORDS])
{
	uint64_t o[PYTHON_DEBUG_OFFSETS / 8];
	const struct layout *l = layouts, *end = layouts + sizeof(layouts) / sizeof(*layouts);
	uint32_t version, text;

	if (n < sizeof(o) || memcmp(offsets, COOKIE, 8))
		return -EBADMSG;
	memcpy(o, offsets, sizeof(o));
	version = (uint32_t)o[1];
	while (l < end && (version >> 24 != 3 || l->minor != (version >> 16 & 255)))
		l++;
	if (l == end)
		return -ENOTSUP;
	if (!fits(o, l))
		return -EBADMSG;
	memset(words, 0, PYTHON_WORDS * sizeof(*words));
	words[PYTHON_FAMILY] = PYTHON_CHAIN;
	words[PYTHON_KEY] = l->key;
	words[PYTHON_INTERPRETERS] = (uint32_t)o[INTERPRETERS];
	words[PYTHON_NEXT] = (uint32_t)o[NEXT];
	words[PYTHON_THREADS] = (uint32_t)o[THREADS];
	words[PYTHON_THREAD_ID] = (uint32_t)o[l->thread + THREAD_ID];
	words[PYTHON_CURRENT] = (uint32_t)o[l->thread + THREAD_CURRENT];
	words[PYTHON_FRAME] = (uint32_t)BIT(o[l->frame + FRAME_OWNER]) | 3 << 8;
	words[PYTHON_CODE] = (uint32_t)o[l->code + CODE_FILENAME] - 48;
	words[PYTHON_FIRST_LINE] = (uint32_t)(o[l->code + CODE_FIRST_LINE] - words[PYTHON_CODE]) *
				   8;
	words[PYTHON_BYTECODE] = (uint32_t)o[l->code + CODE_BYTECODE];
	words[PYTHON_COPIES] = copies(o, l);
	words[PYTHON_KIND] = words[PYTHON_COPIES] ? 8 : 2; /* `interned` before it is then a byte */
	words[PYTHON_COUNTER] = l->generation ? (uint32_t)o[l->generation] : 0;
	words[PYTHON_HEADER] = o[FREE_THREADED] ? MORE_HEADER : 0;
	/* relative to the object as if its header were the short one of builds with the GIL */
	text = (uint32_t)o[l->unicode + TEXT_ASCII] - words[PYTHON_HEADER];
	words[PYTHON_TEXT] = text | (text + 16) << 16;
	words[PYTHON_VERSION] = version >> 8 & 0xffff;
	return 0;
}
