/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/internal/infer.h"

#include <string.h>

#include <fusee/profile.h>

static bool begins(const char *s, const char *with)
{
	return !strncmp(s, with, strlen(with));
}

uint32_t pprof_kind_of_mapping(const char *path, bool may_be_main)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	if (begins(path, "[vdso]") || begins(path, "[vsyscall]") || begins(path, "linux-vdso"))
		return FUSEE_MAPPING_LIBRARY;
	if (!*path || begins(path, "[anon") || begins(path, "[heap]") || begins(path, "[stack") ||
	    begins(path, "[jit") || begins(path, "//anon") || begins(path, "/memfd:"))
		return FUSEE_MAPPING_JIT;
	if (*path == '[' || strstr(name, ".ko"))
		return FUSEE_MAPPING_KERNEL;
	if (strstr(name, ".so"))
		return FUSEE_MAPPING_LIBRARY;
	return may_be_main ? FUSEE_MAPPING_MAIN : 0;
}

uint32_t pprof_kind_of_location(const char *name, const char *path)
{
	const char *file, *slash;
	size_t len = strlen(name);

	if (!path)
		return len > 2 && *name == '[' && name[len - 1] == ']' ? FUSEE_LOCATION_REASON : 0;
	slash = strrchr(path, '/');
	file = slash ? slash + 1 : path;
	return begins(name, file) && begins(name + strlen(file), "+0x") ? FUSEE_LOCATION_STUB : 0;
}
