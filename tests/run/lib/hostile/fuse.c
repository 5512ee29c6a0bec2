/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuse DIR CALL USER [ARGV]: a user with files that keep other processes waiting. Mounts a file
 * system on DIR that holds one file, "code", an ELF program; maps it, and runs its code for ever in
 * a child. CALL of any other process is never answered: lookup, getattr, open, read or flush;
 * "none": all are. "memory": as none, but the child also maps the file's last page, which is never
 * read for any process, over ARGV's place in its own arguments: who reads /proc/PID/cmdline waits.
 * "stack": the same, but code of this program runs: nothing has read the file before. "exec": the
 * child executes the file, and waits in the kernel for its first page. "lock": a thread of the
 * child waits for the last page, and another, mapping the file anew, for that page, with the lock
 * of the process's memory.
 *
 * Run by root, it does what fusermount does for users where /etc/fuse.conf has user_allow_other,
 * and becomes the user with that number. Prints the child's pid when the child runs. Ends when its
 * stdin does, and unmounts.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096u
#define SIZE (3 * PAGE)
#define FILE_NODE 2u

static char content[SIZE];
static const char *mode;
static uid_t user;
static volatile pid_t own; /* the child, whose calls are answered */
static int fuse;

/* An ELF program of one page of headers and one of code: jmp to itself. */
static void make_content(void)
{
	Elf64_Ehdr e = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			.e_type = ET_DYN,
			.e_machine = EM_X86_64,
			.e_version = 1,
			.e_phoff = sizeof(e),
			.e_ehsize = sizeof(e),
			.e_phentsize = sizeof(Elf64_Phdr),
			.e_phnum = 1};
	Elf64_Phdr p = {.p_type = PT_LOAD,
			.p_flags = PF_R | PF_X,
			.p_offset = PAGE,
			.p_vaddr = PAGE,
			.p_filesz = PAGE,
			.p_memsz = PAGE,
			.p_align = PAGE};

	memcpy(content, &e, sizeof(e));
	memcpy(content + sizeof(e), &p, sizeof(p));
	memcpy(content + PAGE, "\xeb\xfe", 2);
}

static void answer(uint64_t unique, int err, const void *data, size_t len)
{
	static char out[sizeof(struct fuse_out_header) + SIZE + 256];
	struct fuse_out_header h = {
		.len = (uint32_t)(sizeof(h) + (err ? 0 : len)), .error = -err, .unique = unique};

	memcpy(out, &h, sizeof(h));
	memcpy(out + sizeof(h), data, err ? 0 : len);
	if (write(fuse, out, h.len) < 0 && errno != ENOENT)
		perror("fuse: write");
}

static struct fuse_attr attributes(uint64_t node)
{
	return (struct fuse_attr){.ino = node,
				  .size = node == FILE_NODE ? SIZE : 0,
				  .mode = node == FILE_NODE ? S_IFREG | 0755 : S_IFDIR | 0755,
				  .nlink = 1,
				  .uid = user,
				  .gid = user,
				  .blksize = PAGE};
}

static int is_mode(const char *name)
{
	return !strcmp(mode, name);
}

/* Is this a call that is never answered? */
static int hangs(const struct fuse_in_header *in, const char *call)
{
	return is_mode(call) && (pid_t)in->pid != own;
}

static void init(const struct fuse_in_header *in, const void *arg)
{
	const struct fuse_init_in *i = arg;
	struct fuse_init_out o = {.major = FUSE_KERNEL_VERSION,
				  .minor = i->minor < 31 ? i->minor : 31,
				  .max_readahead = 0,
				  .max_write = PAGE,
				  .max_background = 12,
				  .congestion_threshold = 9,
				  .time_gran = 1};

	answer(in->unique, 0, &o, sizeof(o));
}

static void read_page(const struct fuse_in_header *in, const void *arg)
{
	const struct fuse_read_in *r = arg;
	size_t n = r->offset >= SIZE ? 0 : SIZE - r->offset < r->size ? SIZE - r->offset : r->size;

	/* readahead has the pid 0 */
	if (hangs(in, "read") && r->offset != PAGE)
		return;
	if ((is_mode("memory") || is_mode("stack") || is_mode("lock")) &&
	    r->offset + r->size > 2 * PAGE)
		return;
	if (is_mode("exec"))
		return;
	answer(in->unique, 0, content + r->offset, n);
}

static uint32_t nopened;

static void serve_one(const struct fuse_in_header *in, const void *arg)
{
	/* for "open", what is known of the file is kept; otherwise each call comes here */
	uint64_t valid = strcmp(mode, "open") ? 0 : 3600;
	struct fuse_entry_out entry = {.nodeid = FILE_NODE,
				       .entry_valid = valid,
				       .attr_valid = valid,
				       .attr = attributes(FILE_NODE)};
	struct fuse_attr_out attr = {.attr_valid = valid, .attr = attributes(in->nodeid)};
	struct fuse_open_out opened = {.fh = 1, .open_flags = FOPEN_KEEP_CACHE};

	switch (in->opcode) {
	case FUSE_INIT:
		init(in, arg);
		break;
	case FUSE_LOOKUP:
		if (!hangs(in, "lookup"))
			answer(in->unique, strcmp(arg, "code") ? ENOENT : 0, &entry, sizeof(entry));
		break;
	case FUSE_GETATTR:
		if (!hangs(in, "getattr"))
			answer(in->unique, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
		/* whose pages of others are dropped when it is mapped: the lock is held for that */
		if (is_mode("lock") && nopened++)
			opened.open_flags |= FOPEN_DIRECT_IO;
		if (!hangs(in, "open"))
			answer(in->unique, 0, &opened, sizeof(opened));
		break;
	case FUSE_READ:
		read_page(in, arg);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	case FUSE_FLUSH:
		if (hangs(in, "flush"))
			break;
		/* fall through */
	case FUSE_RELEASE:
		answer(in->unique, 0, NULL, 0);
		break;
	default:
		answer(in->unique, ENOSYS, NULL, 0);
	}
}

static _Noreturn void spin(void)
{
	for (;;)
		__asm__ volatile("");
}

static const char *path_of_code;
static void *replaced;

static void *touch(void *page)
{
	return (void *)(uintptr_t) * (volatile char *)page;
}

static void *map_anew(void *arg)
{
	int fd = open(path_of_code, O_RDONLY | O_CLOEXEC);

	(void)arg;
	return mmap(replaced, PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0);
}

/* A moment after this the lock of this process's memory is held for ever. */
static void take_lock(const char *path, int fd)
{
	pthread_t waits, maps;
	void *last = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 2 * PAGE);

	path_of_code = path;
	/* of Linux 6.17 and later, readers of /proc/PID/maps need the lock of what is replaced */
	replaced = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (last == MAP_FAILED || replaced == MAP_FAILED ||
	    pthread_create(&waits, NULL, touch, last))
		_exit(1);
	usleep(100000);
	if (pthread_create(&maps, NULL, map_anew, NULL))
		_exit(1);
}

static void child(const char *dir, char **argv, int ready)
{
	char path[512];
	char *code, *last;
	int fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(fuse); /* with the server ends the file system: who waits gets an error */
	snprintf(path, sizeof(path), "%s/code", dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	code = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, PAGE);
	if (fd < 0 || code == MAP_FAILED) {
		perror(path);
		_exit(1);
	}
	if (is_mode("memory") || is_mode("stack")) {
		last = (char *)((uintptr_t)argv[4] & ~(uintptr_t)(PAGE - 1));
		/* argv[4] is long: the page is full of it */
		if (mmap(last + PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 2 * PAGE) ==
		    MAP_FAILED)
			_exit(1);
		/* a new process, so that its arguments are read now */
		if (fork())
			pause();
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	}
	if (write(ready, "x", 1) != 1)
		_exit(1);
	if (is_mode("lock")) {
		touch(code); /* it runs while the lock is held */
		take_lock(path, fd);
	}
	if (is_mode("stack"))
		spin();
	if (is_mode("exec"))
		execl(path, path, NULL);
	((void (*)(void))code)();
}

static void serve(const char *dir, char **argv)
{
	static char request[65536 + PAGE];
	struct pollfd p[3] = {{.fd = fuse, .events = POLLIN}, {.fd = 0, .events = POLLIN}};
	int ready[2];
	char c;

	if (pipe(ready))
		exit(1);
	own = fork();
	if (!own)
		child(dir, argv, ready[1]);
	p[2] = (struct pollfd){.fd = ready[0], .events = POLLIN};
	while (poll(p, 3, -1) > 0 && !p[1].revents) {
		if (p[2].revents && read(ready[0], &c, 1) == 1) {
			printf("%d\n", own);
			fflush(stdout);
			p[2].fd = -1;
		}
		if (p[0].revents && read(fuse, request, sizeof(request)) > 0)
			serve_one((void *)request, request + sizeof(struct fuse_in_header));
		else if (p[0].revents & POLLERR)
			break;
	}
	kill(own, SIGKILL);
}

int main(int argc, char **argv)
{
	char options[256];
	pid_t server;

	if (argc < 4)
		return 64;
	mode = argv[2];
	user = (uid_t)strtoul(argv[3], NULL, 10);
	make_content();
	fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=%u,group_id=%u,allow_other,default_permissions",
		 fuse, user, user);
	if (fuse < 0 || mount("hostile", argv[1], "fuse.hostile", MS_NOSUID | MS_NODEV, options)) {
		perror("fuse: mount");
		return 77;
	}
	server = fork();
	if (!server) {
		if (setresgid(user, user, user) || setresuid(user, user, user))
			_exit(1);
		serve(argv[1], argv);
		_exit(0);
	}
	close(fuse);
	while (waitpid(server, NULL, 0) < 0 && errno == EINTR)
		;
	return umount2(argv[1], MNT_DETACH) != 0;
}
