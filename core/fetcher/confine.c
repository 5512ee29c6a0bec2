// SPDX-License-Identifier: Apache-2.0
/* Confines the fetcher to the network and to writes below one folder, so that a server that has
 * taken it over can do no more, not even with root's files. */
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sandbox/confine.h"
#include "fetcher/internal/protocol.h"

/* For headers that are older than the kernel. */
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

/* Allows reads of what libraries, the resolver and TLS need, which is not secret. */
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
		confine_allow(rules, folders[i], FS_READ | FS_LIST);
	for (size_t i = 0; i < N(files); i++)
		confine_allow(rules, files[i], FS_READ);
}

static int restrict_files(const char *folder)
{
	uint64_t rights;
	int ruleset = confine_ruleset(0, &rights);

	if (ruleset < 0)
		return ruleset;
	allow_system(ruleset);
	confine_allow(ruleset, folder,
		      (FS_WRITE | FS_READ | FS_LIST | FS_REMOVE | FS_MAKE | FS_TRUNCATE) & rights);
	return confine_files(ruleset);
}

/* ---- system calls ---- */

/* Calls that reach other processes, programs or the machine, and changes of files that Landlock
 * does not mediate, or not in its first versions. Libraries of the resolver and of TLS use many
 * calls, which differ by version, so the filter lists the refused calls; calls newer than LAST_CALL
 * fail with ENOSYS. */
static const uint32_t refused[] = {
	__NR_ptrace,
	__NR_process_vm_readv,
	__NR_process_vm_writev,
	__NR_process_madvise,
	448, /* process_mrelease */
	__NR_kcmp,
	__NR_move_pages,
	__NR_migrate_pages,
	__NR_pidfd_open,
	__NR_pidfd_getfd,
	__NR_pidfd_send_signal,
	__NR_kill,
	__NR_tkill,
	__NR_tgkill,
	__NR_rt_sigqueueinfo,
	__NR_rt_tgsigqueueinfo,
	__NR_prlimit64,
	__NR_setpriority,
	__NR_ioprio_set,
	__NR_sched_setparam,
	__NR_sched_setscheduler,
	__NR_sched_setattr,
	__NR_sched_setaffinity,
	__NR_execve,
	__NR_execveat,
	__NR_perf_event_open,
	__NR_bpf,
	__NR_userfaultfd,
	__NR_io_uring_setup,
	__NR_io_uring_enter,
	__NR_io_uring_register,
	/* memory and messages of the user's other processes */
	__NR_shmget,
	__NR_shmat,
	__NR_shmctl,
	__NR_semget,
	__NR_semctl,
	__NR_semop,
	__NR_semtimedop,
	__NR_msgget,
	__NR_msgctl,
	__NR_msgsnd,
	__NR_msgrcv,
	__NR_mq_open,
	__NR_mq_unlink,
	/* the machine */
	__NR_open_by_handle_at,
	__NR_fanotify_init,
	__NR_mount,
	__NR_umount2,
	__NR_pivot_root,
	__NR_chroot,
	__NR_unshare,
	__NR_setns,
	__NR_open_tree,
	__NR_move_mount,
	__NR_fsopen,
	__NR_fsconfig,
	__NR_fsmount,
	__NR_fspick,
	442, /* mount_setattr */
	__NR_quotactl,
	443, /* quotactl_fd */
	__NR_keyctl,
	__NR_add_key,
	__NR_request_key,
	__NR_init_module,
	__NR_finit_module,
	__NR_delete_module,
	__NR_kexec_load,
	__NR_kexec_file_load,
	__NR_reboot,
	__NR_swapon,
	__NR_swapoff,
	__NR_acct,
	__NR_syslog,
	__NR_sethostname,
	__NR_setdomainname,
	__NR_settimeofday,
	__NR_clock_settime,
	__NR_setrlimit,
	__NR_personality,
	__NR_mknodat,
	__NR_symlinkat,
	__NR_linkat,
	/* Landlock does not mediate modes, owners, times and attributes, and sizes only in newer
	 * versions */
	__NR_truncate,
	__NR_utimensat,
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
	__NR_link,
	__NR_symlink,
	__NR_mknod,
	__NR_chmod,
	__NR_chown,
	__NR_lchown,
	__NR_utime,
	__NR_utimes,
	__NR_futimesat,
	__NR_uselib,
	__NR_iopl,
	__NR_ioperm,
	__NR_fork,
	__NR_vfork,
#endif
};

/* mseal; setxattrat, removexattrat, open_tree_attr, file_setattr .. follow */
#define LAST_CALL 462u
#define CLONE3 435u  /* glibc falls back to clone() */
#define OPENAT2 437u /* its flags are in memory, which a filter cannot read */
#define CLONE_THREAD_BIT 0x10000u
#define X32_BIT 0x40000000u /* x32 calls: other numbers under the same architecture */

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

#define NOT_THERE                                                 \
	{                                                         \
		BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | ENOSYS \
	}

/* Landlock before its third version allows O_TRUNC on a file that is opened for reading, or with
 * access mode 3, which is neither for reading nor for writing. */
#define OPENS(call, flags)                                                                  \
	IF_EQUAL(call, 0, 6), LOAD(flags), {BPF_ALU | BPF_AND | BPF_K, 0, 0, O_TRUNC | 3u}, \
		IF_EQUAL(O_TRUNC, 2, 0), IF_EQUAL(O_TRUNC | 3u, 1, 0), ALLOW, REFUSE

/* Allowed ioctl() requests are those of sockets: others change attributes of files that are open
 * for reading. */
#define SOCKETS_FIRST 0x8903u /* the two requests before it make the kernel send signals */
#define SOCKETS_LAST 0x89ffu

/* Checks before the list: no new processes, which could outlive the fetcher, and no local sockets,
 * whose server may obey a client of uid 0. */
static const struct sock_filter before[] = {
	LOAD(arch),
	IF_EQUAL(CONFINE_ARCH, 1, 0),
	{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS},
	LOAD(nr),
	{BPF_JMP | BPF_JGE | BPF_K, 0, 1, X32_BIT},
	REFUSE,
	{BPF_JMP | BPF_JGT | BPF_K, 2, 0, LAST_CALL},
	IF_EQUAL(CLONE3, 1, 0),
	IF_EQUAL(OPENAT2, 0, 1),
	NOT_THERE,
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
	OPENS(__NR_openat, args[2]),
#ifdef __x86_64__
	OPENS(__NR_open, args[1]),
#endif
	IF_EQUAL(__NR_ioctl, 0, 8),
	LOAD(args[1]), /* the request */
	IF_EQUAL(FIONBIO, 4, 0),
	IF_EQUAL(FIONREAD, 3, 0),
	IF_EQUAL(TCGETS, 2, 0),
	{BPF_JMP | BPF_JGE | BPF_K, 0, 2, SOCKETS_FIRST},
	{BPF_JMP | BPF_JGT | BPF_K, 1, 0, SOCKETS_LAST},
	ALLOW,
	REFUSE,
	IF_EQUAL(__NR_fcntl, 0, 7), /* would signal other processes, or make them wait by leases */
	LOAD(args[1]),
	IF_EQUAL(F_SETOWN, 4, 0),
	IF_EQUAL(F_SETOWN_EX, 3, 0),
	IF_EQUAL(F_SETSIG, 2, 0),
	IF_EQUAL(F_SETLEASE, 1, 0),
	ALLOW,
	REFUSE,
};

static int filter_calls(void)
{
	struct sock_filter code[N(before) + N(refused) + 2];
	size_t n = N(before);

	_Static_assert(N(refused) < 256, "jumps of a filter are shorter");
	memcpy(code, before, sizeof(before));
	for (size_t i = 0; i < N(refused); i++)
		code[n++] = (struct sock_filter)IF_EQUAL(refused[i], (uint8_t)(N(refused) - i), 0);
	code[n++] = (struct sock_filter)ALLOW;
	code[n] = (struct sock_filter)REFUSE;
	return confine_calls(code, N(code));
}

/* ---- the process ---- */

int fetcher_confine(const struct fetcher_request_message *q)
{
	int err = confine_stderr();

	if (!err)
		err = confine_rights(0);
	if (err)
		return err;
	umask(077);
	signal(SIGXFSZ, SIG_IGN); /* makes write() fail at the limit of file size */
	err = confine_limits(q->max_bytes, 256u << 20);
	if (!err)
		err = restrict_files(q->folder);
	if (err == -ENOSYS && geteuid()) /* then the user's own rights are the limit */
		err = 0;
	return err ? err : filter_calls();
}
