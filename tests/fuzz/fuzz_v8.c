// SPDX-License-Identifier: Apache-2.0
// clang-format off
// sources: plugins/unwinders/v8/names.c plugins/unwinders/v8/inspect.c plugins/unwinders/v8/required.c
// sources: plugins/unwinders/v8/baseline.c plugins/unwinders/v8/bytes.c plugins/unwinders/v8/modules.c
// sources: plugins/unwinders/v8/positions.c plugins/unwinders/v8/source.c plugins/unwinders/v8/v8.bpf.c
// flags: -Iplugins/unwinders/v8
// clang-format on
// A file that says it contains V8, and a process that runs it: inspect() of the bytes, then the
// step over memory of the same bytes, with the table that inspect() made, with that of Node.js 22,
// and with the bytes as table. What the step emits, and what the bytes are as emissions, is
// recorded, symbolized, and the lines of its scripts are read. A step says how the walk goes on.
#include <fusee/unwinder.bpf.h>

#include "inspect.h"
#include "names.h"
#include "source.h"

#define LANGUAGE_WORDS V8_WORDS
#include "language.h"

int fusee_step_v8(struct fusee_unwind *u);

static void *processes;

static int read_bytes(uint64_t process, uint64_t at, void *to, uint32_t len)
{
	(void)process;
	return process_read(NULL, to, len, at) ? at & 1 ? -EFAULT : -EAGAIN : 0;
}

static const struct fusee_unwinder_host memory = {.process_read = read_bytes};

static void keep(uint32_t kind, uint64_t key, const void *at, uint32_t len)
{
	struct v8_process *p = v8_names_process(&processes, 1);
	struct v8_memory m = {&memory, 1, slab[V8_WASM_MARKER], false};

	v8_names_add(&processes, 1, kind, key, at, len);
	if (p && kind == V8_MODULE)
		v8_modules_add(&p->modules, &m, key, at, len);
	if (p && kind == V8_WASM)
		v8_modules_add_place(&p->modules, &m, key, at, len);
}

static bool read_lines(void *arg, struct v8_file *f)
{
	(void)arg;
	f->source.expected %= 1u << 17;
	f->source.next_ns = 0;
	for (int i = 0; i < 4 && !v8_source_read(&memory, 1, slab, &f->source); i++)
		f->source.next_ns = 0;
	if (v8_source_line(&f->source, 7) > f->source.nlines + f->source.line_offset ||
	    f->source.nlines > (1u << 17) + 2)
		abort();
	return true;
}

static bool read_data(void *arg, uint64_t at, void *to, uint32_t n)
{
	return !process_read(arg, to, n, at);
}

/* The bytes as a module of WebAssembly, as large as it says. */
static void read_as_module(uint64_t size)
{
	struct v8_functions f;
	uint32_t n = 0;

	if (!v8_bytes_read(read_data, NULL, size, &f))
		return;
	for (uint32_t i = 0; i < f.imported + f.declared && i < 1000; i++)
		if (v8_bytes_name(&f, i, &n) && n > f.ntexts)
			abort();
	v8_bytes_free(&f);
}

static void symbolize(uint64_t key, uint64_t what)
{
	struct v8_process *p = v8_names_process(&processes, 1);
	char name[V8_FUNCTION_NAME];
	uint64_t script;

	uint32_t offset = (uint32_t)what;
	const struct v8_named *f = v8_names_function(&processes, 1, key);
	const struct v8_file *s = f ? v8_names_script(&processes, 1, f->script) : NULL;

	if (p && v8_modules_name(&p->modules, key, name, &script) &&
	    (!*name || strlen(name) >= sizeof(name)))
		abort();
	if (f && strlen(f->name) > 2 * V8_NAME_BYTES)
		abort();
	if (s && strlen(s->name) > 2 * V8_SCRIPT_BYTES)
		abort();
	if (f && v8_names_place(f, offset, offset & 1).position >> 30)
		abort();
	if (f && v8_names_baseline_place(slab, f, f, offset).position >> 30)
		abort();
}

static void walk(struct fusee_native *n)
{
	uint64_t sp = n->u.sp;
	int next = fusee_step_v8(&n->u);

	if (next < FUSEE_STOP || next > FUSEE_NATIVE_TOO || next == FUSEE_AGAIN)
		abort();
	if (next == FUSEE_NEXT && n->u.sp <= sp && sp < 1ull << 62)
		abort();
	if (n->u.npushed)
		symbolize(n->u.pushed[0], n->u.pushed[1]);
	n->u.npushed = 0;
}

static const uint32_t node_22[V8_WORDS] = {
	[V8_FIRST_FUNCTION] = 2066,
	[V8_LAST_FUNCTION] = 2082,
	[V8_TYPE_SHARED] = 274,
	[V8_TYPE_SCOPE] = 272,
	[V8_TYPE_SCRIPT] = 167,
	[V8_TYPE_BYTECODE] = 205,
	[V8_TYPE_TABLE] = 212,
	[V8_FIRST_NONSTRING] = 128,
	[V8_SHAPE_MASK] = 7,
	[V8_ONE_BYTE] = 8,
	[V8_CONS] = 1,
	[V8_EXTERNAL] = 2,
	[V8_SLICED] = 3,
	[V8_THIN] = 5,
	[V8_MAP_TYPE] = 12,
	[V8_FUNCTION_SHARED] = 32,
	[V8_SHARED_NAME] = 16,
	[V8_SHARED_SCRIPT] = 32,
	[V8_SHARED_LENGTH] = 40,
	[V8_SCRIPT_SOURCE] = 8,
	[V8_SCRIPT_NAME] = 16,
	[V8_SCRIPT_LINE_ENDS] = 56,
	[V8_STRING_LENGTH] = 12,
	[V8_STRING_CHARS] = 16,
	[V8_CONS_FIRST] = 16,
	[V8_CONS_SECOND] = 24,
	[V8_SLICED_PARENT] = 16,
	[V8_SLICED_OFFSET] = 24,
	[V8_THIN_ACTUAL] = 16,
	[V8_EXTERNAL_RESOURCE] = 16,
	[V8_SCOPE_LOCALS] = 2,
	[V8_SCOPE_FIRST] = 3,
	[V8_BYTECODE_LENGTH] = 8,
	[V8_BYTECODE_DATA] = 64,
	[V8_BYTECODE_POSITIONS] = 24,
	[V8_TABLE_DATA] = 16,
	[V8_WASM_MARKER] = 8,
	[V8_TO_JS_MARKER] = 10,
	[V8_TO_WASM_MARKER] = 14,
	[V8_TYPE_MODULE] = 2158,
	[V8_TYPE_INSTANCE] = 2156,
	[V8_SCRIPT_MODULE] = 80,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct fusee_self self = {NULL, &host};

	begin_input(data, size);
	v8_inspect(&self, 1);
	if (nslab)
		steps();
	memcpy(slab, node_22, sizeof(slab));
	nslab = V8_WORDS;
	steps();
	record_bytes(15);
	v8_names_each_script(&processes, 1, read_lines, NULL);
	memcpy(slab, data, size < sizeof(slab) ? size : sizeof(slab));
	steps();
	v8_names_each_script(&processes, 1, read_lines, NULL);
	v8_position_between(&(struct v8_table){data, (uint32_t)size, true}, 1000);
	v8_names_remove(&processes, 1);
	v8_names_free(&processes);
	processes = NULL;
	read_as_module(size);
	read_as_module(1u << 20);
	return 0;
}
