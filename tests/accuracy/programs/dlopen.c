/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries that come and go while they are profiled: libone.so and libtwo.so in turn, most likely
 * at the same address; built with DELETED, each is a fresh copy whose file is deleted before its
 * code runs (for longer: who comes too late has nothing to look at). With BRIEF too it is unmapped
 * before anybody can come.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "burn.h"

static char folder[4000];

#ifdef DELETED
static void copy(const char *from, const char *to)
{
	static char buf[65536];
	int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0700);
	ssize_t n;

	if (in < 0 || out < 0)
		exit(1);
	while ((n = read(in, buf, sizeof(buf))) > 0)
		if (write(out, buf, (size_t)n) != n)
			exit(1);
	close(in);
	close(out);
}
#endif

static void *load(int which)
{
	char path[4096];
	void *lib;

	snprintf(path, sizeof(path), "%s/lib%s.so", folder, which ? "two" : "one");
#ifdef DELETED
	char fresh[64];

	snprintf(fresh, sizeof(fresh), "/tmp/burn-%d-lib%s.so", (int)getpid(),
		 which ? "two" : "one");
	copy(path, fresh);
	lib = dlopen(fresh, RTLD_NOW);
	unlink(fresh);
#else
	lib = dlopen(path, RTLD_NOW);
#endif
	if (!lib) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return lib;
}

static NOIPA void use(void (*enter)(long), long n)
{
	enter(n);
	NO_TAIL();
}

static NOIPA void round_of(int which)
{
	void *lib = load(which);
	void (*enter)(long) = (void (*)(long))dlsym(lib, which ? "two_enter" : "one_enter");

#if defined(DELETED) && !defined(BRIEF)
	use(enter, 3000000);
#else
	use(enter, 150000);
#endif
	dlclose(lib);
	NO_TAIL();
}

int main(int argc, char **argv)
{
	char *slash;

	snprintf(folder, sizeof(folder), "%s", argv[0]);
	slash = strrchr(folder, '/');
	if (slash)
		*slash = 0;
	else
		strcpy(folder, ".");
	burn_ready(argc, argv);
	for (int i = 0; go_on(); i++)
		round_of(i & 1);
	return 0;
}
