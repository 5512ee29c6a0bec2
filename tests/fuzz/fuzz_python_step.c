// SPDX-License-Identifier: Apache-2.0
// clang-format off
// sources: plugins/unwinders/python/codes.c plugins/unwinders/python/text.c plugins/unwinders/python/lines.c
// sources: plugins/unwinders/python/find.c plugins/unwinders/python/counter.c plugins/unwinders/python/versions.c plugins/unwinders/python/inspect.c
// sources: plugins/unwinders/python/calls.c plugins/unwinders/python/facts.c plugins/unwinders/python/python.bpf.c
// flags: -Iplugins/unwinders/python
// clang-format on
// A file that says it contains CPython, and a process that runs it: inspect() of the bytes, then
// the step over memory of the same bytes with the table that inspect() made; if it made none, the
// bytes are the table. What the step emits, and what the bytes are as emissions, is recorded and
// symbolized. What is claimed is within the file.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <fusee/unwinder.bpf.h>

#include "codes.h"
#include "inspect.h"
#include "lines.h"
#include "tables.h"

#define LANGUAGE_WORDS PYTHON_WORDS
#include "language.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int fusee_step_python(struct fusee_unwind *u);

static void *processes;

static int record(struct fusee_native *n, uint32_t kind, uint64_t key, const void *at, uint32_t len)
{
	uint8_t *copy = malloc(len ? len : 1); /* so that a read behind the end is seen */

	(void)n;
	(void)kind;
	memcpy(copy, at, len);
	python_codes_add(&processes, 1, key, copy, len);
	free(copy);
	return 0;
}

static void symbolize(uint64_t key, uint64_t number)
{
	const struct python_code *c = python_codes_find(&processes, 1, key);
	struct python_lines lines;

	if (!c)
		return;
	lines = (struct python_lines){c->minor, c->first_line, c->lines, c->arrived};
	if (strlen(c->name) > 1 << 20 || python_line(&lines, (uint32_t)number) > INT32_MAX)
		abort();
}

static void walk(struct fusee_native *n)
{
	int turns = 0, idle = 0, next;

	do {
		next = fusee_step_python(&n->u);
		idle = n->u.npushed ? 0 : idle + 1;
		if (n->u.npushed)
			symbolize(n->u.pushed[0], n->u.pushed[1]);
		n->u.npushed = 0;
		if (next < FUSEE_STOP || next > FUSEE_NATIVE_TOO)
			abort();
	} while (next == FUSEE_AGAIN && idle < IDLE && ++turns < TURNS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct fusee_self self = {NULL, &host};
	struct fusee_native none = {0};

	bytes = data;
	nbytes = size;
	nslab = 0;
	python_inspect(&self, 1, 1);
	if (!nslab) {
		memset(slab, 0, sizeof(slab));
		memcpy(slab, data, size < sizeof(slab) ? size : sizeof(slab));
		nslab = PYTHON_WORDS;
	}
	if (size >= 8)
		record(&none, data[0] & 3, data[1] & 7, data + 2,
		       (uint32_t)(size - 2 > FUSEE_EMIT_BYTES ? FUSEE_EMIT_BYTES : size - 2));
	for (uint64_t key = 0; key < 8; key++)
		symbolize(key, key);
	steps();
	python_codes_remove(&processes, 1);
	python_codes_free(&processes);
	processes = NULL;
	return 0;
}
