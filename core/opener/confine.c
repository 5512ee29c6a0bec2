// SPDX-License-Identifier: Apache-2.0
/* Restricts the opener to what it does: read any file and any process, and answer. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/nsfs.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "sandbox/confine.h"
#include "opener/internal/protocol.h"

#define N(array) (sizeof(array) / sizeof(*(array)))
#define BIT(capability) (1ull << (capability))
#define READING (BIT(CAP_SYS_PTRACE) | BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_CHECKPOINT_RESTORE))
#define WRITES (O_ACCMODE | O_CREAT | O_TRUNC)

/* Several rows may be about one call. Allowed if argument & mask is `value`; mask 0: with any
 * arguments. The flags of openat2() are in memory, which a filter cannot read; the opener has no
 * rights to write other users' files. */
static const struct {
	uint32_t number, argument, mask, value;
} calls[] = {
	{__NR_read, 0, 0, 0},
	{__NR_pread64, 0, 0, 0},
	{__NR_openat, 2, WRITES, O_RDONLY},
	{__NR_openat2, 0, 0, 0},
	{__NR_close, 0, 0, 0},
	{__NR_fstat, 0, 0, 0},
	{__NR_newfstatat, 0, 0, 0},
	{__NR_statx, 0, 0, 0},
	{__NR_fstatfs, 0, 0, 0},
	{__NR_readlinkat, 0, 0, 0},
	{__NR_lseek, 0, 0, 0},
	{__NR_ioctl, 1, UINT32_MAX, (uint32_t)FS_IOC_GETVERSION},
	{__NR_ioctl, 1, UINT32_MAX, (uint32_t)NS_GET_USERNS},
	{__NR_memfd_create, 0, 0, 0},
	{__NR_pwrite64, 0, 0, 0},
	{__NR_ftruncate, 0, 0, 0},
	{__NR_process_vm_readv, 0, 0, 0},
	{__NR_fcntl, 1, UINT32_MAX, F_ADD_SEALS},
	{__NR_recvmsg, 0, 0, 0},
	{__NR_sendmsg, 0, 0, 0},
	{__NR_mmap, 2, PROT_EXEC, 0},
	{__NR_mprotect, 2, PROT_EXEC, 0},
	{__NR_munmap, 0, 0, 0},
	{__NR_mremap, 0, 0, 0},
	{__NR_madvise, 0, 0, 0},
	{__NR_brk, 0, 0, 0},
	{__NR_futex, 0, 0, 0},
	{__NR_getpid, 0, 0, 0},
	{__NR_gettid, 0, 0, 0},
	{__NR_getrandom, 0, 0, 0},
	{__NR_clock_gettime, 0, 0, 0},
	{__NR_rt_sigreturn, 0, 0, 0},
	{__NR_rt_sigprocmask, 0, 0, 0},
	{__NR_restart_syscall, 0, 0, 0},
	{__NR_exit, 0, 0, 0},
	{__NR_exit_group, 0, 0, 0},
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	{__NR_sigaltstack, 0, 0, 0},
	{__NR_rt_sigaction, 0, 0, 0},
	{__NR_sched_yield, 0, 0, 0},
	{__NR_write, 0, 0, 0},
#endif
};

static int filter_calls(void)
{
	struct sock_filter code[6 * N(calls) + 8];
	size_t n = 0;

#define EMIT(...) (code[n++] = (struct sock_filter)__VA_ARGS__)
	EMIT({BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, arch)});
	EMIT({BPF_JMP | BPF_JEQ | BPF_K, 1, 0, CONFINE_ARCH});
	EMIT({BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS});
	for (size_t i = 0; i < N(calls); i++) {
		uint32_t at = (uint32_t)offsetof(struct seccomp_data, args) + 8 * calls[i].argument;

		EMIT({BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr)});
		EMIT({BPF_JMP | BPF_JEQ | BPF_K, 0, calls[i].mask ? 4 : 1, calls[i].number});
		if (calls[i].mask) {
			EMIT({BPF_LD | BPF_W | BPF_ABS, 0, 0, at});
			EMIT({BPF_ALU | BPF_AND | BPF_K, 0, 0, calls[i].mask});
			EMIT({BPF_JMP | BPF_JEQ | BPF_K, 0, 1, calls[i].value});
		}
		EMIT({BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW});
	}
	EMIT({BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM});
#undef EMIT
	return confine_calls(code, n);
}

int opener_confine(void)
{
	int err = confine_stderr();

	if (!err)
		err = confine_rights(READING);
	if (!err)
		err = confine_limits(OPENER_MOST_COPIED, 64u << 20);
	return err ? err : filter_calls();
}
