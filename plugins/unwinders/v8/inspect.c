/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect.h"

#include <elf.h>
#include <stdbool.h>

#include "required.h"

#define NAME 96
#define MOST_VALUE 65536u
#define MOST_BUILTINS (1u << 26) /* bytes of the code of all builtins; releases have some 2 MiB */
/* How many types from JS_FUNCTION_TYPE on are functions, if a release does not export the last. */
#define FUNCTION_TYPES 16u

struct library {
	const struct fusee_self *self;
	const struct fusee_unwinder_host *host;
	uint64_t file;
	uint32_t words[V8_WORDS];
};

static const char not_named[] = "JavaScript's functions are not named: this V8";

/* Reads a variable of four bytes, 0 if the file has no bytes for it (.bss). false: there is no such
 * variable. */
static bool read_variable(const struct library *l, const char *name, int32_t *value)
{
	struct fusee_range at;

	*value = 0;
	if (l->host->file_symbol(l->file, name, &at))
		return false;
	if (l->host->file_read(l->file, at.lo, value, sizeof(*value)))
		*value = 0;
	return true;
}

static bool read_constant(const struct library *l, const char *constant, int32_t *value)
{
	char name[NAME];

	snprintf(name, sizeof(name), "v8dbg_%s", constant);
	return read_variable(l, name, value);
}

/* Reads the constant of a word, by the first of its names that the library has. */
static bool read_required(const struct library *l, const struct v8_required *q, int32_t *value)
{
	for (uint32_t k = 0; k < V8_MOST_NAMES && q->names[k]; k++)
		if (read_constant(l, q->names[k], value))
			return true;
	return false;
}

/* Checks the constants that the step relies on, and reads those that it needs. 0 or -errno. */
static int read_words(struct library *l)
{
	int32_t value;

	for (uint32_t i = 0; i < V8_GRANTED; i++) {
		const struct v8_granted *g = &v8_granted[i];

		if (!read_constant(l, g->name, &value))
			return fusee_fail(l->self, -ENOTSUP, "%s does not export v8dbg_%s",
					  not_named, g->name);
		if (value != g->value)
			return fusee_fail(l->self, -ENOTSUP, "%s has v8dbg_%s %d, and not %d",
					  not_named, g->name, (int)value, (int)g->value);
	}
	for (uint32_t i = 0; i < V8_REQUIRED; i++) {
		const struct v8_required *q = &v8_required[i];

		if (!read_required(l, q, &value))
			return fusee_fail(l->self, -ENOTSUP, "%s does not export v8dbg_%s",
					  not_named, q->names[0]);
		if (value < 0 || (uint32_t)value >= MOST_VALUE)
			return fusee_fail(l->self, -ENOTSUP, "%s has v8dbg_%s %d", not_named,
					  q->names[0], (int)value);
		l->words[q->word] = (uint32_t)value;
	}
	return 0;
}

/* Sets the words that releases do not export. */
static void derive(struct library *l)
{
	int32_t unused;

	if (l->words[V8_LAST_FUNCTION] == l->words[V8_FIRST_FUNCTION])
		l->words[V8_LAST_FUNCTION] += FUNCTION_TYPES;
	/* in a BytecodeArray the table of positions follows that of handlers; since V8 12 it
	 * follows the wrapper */
	l->words[V8_BYTECODE_POSITIONS] =
		read_constant(l, "class_BytecodeArray__wrapper__Tagged_BytecodeWrapper_", &unused)
			? 24
			: 32;
	l->words[V8_TABLE_DATA] = 16; /* behind the map and the length */
}

/* ---- compiled code ---- */

/* Sets the words of compiled code, if the library has a layout's constants. false: it has not. */
static bool read_layout(struct library *l, const struct v8_code_word layout[V8_CODE_WORDS])
{
	for (uint32_t i = 0; i < V8_CODE_WORDS; i++) {
		int32_t value = (int32_t)layout[i].value;

		if (layout[i].name && (!read_constant(l, layout[i].name, &value) || value < 0 ||
				       (uint32_t)value >= MOST_VALUE))
			return false;
		l->words[layout[i].word] = (uint32_t)value;
	}
	return true;
}

static void read_code_words(struct library *l)
{
	for (uint32_t i = 0; i < V8_LAYOUTS; i++)
		if (read_layout(l, v8_code_words[i]))
			return;
	for (uint32_t i = 0; i < V8_CODE_WORDS; i++)
		l->words[v8_code_words[0][i].word] = 0;
}

/* Sets the words of WebAssembly. Those that the library lacks are 0, and then its functions are not
 * named. */
static void read_wasm_words(struct library *l)
{
	int32_t values[V8_WASM_WORDS], instance;

	for (uint32_t i = 0; i < V8_WASM_WORDS; i++)
		if (!read_required(l, &v8_wasm_words[i], &values[i]) || values[i] <= 0 ||
		    (uint32_t)values[i] >= MOST_VALUE / 2)
			return;
	for (uint32_t i = 0; i < V8_WASM_WORDS; i++)
		l->words[v8_wasm_words[i].word] = (uint32_t)values[i];
	/* as frames have them */
	l->words[V8_WASM_MARKER] *= 2;
	l->words[V8_TO_JS_MARKER] *= 2;
	l->words[V8_TO_WASM_MARKER] *= 2;
	if (read_constant(l, "type_WasmInstanceObject__WASM_INSTANCE_OBJECT_TYPE", &instance) &&
	    instance > 0 && (uint32_t)instance < MOST_VALUE)
		l->words[V8_TYPE_INSTANCE] = (uint32_t)instance;
}

/* Reads the sizes of bytecodes, which V8 has in a table for each scale of operands. Without them
 * lines of code of Sparkplug are not known. */
static void read_sizes(struct library *l)
{
	unsigned char sizes[V8_SCALES * V8_MOST_BYTECODES];
	struct fusee_range at;
	uint64_t n;

	if (l->host->file_symbol(l->file, "_ZN2v88internal11interpreter9Bytecodes14kBytecodeSizesE",
				 &at))
		return;
	n = (at.hi - at.lo) / V8_SCALES;
	if (at.hi - at.lo != n * V8_SCALES || !n || n > V8_MOST_BYTECODES ||
	    l->host->file_read(l->file, at.lo, sizes, (uint32_t)(n * V8_SCALES)))
		return;
	for (uint32_t i = 0; i < n * V8_SCALES; i++) {
		uint32_t to = i / (uint32_t)n * V8_MOST_BYTECODES + i % (uint32_t)n;

		l->words[V8_BYTECODE_SIZES + to / 4] |= (uint32_t)sizes[i] << 8 * (to % 4);
	}
	l->words[V8_BYTECODES] = (uint32_t)n;
}

/* ---- the builtins ---- */

/* Returns what a function returns, by its instructions: mov $value,%eax or lea
 * value(%rip),%rax or mov value(%rip),%eax, maybe behind endbr64 and push %rbp; mov
 * %rsp,%rbp. 0: it has another form. */
static uint64_t value_of(const struct library *l, const char *function)
{
	static const unsigned char endbr[] = {0xf3, 0x0f, 0x1e, 0xfa},
				   frame[] = {0x55, 0x48, 0x89, 0xe5};
	unsigned char code[24];
	struct fusee_range at;
	uint32_t i = 0, value;
	int32_t distance;

	if (l->host->file_symbol(l->file, function, &at) ||
	    l->host->file_read(l->file, at.lo, code, sizeof(code)))
		return 0;
	i += memcmp(code, endbr, sizeof(endbr)) ? 0 : sizeof(endbr);
	i += memcmp(code + i, frame, sizeof(frame)) ? 0 : sizeof(frame);
	if (code[i] == 0xb8) { /* mov $value,%eax */
		memcpy(&value, code + i + 1, sizeof(value));
		return value;
	}
	if (code[i] == 0x48 && code[i + 1] == 0x8d && code[i + 2] == 0x05) {
		memcpy(&distance, code + i + 3, sizeof(distance));
		return at.lo + i + 7 + (uint64_t)(int64_t)distance;
	}
	if (code[i] == 0x8b && code[i + 1] == 0x05) {
		memcpy(&distance, code + i + 2, sizeof(distance));
		return l->host->file_read(l->file, at.lo + i + 6 + (uint64_t)(int64_t)distance,
					  &value, sizeof(value))
			       ? 0
			       : value;
	}
	return 0;
}

/* Finds the code of the builtins: by variables that are symbols, or in stripped files by two
 * exported functions that return address and size. */
static bool find_builtins(const struct library *l, struct fusee_range *code)
{
	static const char *const begin[] = {"v8_Default_embedded_blob_code_data_",
					    "v8_Default_embedded_blob_code_"};
	int32_t size = 0;

	code->lo = 0;
	for (uint32_t i = 0; i < 2 && !code->lo; i++)
		if (l->host->file_symbol(l->file, begin[i], code))
			code->lo = 0;
	read_variable(l, "v8_Default_embedded_blob_code_size_", &size);
	if (!code->lo)
		code->lo = value_of(l, "_ZN2v88internal23DefaultEmbeddedBlobCodeEv");
	if (!size)
		size = (int32_t)value_of(l, "_ZN2v88internal27DefaultEmbeddedBlobCodeSizeEv");
	code->hi = code->lo + (uint32_t)size;
	return code->lo && size > 0 && (uint32_t)size <= MOST_BUILTINS && code->hi <= UINT32_MAX;
}

/* Makes the table of the file, and claims its builtins. 1 or -errno. */
static int make(struct library *l)
{
	struct fusee_claim claim = FUSEE_SIZED(struct fusee_claim, .flags = FUSEE_CLAIM_STEP);
	int r = read_words(l);

	if (r)
		return r;
	derive(l);
	read_code_words(l);
	read_wasm_words(l);
	read_sizes(l);
	if (!find_builtins(l, &claim.range))
		return fusee_fail(l->self, -ENOTSUP, "%s does not say where its builtins are",
				  not_named);
	l->words[V8_BUILTINS_LO] = (uint32_t)claim.range.lo;
	l->words[V8_BUILTINS_HI] = (uint32_t)claim.range.hi;
	r = l->host->file_slab(l->self->in, l->file, l->words, V8_WORDS);
	if (!r)
		r = l->host->file_claim(l->self->in, l->file, &claim);
	return r ? r : 1;
}

int v8_inspect(const struct fusee_self *self, uint64_t file)
{
	struct library l = {.self = self, .host = self->host->unwinder, .file = file};
	struct fusee_file_info info = FUSEE_SIZED(struct fusee_file_info);
	struct fusee_range at;

	if (l.host->file_info(file, &info) || info.machine != EM_X86_64)
		return 0;
	if (!l.host->file_symbol(file, "v8dbg_HeapObjectTag", &at))
		return make(&l);
	if (!l.host->file_symbol(file, "_ZN2v87Isolate10GetCurrentEv", &at))
		return fusee_fail(self, -ENOTSUP, "%s exports no constants for debuggers",
				  not_named);
	return 0;
}
