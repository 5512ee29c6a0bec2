// SPDX-License-Identifier: Apache-2.0
// clang-format off
// sources: plugins/unwinders/ruby/functions.c plugins/unwinders/ruby/inspect.c plugins/unwinders/ruby/code.c plugins/unwinders/ruby/fibers.c
// sources: plugins/unwinders/ruby/collections.c plugins/unwinders/ruby/versions.c plugins/unwinders/ruby/facts.c plugins/unwinders/ruby/ruby.bpf.c
// flags: -Iplugins/unwinders/ruby
// clang-format on
// A file that says it contains Ruby, and a process that runs it: inspect() of the bytes, then the
// step over memory of the same bytes with the table that inspect() made; if it made none, the bytes
// are the table. What the step emits, and what the bytes are as emissions, is recorded and
// symbolized. A step says how the walk goes on, and what is claimed is within the file.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <fusee/unwinder.bpf.h>

#include "functions.h"
#include "inspect.h"
#include "words.h"

#define LANGUAGE_WORDS RUBY_WORDS
#include "language.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int fusee_step_ruby(struct fusee_unwind *u);

static void *processes;

static int record(struct fusee_native *n, uint32_t kind, uint64_t key, const void *at, uint32_t len)
{
	uint8_t *copy = malloc(len ? len : 1); /* so that a read behind the end is seen */

	(void)n;
	memcpy(copy, at, len);
	ruby_functions_add(&processes, 1, kind, key, copy, len);
	free(copy);
	return 0;
}

static void symbolize(uint64_t key, uint64_t number)
{
	uint32_t line;
	const struct ruby_named *f = ruby_functions_find(&processes, 1, key, number, &line);

	if (f && strlen(f->label) + strlen(f->path) > 1 << 20)
		abort();
}

static void walk(struct fusee_native *n)
{
	int turns = 0, idle = 0, next;

	do {
		next = fusee_step_ruby(&n->u);
		idle = n->u.npushed ? 0 : idle + 1;
		if (n->u.npushed)
			symbolize(n->u.pushed[0], n->u.pushed[1]);
		n->u.npushed = 0;
		if (next < FUSEE_STOP || next > FUSEE_NATIVE_TOO)
			abort();
		/* lying memory has any number of control frames without a function */
	} while (next == FUSEE_AGAIN && idle < IDLE && ++turns < TURNS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct fusee_self self = {NULL, &host};
	struct fusee_native none = {0};

	bytes = data;
	nbytes = size;
	nslab = 0;
	ruby_inspect(&self, 1);
	if (!nslab) {
		memset(slab, 0, sizeof(slab));
		memcpy(slab, data, size < sizeof(slab) ? size : sizeof(slab));
		nslab = RUBY_WORDS;
	}
	if (size >= 8)
		record(&none, data[0] & 3, data[1] & 7, data + 2,
		       (uint32_t)(size - 2 > FUSEE_EMIT_BYTES ? FUSEE_EMIT_BYTES : size - 2));
	for (uint64_t key = 0; key < 8; key++)
		symbolize(key, key);
	steps();
	ruby_functions_remove(&processes, 1);
	ruby_functions_free(&processes);
	processes = NULL;
	return 0;
}
