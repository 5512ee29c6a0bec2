// SPDX-License-Identifier: Apache-2.0
/*
 * LD_PRELOAD=hold.so FUSEE_HOLD=FOLDER: the program of a language unwinder is loaded when
 * FOLDER/go is there, not before; until then FOLDER/PID says who would load it.
 */
#define _GNU_SOURCE
#include <bpf/libbpf.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void hold(const char *folder)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/%d", folder, (int)getpid());
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	if (fd >= 0)
		close(fd);
	snprintf(path, sizeof(path), "%s/go", folder);
	while (access(path, F_OK))
		usleep(10000);
}

int bpf_object__load(struct bpf_object *object)
{
	int (*load)(struct bpf_object *) = dlsym(RTLD_NEXT, "bpf_object__load");
	struct bpf_program *p = bpf_object__find_program_by_name(object, "sampler_language");
	const char *folder = getenv("FUSEE_HOLD");

	if (folder && p && bpf_program__autoload(p))
		hold(folder);
	return load(object);
}
