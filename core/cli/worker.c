// SPDX-License-Identifier: Apache-2.0
/* fusee worker: the process that parses files of other users; fusee opener: the process that opens
 * them; fusee fetcher: the process that fetches debug files. fusee starts them itself. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sysexits.h>
#include <unistd.h>

#include "cli/cli.h"
#include "fetcher/fetcher.h"
#include "opener/opener.h"
#include "sandbox/sandbox.h"
#include "worker/worker.h"

static bool is_socket(int fd)
{
	int type = 0;
	socklen_t len = sizeof(type);

	return !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) && type == SOCK_SEQPACKET;
}

static int run_on_socket(int argc, char **argv, int (*run)(int sock))
{
	int fd = argc == 2 ? (int)strtol(argv[1], NULL, 10) : -1;

	if (!is_socket(fd)) {
		fprintf(stderr, "fusee: '%s' is started by fusee itself\n", argv[0]);
		return EX_USAGE;
	}
	_exit(run(fd) ? EX_SOFTWARE : 0);
}

int cmd_opener(int argc, char **argv)
{
	return run_on_socket(argc, argv, opener_run);
}

int cmd_fetcher(int argc, char **argv)
{
	return run_on_socket(argc, argv, fetcher_run);
}

int cmd_worker(int argc, char **argv)
{
	int fd;

	if (argc == 2 && !strcmp(argv[1], "--sandbox")) {
		sandbox_print(stdout);
		return 0;
	}
	fd = argc >= 2 ? (int)strtol(argv[1], NULL, 10) : -1;
	if (argc < 3 || !is_socket(fd)) {
		fputs("fusee: 'worker' is started by fusee itself; fusee worker --sandbox lists "
		      "what it may do\n",
		      stderr);
		return EX_USAGE;
	}
	/* _exit: exit handlers of plugins might make system calls that the sandbox forbids. */
	_exit(worker_run(fd, strtoull(argv[2], NULL, 10), argv + 3) ? EX_SOFTWARE : 0);
}
