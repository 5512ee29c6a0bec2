/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/tracepoints.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/guess.h"

#define PREFIX "btf_trace_"
#define PREFIX_LEN (sizeof(PREFIX) - 1)

/* The name of a type's tracepoint; NULL: it is not of one. */
static const char *name_of(const struct btf *btf, const struct btf_type *t)
{
	const char *name = btf_is_typedef(t) ? btf__name_by_offset(btf, t->name_off) : NULL;

	return name && !strncmp(name, PREFIX, PREFIX_LEN) ? name + PREFIX_LEN : NULL;
}

/* It is a pointer to a function whose first parameter is the probe's own. */
static int arguments_of(const struct btf *btf, const struct btf_type *t)
{
	const struct btf_type *f = btf__type_by_id(btf, t->type);

	f = f && btf_is_ptr(f) ? btf__type_by_id(btf, f->type) : NULL;
	return f && btf_is_func_proto(f) && btf_vlen(f) ? btf_vlen(f) - 1 : -1;
}

/* How many arguments it has, or -errno with a sentence. */
static int find(const struct btf *btf, const char *name, char **why)
{
	struct guess g = {.word = name};

	for (uint32_t i = 1; i < btf__type_cnt(btf); i++) {
		const struct btf_type *t = btf__type_by_id(btf, i);
		const char *is = t ? name_of(btf, t) : NULL;
		int n = is && !strcmp(is, name) ? arguments_of(btf, t) : -1;

		if (n >= 0)
			return n;
		if (is)
			guess_offer(&g, is);
	}
	if (asprintf(why,
		     "this kernel has no raw tracepoint '%s'" GUESS_HINT
		     ": bpftool btf dump file /sys/kernel/btf/vmlinux lists each as " PREFIX "NAME",
		     name, GUESS_WORDS(g, "")) < 0)
		*why = NULL;
	return -ENOENT;
}

int tracepoint_arguments(const char *name, char **why)
{
	struct btf *btf = btf__load_vmlinux_btf();
	int n;

	*why = NULL;
	if (!btf) {
		if (asprintf(why, "this kernel does not describe its types (/sys/kernel/btf)") < 0)
			*why = NULL;
		return -ENOENT;
	}
	n = find(btf, name, why);
	btf__free(btf);
	return n;
}
