/* SPDX-License-Identifier: Apache-2.0 */
/* What a file's entry address makes tests/data/worker_plugin.c do in the worker. */
enum worker_plugin_does {
	DO_NOTHING = 0x1000,
	DO_REFUSE,
	DO_ABORT,
	DO_CRASH,
	DO_HANG,
	DO_SLEEP,
	DO_COMPUTE_SLOWLY, /* half a second, in a second and a half */
	DO_TAKE_LONG,
	DO_TAKE_MEMORY,
	DO_OPEN,
	DO_CREATE,
	DO_STAT, /* by path, with AT_EMPTY_PATH as fstat() has */
	DO_SOCKET,
	DO_EXECVE,
	DO_FORK,
	DO_PTRACE,
	DO_KILL,
	DO_TGKILL_OTHER,
	DO_BPF,
	DO_UNLINK,
	DO_MAP_EXEC,
	DO_MAP_SHARED,
	DO_PROTECT_EXEC,
	DO_SIGACTION,
	DO_LACK_MEMORY, /* the first two times */
	DO_RUN_LATE,    /* its table lacks a part */
	DO_OMIT,        /* the second word of its brief table is 1 */
	DO_DIE_OF_REST, /* the same, but it has no other */
};
