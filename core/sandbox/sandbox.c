// SPDX-License-Identifier: Apache-2.0
/* The list of system calls, the seccomp filter made of it, and the handler of denied calls. */
#include "sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "sandbox/confine.h"
#include "sandbox/internal/isolate.h"

#if defined(__x86_64__)
#define RESULT(u) ((u)->uc_mcontext.gregs[REG_RAX])
#define ARGUMENT0(u) ((u)->uc_mcontext.gregs[REG_RDI])
#define ARGUMENT1(u) ((u)->uc_mcontext.gregs[REG_RSI])
#define ARGUMENT2(u) ((u)->uc_mcontext.gregs[REG_RDX])
#define ARGUMENT3(u) ((u)->uc_mcontext.gregs[REG_R10])
#elif defined(__aarch64__)
#define RESULT(u) ((u)->uc_mcontext.regs[0])
#define ARGUMENT0(u) ((u)->uc_mcontext.regs[0])
#define ARGUMENT1(u) ((u)->uc_mcontext.regs[1])
#define ARGUMENT2(u) ((u)->uc_mcontext.regs[2])
#define ARGUMENT3(u) ((u)->uc_mcontext.regs[3])
#endif

#define EXIT_DENIED 86

/* ---- the list ---- */

enum check {
	ANY,       /* allowed with any arguments */
	NO_EXEC,   /* allowed if argument 2 is without PROT_EXEC */
	PRIVATE,   /* as NO_EXEC, and argument 3 has MAP_PRIVATE and not MAP_SHARED */
	BY_FD,     /* newfstatat(): see stat_descriptor() */
	HARMLESS,  /* allowed if argument 1 is one of a few fcntl() commands */
	OURSELVES, /* allowed if argument 0 is the worker's pid: abort() */
	BY_PATH,   /* returns EACCES, without effect */
};

static const struct call {
	int number;
	enum check check;
	const char *name;
} calls[] = {
#define CALL(name, check)                 \
	{                                 \
		__NR_##name, check, #name \
	}
	CALL(read, ANY),
	CALL(pread64, ANY),
	CALL(readv, ANY),
	CALL(lseek, ANY),
	CALL(fstat, ANY),
	CALL(newfstatat, BY_FD),
	CALL(close, ANY),
	CALL(dup, ANY),
	CALL(fcntl, HARMLESS),
	CALL(write, ANY),
	CALL(writev, ANY),
	CALL(recvmsg, ANY),
	CALL(sendmsg, ANY),
	CALL(memfd_create, ANY),
	CALL(ftruncate, ANY),
	CALL(mmap, PRIVATE),
	CALL(mprotect, NO_EXEC),
	CALL(munmap, ANY),
	CALL(mremap, ANY),
	CALL(madvise, ANY),
	CALL(brk, ANY),
	CALL(futex, ANY),
	CALL(getrandom, ANY),
	CALL(clock_gettime, ANY),
	CALL(gettimeofday, ANY),
	CALL(getpid, ANY),
	CALL(gettid, ANY),
	CALL(tgkill, OURSELVES),
	CALL(rt_sigprocmask, ANY),
	CALL(rt_sigreturn, ANY),
	CALL(restart_syscall, ANY),
	CALL(sched_yield, ANY),
	CALL(sysinfo, ANY), /* qsort() of glibc reads the size of the memory */
	CALL(exit, ANY),
	CALL(exit_group, ANY),
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	CALL(sigaltstack, ANY),
	CALL(rt_sigaction, ANY),
	CALL(prctl, ANY),
	CALL(getrlimit, ANY),
	CALL(prlimit64, ANY),
#endif
	CALL(openat, BY_PATH),
	CALL(faccessat, BY_PATH),
	CALL(faccessat2, BY_PATH),
	CALL(readlinkat, BY_PATH),
	CALL(statx, BY_PATH),
	CALL(getcwd, BY_PATH),
#ifdef __x86_64__
	CALL(open, BY_PATH),
	CALL(stat, BY_PATH),
	CALL(lstat, BY_PATH),
	CALL(access, BY_PATH),
	CALL(readlink, BY_PATH),
#endif
};

/* Calls that are not allowed: their names for messages. */
static const struct {
	uint32_t number;
	const char *name;
} known[] = {
#define KNOWN(name)                \
	{                          \
		__NR_##name, #name \
	}
	KNOWN(execve),
	KNOWN(execveat),
	KNOWN(clone),
	KNOWN(clone3),
	KNOWN(socket),
	KNOWN(socketpair),
	KNOWN(connect),
	KNOWN(bind),
	KNOWN(listen),
	KNOWN(accept4),
	KNOWN(sendto),
	KNOWN(recvfrom),
	KNOWN(ptrace),
	KNOWN(kill),
	KNOWN(tkill),
	KNOWN(process_vm_readv),
	KNOWN(process_vm_writev),
	KNOWN(pidfd_open),
	KNOWN(pidfd_getfd),
	KNOWN(bpf),
	KNOWN(perf_event_open),
	KNOWN(io_uring_setup),
	KNOWN(userfaultfd),
	KNOWN(mount),
	KNOWN(unshare),
	KNOWN(setns),
	KNOWN(chroot),
	KNOWN(chdir),
	KNOWN(prctl),
	KNOWN(seccomp),
	KNOWN(capset),
	KNOWN(setuid),
	KNOWN(setresuid),
	KNOWN(prlimit64),
	KNOWN(rt_sigaction),
	KNOWN(sigaltstack),
	KNOWN(unlinkat),
	KNOWN(mkdirat),
	KNOWN(renameat2),
	KNOWN(fchmod),
	KNOWN(ioctl),
	KNOWN(pipe2),
	KNOWN(eventfd2),
	KNOWN(epoll_create1),
	KNOWN(wait4),
	KNOWN(nanosleep),
	KNOWN(clock_nanosleep),
	KNOWN(shmget),
	KNOWN(keyctl),
	KNOWN(reboot),
	KNOWN(init_module),
	KNOWN(finit_module),
	KNOWN(kexec_load),
	KNOWN(open_by_handle_at),
	KNOWN(getdents64),
	KNOWN(uname),
	KNOWN(getuid),
	KNOWN(sched_getaffinity),
	KNOWN(getrusage),
	KNOWN(ppoll),
#ifdef __x86_64__
	KNOWN(fork),
	KNOWN(vfork),
	KNOWN(poll),
	KNOWN(pipe),
	KNOWN(unlink),
	KNOWN(mkdir),
	KNOWN(creat),
#endif
};

#define N(array) (sizeof(array) / sizeof(*(array)))

const char *sandbox_call_name(uint32_t number)
{
	for (size_t i = 0; i < N(calls); i++)
		if ((uint32_t)calls[i].number == number)
			return calls[i].name;
	for (size_t i = 0; i < N(known); i++)
		if (known[i].number == number)
			return known[i].name;
	return "";
}

void sandbox_print(FILE *f)
{
	static const char *const how[] = {
		[ANY] = "allowed",
		[NO_EXEC] = "allowed, not PROT_EXEC",
		[PRIVATE] = "allowed, private mappings only, not PROT_EXEC",
		[BY_FD] = "done as fstat() for a descriptor; EACCES for a path",
		[HARMLESS] = "allowed: F_GETFD, F_SETFD, F_GETFL, F_DUPFD_CLOEXEC, F_ADD_SEALS, "
			     "F_GET_SEALS",
		[OURSELVES] = "allowed to itself (abort)",
		[BY_PATH] = "EACCES",
	};

	for (size_t i = 0; i < N(calls); i++)
		fprintf(f, "%-16s %s\n", calls[i].name, how[calls[i].check]);
	fprintf(f, "%-16s %s\n", "anything else", "reported by name, ends the worker");
}

/* ---- calls that the filter traps ---- */

static int denied_sock;
static void (*denied_report)(int sock, uint32_t call);
static volatile uint32_t refused_calls, refused_last;

/* The check of a call; ANY: it is not in the list, or not trapped for its path. */
static enum check trapped_check(uint32_t number)
{
	for (size_t i = 0; i < N(calls); i++)
		if ((uint32_t)calls[i].number == number &&
		    (calls[i].check == BY_PATH || calls[i].check == BY_FD))
			return calls[i].check;
	return ANY;
}

/*
 * fstat() of newer libraries is newfstatat() with AT_EMPTY_PATH and an empty path. That flag does
 * not make the kernel ignore a path that is not empty, and a filter cannot read it, so the call is
 * trapped and an fstat() made in its place.
 */
static long stat_descriptor(const ucontext_t *u)
{
	const char *path = (const char *)(uintptr_t)ARGUMENT1(u);
	int saved = errno;
	long r;

	if (ARGUMENT3(u) != AT_EMPTY_PATH || !path || *path)
		return -EACCES;
	r = syscall(SYS_fstat, (int)ARGUMENT0(u), (void *)(uintptr_t)ARGUMENT2(u));
	r = r ? -errno : 0;
	errno = saved;
	return r;
}

/* SIGSYS can come anywhere: only async-signal-safe calls here. */
static void handle_sigsys(int sig, siginfo_t *info, void *context)
{
	uint32_t number = (uint32_t)info->si_syscall;
	ucontext_t *u = context;

	(void)sig;
	if (info->si_arch == CONFINE_ARCH && trapped_check(number) != ANY) {
		long r = trapped_check(number) == BY_FD ? stat_descriptor(u) : -EACCES;

		if (r == -EACCES) {
			refused_calls++;
			refused_last = number;
		}
		RESULT(u) = r;
		return;
	}
	denied_report(denied_sock, number);
	_exit(EXIT_DENIED);
}

uint32_t sandbox_refused(uint32_t *last)
{
	*last = refused_last;
	return refused_calls;
}

/* ---- the filter ---- */

#define MAX_CODE 512

struct program {
	struct sock_filter code[MAX_CODE];
	unsigned short n;
};

static void emit(struct program *p, uint16_t code, uint8_t yes, uint8_t no, uint32_t k)
{
	p->code[p->n++] = (struct sock_filter){code, yes, no, k};
}

/* Loads the low 32 bits of an argument, which hold every bit that is checked.
 */
static void load(struct program *p, unsigned int argument)
{
	emit(p, BPF_LD | BPF_W | BPF_ABS, 0, 0,
	     (uint32_t)(offsetof(struct seccomp_data, args) + 8 * argument));
}

#define ALLOW() emit(p, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW)
#define DENY() emit(p, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_TRAP)

/* Denies the call unless argument & mask is `value`. */
static void require(struct program *p, unsigned int argument, uint32_t mask, uint32_t value)
{
	load(p, argument);
	emit(p, BPF_ALU | BPF_AND | BPF_K, 0, 0, mask);
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, value);
	DENY();
}

static void check_arguments(struct program *p, enum check check)
{
	static const uint32_t harmless[] = {F_GETFD,         F_SETFD,     F_GETFL,
					    F_DUPFD_CLOEXEC, F_ADD_SEALS, F_GET_SEALS};

	switch (check) {
	case ANY:
		break;
	case PRIVATE:
		require(p, 3, MAP_SHARED | MAP_PRIVATE, MAP_PRIVATE);
		/* fall through */
	case NO_EXEC:
		require(p, 2, PROT_EXEC, 0);
		break;
	case HARMLESS:
		load(p, 1);
		for (size_t i = 0; i < N(harmless); i++)
			emit(p, BPF_JMP | BPF_JEQ | BPF_K, (uint8_t)(N(harmless) - i), 0,
			     harmless[i]);
		DENY();
		break;
	case OURSELVES:
		require(p, 0, UINT32_MAX, (uint32_t)getpid());
		break;
	case BY_FD:
	case BY_PATH:
		DENY();
		return;
	}
	ALLOW();
}

static void build(struct program *p)
{
	emit(p, BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, arch));
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, CONFINE_ARCH);
	emit(p, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS);
	for (size_t i = 0; i < N(calls); i++) {
		unsigned short at;

		/* the check of the call before may have loaded an argument */
		emit(p, BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr));
		at = p->n;
		emit(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, (uint32_t)calls[i].number);
		check_arguments(p, calls[i].check);
		p->code[at].jf = (uint8_t)(p->n - at - 1);
	}
	DENY();
}

static int filter_calls(int sock, void (*denied)(int sock, uint32_t call))
{
	struct sigaction sa = {.sa_sigaction = handle_sigsys, .sa_flags = SA_SIGINFO | SA_NODEFER};
	static struct program p;

	denied_sock = sock;
	denied_report = denied;
	if (sigaction(SIGSYS, &sa, NULL))
		return -errno;
	build(&p);
	return confine_calls(p.code, p.n);
}

/* ---- the rest ---- */

int sandbox_enter(int sock, void (*denied)(int sock, uint32_t call), uint64_t memory_limit,
		  const char **what)
{
	int err;

	*what = "become a user of its own";
	err = isolate_enter();
	if (err)
		return err;
	*what = "drop its capabilities";
	err = confine_rights(0);
	if (err)
		return err;
	isolate_landlock();
	*what = "limit its memory";
	err = confine_limits(memory_limit, memory_limit); /* memfds do not count for RLIMIT_DATA */
	if (err)
		return err;
	*what = "filter its system calls (seccomp)";
	return filter_calls(sock, denied);
}
