// SPDX-License-Identifier: Apache-2.0
#include "plugin/library.h"

#include <dlfcn.h>

void *library_load(const char *soname)
{
	return dlopen(soname, RTLD_NOW | RTLD_LOCAL);
}

void *library_function(void *library, const char *name)
{
	return dlsym(library, name);
}
