/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the library of the argument where its stack is some 11 KiB deep, and calls it 3 times. */
#include <dlfcn.h>
#include <stdlib.h>

__attribute__((noinline)) static void deep(const char *path, int depth)
{
	volatile char frame[512];
	void *library;

	frame[0] = 0;
	if (depth) {
		deep(path, depth - 1);
	} else {
		library = dlopen(path, RTLD_NOW);
		if (!library)
			exit(1);
		((void (*)(int))dlsym(library, "call_library"))(3);
	}
	frame[1] = 0;
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	deep(argv[1], 20);
	return 0;
}
