/* SPDX-License-Identifier: Apache-2.0 */
#include "versions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * Offsets of a 64-bit build, printed by programs that include vm_core.h (3.2, 3.3) or
 * rb_mjit_min_header.h (2.7, 3.1), in the builds of Debian and Ubuntu; those of 3.0 are read from
 * its headers.
 */
static const struct version {
	const char *name; /* "major.minor" */
	unsigned char frame_size, insns, insn_size, first_line_fixnum, string_embed, last_operator,
		local_iseq, class_by;
	unsigned short vm_shapes;
} versions[] = {
	{"2.7", 56, 120, 8, 1, 16, 168, 176, RUBY_CLASS_BY_TABLE, 0},
	{"3.0", 56, 120, 8, 1, 16, 169, 176, RUBY_CLASS_BY_TABLE, 0},
	{"3.1", 64, 120, 12, 1, 16, 169, 176, RUBY_CLASS_BY_TABLE, 0},
	{"3.2", 64, 112, 12, 0, 24, 169, 168, RUBY_CLASS_BY_SHAPE, 376},
	{"3.3", 56, 112, 12, 0, 24, 169, 168, RUBY_CLASS_BY_FIELD, 0},
};

#define THREAD_CONTEXT_27 32 /* ec in struct rb_thread_struct of 2.7 */

int ruby_version_words(const char *text, uint32_t words[RUBY_WORDS])
{
	for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
		const struct version *v = versions + i;
		size_t n = strlen(v->name);

		if (strncmp(text, v->name, n) || text[n] != '.')
			continue;
		words[RUBY_FRAME_SIZE] = v->frame_size;
		words[RUBY_INSNS] = v->insns;
		words[RUBY_INSN_SIZE] = v->insn_size;
		words[RUBY_FIRST_LINE] = v->first_line_fixnum;
		words[RUBY_STRING_EMBED] = v->string_embed;
		words[RUBY_LAST_OPERATOR] = v->last_operator;
		words[RUBY_LOCAL_ISEQ] = v->local_iseq;
		words[RUBY_CLASS_BY] = v->class_by;
		words[RUBY_VM_SHAPES] = v->vm_shapes;
		if (!i) {
			words[RUBY_PUBLISHED_EARLY] = 1;
			words[RUBY_BY] = RUBY_BY_KEY;
			words[RUBY_CONTEXT_OFFSET] = THREAD_CONTEXT_27;
		}
		return 0;
	}
	return -ENOTSUP;
}

const char ruby_tested[] = "CRuby 2.7.4, 3.0.2, 3.1.2, 3.2.3, 3.3.8";
