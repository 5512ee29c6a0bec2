// SPDX-License-Identifier: Apache-2.0
// clang-format off
// sources: core/demangle/demangle.c core/demangle/dlang.c core/base/utf8.c core/base/buf.c core/base/arena.c core/base/dict.c
// libs: -liberty
// clang-format on
// A name of a symbol table, whatever its bytes: the answer is clean UTF-8, and the same when called
// again.
#include "fuzz.h"

#include "demangle/demangle.h"
#include "base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct demangler *d;
	char *name = malloc(size + 1), *first;
	const char *out;

	if (!name || (!d && demangler_new(&d)))
		abort();
	memcpy(name, data, size);
	name[size] = 0;
	out = demangle(d, name);
	if (!utf8_printable(out, strlen(out)))
		abort();
	first = strdup(out);
	if (!first || strcmp(first, demangle(d, name)))
		abort();
	out = demangle_clean(d, name);
	if (!utf8_printable(out, strlen(out)))
		abort();
	free(first);
	free(name);
	return 0;
}
