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
#include <fusee/unwinder.bpf.h>

#include "codes.h"
#include "inspect.h"
#include "lines.h"
#include "tables.h"

#define LANGUAGE_WORDS PYTHON_WORDS
#include "language.h"

int fusee_step_python(struct fusee_unwind *u);

static void *processes;

static void keep(uint32_t kind, uint64_t key, const void *at, uint32_t len)
{
	python_codes_add(&processes, 1, key, at, len);
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
	walk_by(fusee_step_python, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct fusee_self self = {NULL, &host};

	begin_input(data, size);
	python_inspect(&self, 1, 1);
	table_of_bytes();
	record_bytes(3);
	steps();
	python_codes_remove(&processes, 1);
	python_codes_free(&processes);
	processes = NULL;
	return 0;
}
