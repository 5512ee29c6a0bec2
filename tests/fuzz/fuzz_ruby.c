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
#include <fusee/unwinder.bpf.h>

#include "functions.h"
#include "inspect.h"
#include "words.h"

#define LANGUAGE_WORDS RUBY_WORDS
#include "language.h"

int fusee_step_ruby(struct fusee_unwind *u);

static void *processes;

static void keep(uint32_t kind, uint64_t key, const void *at, uint32_t len)
{
	ruby_functions_add(&processes, 1, kind, key, at, len);
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
	walk_by(fusee_step_ruby, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct fusee_self self = {NULL, &host};

	begin_input(data, size);
	ruby_inspect(&self, 1);
	table_of_bytes();
	record_bytes(3);
	steps();
	ruby_functions_remove(&processes, 1);
	ruby_functions_free(&processes);
	processes = NULL;
	return 0;
}
