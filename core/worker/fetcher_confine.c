// SPDX-License-Identifier: Apache-2.0
/* What the fetcher may do: talk to servers, and write below one folder. */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "worker/confine.h"
#include "worker/fetcher_protocol.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#endif

/* Of kernels that are newer than the headers of the build. */
#ifndef __NR_landlock_create_ruleset
#define __NR_landlock_create_ruleset 444
#define __NR_landlock_add_rule 445
#define __NR_landlock_restrict_self 446
#endif
#ifndef __NR_process_madvise
#define __NR_process_madvise 440
#endif

#define N(array) (sizeof(array) / sizeof(*(array)))

/* ---- files ---- */

enum {
	FS_WRITE = 2,
	FS_READ = 4,
	FS_LIST = 8,
	FS_REMOVE = 16 | 32, /* folders, files */
	FS_MAKE = 128 | 256, /* the same */
	FS_TRUNCATE = 16384,
};

struct ruleset {
	uint64_t fs, net, scoped;
};
struct beneath {
	uint64_t allowed;
	int32_t fd;
} __attribute__((packed));

/* What is not there needs no rule. */
static void allow(int rules, const char *path, uint64_t rights)
{
	int fd = open(path, O_PATH | O_CLOEXEC);
	struct beneath b = {rights, fd};

	if (fd < 0)
		return;
	syscall(__NR_landlock_add_rule, rules, 1, &b, 0);
	close(fd);
}

/* What libraries, the resolver and TLS read; none of it is secret. */
static void allow_system(int rules)
{
	static const char *const folders[] = {"/usr",
					      "/lib",
					      "/lib64",
					      "/etc/ssl/certs",
					      "/etc/pki/tls/certs",
					      "/etc/pki/ca-trust",
					      "/etc/ca-certificates",
					      "/etc/crypto-policies",
					      "/etc/gnutls",
					      "/nix/store"};
	static const char *const files[] = {"/etc/resolv.conf",
					    "/etc/hosts",
					    "/etc/host.conf",
					    "/etc/nsswitch.conf",
					    "/etc/gai.conf",
					    "/etc/services",
					    "/etc/protocols",
					    "/etc/ld.so.cache",
					    "/etc/localtime",
					    "/etc/ssl/openssl.cnf",
					    "/dev/null",
					    "/dev/urandom",
					    "/proc/sys/net/ipv6/conf/all/disable_ipv6"};

	for (size_t i = 0; i < N(folders); i++)
		allow(rules, folders[i], FS_READ | FS_LIST);
	for (size_t i = 0; i < N(files); i++)
		allow(rules, files[i], FS_READ);
}

static int restrict_files(const char *folder)
{
	/* Rights on files by version; the first has 13. */
	static const uint64_t fs[] = {0, 0x1fff, 0x3fff, 0x7fff, 0x7fff, 0xffff};
	long version = syscall(__NR_landlock_create_ruleset, NULL, 0, 1), rules;
	struct ruleset r = {.scoped = 3}; /* abstract sockets, signals of others */
	int err = 0;

	if (version <= 0)
		return -ENOSYS;
	r.fs = fs[version < 5 ? version : 5];
	rules = syscall(__NR_landlock_create_ruleset, &r, version < 6 ? 8 : sizeof(r), 0);
	if (rules < 0)
		return -errno;
	allow_system((int)rules);
	allow((int)rules, folder,
	      (FS_WRITE | FS_READ | FS_LIST | FS_REMOVE | FS_MAKE | FS_TRUNCATE) & r.fs);
	if (syscall(__NR_landlock_restrict_self, (int)rules, 0))
		err = -errno;
	close((int)rules);
	return err;
}

/* ---- system calls ---- */

/* Those that reach other processes, programs or the machine. Libraries of the resolver and of TLS
 * use many calls, which differ by version, so the filter lists what is refused. */
static const uint32_t refused[] = {
	__NR_ptrace,
	__NR_process_vm_readv,
	__NR_process_vm_writev,
	__NR_process_madvise,
	__NR_pidfd_open,
	__NR_pidfd_getfd,
	__NR_pidfd_send_signal,
	__NR_kill,
	__NR_tkill,
	__NR_tgkill,
	__NR_rt_sigqueueinfo,
	__NR_rt_tgsigqueueinfo,
	__NR_prlimit64,
	__NR_execve,
	__NR_execveat,
	__NR_perf_event_open,
	__NR_bpf,
	__NR_userfaultfd,
	__NR_io_uring_setup,
	__NR_open_by_handle_at,
	__NR_mount,
	__NR_umount2,
	__NR_pivot_root,
	__NR_chroot,
	__NR_unshare,
	__NR_setns,
	__NR_open_tree,
	__NR_move_mount,
	__NR_fsopen,
	__NR_keyctl,
	__NR_add_key,
	__NR_request_key,
	__NR_init_module,
	__NR_finit_module,
	__NR_delete_module,
	__NR_kexec_load,
	__NR_reboot,
	__NR_swapon,
	__NR_setrlimit,
	__NR_personality,
	__NR_mknodat,
	__NR_symlinkat,
	__NR_linkat,
	/* Landlock knows nothing of modes, owners and attributes */
	__NR_fchmod,
	__NR_fchmodat,
	452, /* fchmodat2 */
	__NR_fchown,
	__NR_fchownat,
	__NR_setxattr,
	__NR_lsetxattr,
	__NR_fsetxattr,
	__NR_removexattr,
	__NR_lremovexattr,
	__NR_fremovexattr,
#ifdef __x86_64__
	__NR_chmod,
	__NR_chown,
	__NR_lchown,
	__NR_fork,
	__NR_vfork,
#endif
};

#define CLONE3 435u /* glibc goes on with clone() */
#define CLONE_THREAD_BIT 0x10000u
#define X32_BIT 0x40000000u /* of other numbers under the same architecture */

#define REFUSE                                                   \
	{                                                        \
		BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM \
	}
#define ALLOW                                            \
	{                                                \
		BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW \
	}
#define LOAD(field)                                                                  \
	{                                                                            \
		BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, field) \
	}
#define IF_EQUAL(value, yes, no)                          \
	{                                                 \
		BPF_JMP | BPF_JEQ | BPF_K, yes, no, value \
	}

/* Which calls, before the list: no process of its own, which would outlive it, and no socket of
 * this machine's, whose server may do what uid 0 requests. */
static const struct sock_filter before[] = {
	LOAD(arch),
	IF_EQUAL(ARCH, 1, 0),
	{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS},
	LOAD(nr),
	{BPF_JMP | BPF_JGE | BPF_K, 0, 1, X32_BIT},
	REFUSE,
	IF_EQUAL(CLONE3, 0, 1),
	{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | ENOSYS},
	IF_EQUAL(__NR_clone, 0, 4),
	LOAD(args), /* the flags */
	{BPF_JMP | BPF_JSET | BPF_K, 1, 0, CLONE_THREAD_BIT},
	REFUSE,
	ALLOW,
	IF_EQUAL(__NR_socket, 0, 6),
	LOAD(args), /* the family */
	IF_EQUAL(AF_INET, 3, 0),
	IF_EQUAL(AF_INET6, 2, 0),
	IF_EQUAL(AF_NETLINK, 1, 0),
	REFUSE,
	ALLOW,
};

static int filter_calls(void)
{
	struct sock_filter code[N(before) + N(refused) + 2];
	struct sock_fprog f = {.filter = code, .len = N(code)};
	size_t n = N(before);

	memcpy(code, before, sizeof(before));
	for (size_t i = 0; i < N(refused); i++)
		code[n++] = (struct sock_filter)IF_EQUAL(refused[i], (uint8_t)(N(refused) - i), 0);
	code[n++] = (struct sock_filter)ALLOW;
	code[n] = (struct sock_filter)REFUSE;
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &f)
		       ? -errno ?: -EIO
		       : 0;
}

/* ---- the process ---- */

/* A terminal could be read, and be written to. */
static int leave_terminal(void)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	int err = null < 0 || dup2(null, STDERR_FILENO) < 0 ? -errno : 0;

	if (null >= 0)
		close(null);
	return err;
}

int fetcher_confine(const struct fetcher_request_message *q)
{
	int err;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0))
		return -errno;
	err = leave_terminal();
	if (!err)
		err = confine_capabilities(0);
	if (err)
		return err;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		return -errno;
	umask(077);
	signal(SIGXFSZ, SIG_IGN); /* a limit of file size is an error of write() */
	err = confine_limits(q->max_bytes, 256u << 20);
	if (!err)
		err = restrict_files(q->folder);
	if (err == -ENOSYS && geteuid()) /* a user's process can do what the user can */
		err = 0;
	return err ? err : filter_calls();
}
