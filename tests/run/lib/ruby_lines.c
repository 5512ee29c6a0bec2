// SPDX-License-Identifier: Apache-2.0
/* The decoder of the ruby unwinder over the memory of the process that loads this: a Ruby
 * interpreter. */
#include <sys/uio.h>
#include <unistd.h>

#include "lines.h"
#include "versions.h"

static int read_own(struct fusee_native *n, void *dst, __u32 len, __u64 addr)
{
	struct iovec to = {dst, len}, from = {(void *)(uintptr_t)addr, len};

	(void)n;
	return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)len ? 0 : -1;
}

/* The line of word n of the code of the iseq at this address, -1: the version is not known. */
__attribute__((visibility("default"))) long line_of(const char *version, unsigned long iseq,
						    unsigned long n);
long line_of(const char *version, unsigned long iseq, unsigned long n)
{
	struct fusee_native native = {.read = read_own};
	uint32_t words[RUBY_WORDS] = {0};
	__u64 body;

	if (ruby_version_words(version, words) || read_own(&native, &body, 8, iseq + 16))
		return -1;
	return ruby_line(&native.u, body + words[RUBY_INSNS], words[RUBY_INSN_SIZE], n);
}
