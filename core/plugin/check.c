/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/check.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fusee/plugin.h>

static bool is_privileged(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{0}};

	if (!geteuid() || getauxval(AT_SECURE))
		return true;
	return !syscall(SYS_capget, &head, data) && (data[0].permitted || data[1].permitted);
}

static int refuse(char **text, const char *path, const char *why)
{
	if (asprintf(text, "plugin '%s' %s", path, why) < 0)
		*text = NULL;
	return -EPERM;
}

/* Whether the owner is neither root, nor the user, nor the owner of the running executable, who
 * could change fusee itself (make, then sudo build/fusee). */
static bool is_foreign(const struct stat *st)
{
	struct stat exe;

	if (!st->st_uid || st->st_uid == geteuid())
		return false;
	return stat("/proc/self/exe", &exe) || exe.st_uid != st->st_uid;
}

/* A user who may write the folder can replace the file; in a sticky folder only its owner can. */
static int check_owner(const char *path, const struct stat *st, char **text)
{
	char *folder;
	struct stat dir;
	int r = 0;

	if (!is_privileged())
		return 0;
	if (is_foreign(st) || st->st_mode & (S_IWGRP | S_IWOTH))
		return refuse(text, path,
			      "can be written by others: make it root's or your own, mode 644");
	folder = strdup(path);
	if (!folder)
		return -ENOMEM;
	if (stat(dirname(folder), &dir))
		r = refuse(text, path, "is in a folder that cannot be read");
	else if (is_foreign(&dir) ||
		 (dir.st_mode & (S_IWGRP | S_IWOTH) && !(dir.st_mode & S_ISVTX)))
		r = refuse(text, path,
			   "is in a folder that others can write: make it root's or your own, "
			   "mode 755");
	free(folder);
	return r;
}

/* Whether every segment and the section headers end inside the file. */
static bool is_complete(int fd, uint64_t size)
{
	Elf64_Ehdr e;
	Elf64_Phdr p;
	uint64_t end;

	if (pread(fd, &e, sizeof(e), 0) != sizeof(e) || (e.e_phnum && e.e_phentsize != sizeof(p)))
		return false;
	if (__builtin_add_overflow(e.e_shoff, (uint64_t)e.e_shnum * e.e_shentsize, &end) ||
	    end > size)
		return false;
	for (int i = 0; i < e.e_phnum; i++) {
		if (pread(fd, &p, sizeof(p), (off_t)(e.e_phoff + (uint64_t)i * sizeof(p))) !=
		    sizeof(p))
			return false;
		if (p.p_type == PT_LOAD &&
		    (__builtin_add_overflow(p.p_offset, p.p_filesz, &end) || end > size))
			return false;
	}
	return true;
}

int check_file(const char *path, char **text)
{
	unsigned char ident[EI_NIDENT] = {0};
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), r = 0;
	struct stat st;

	*text = NULL;
	if (fd < 0 || fstat(fd, &st)) {
		r = -errno;
		if (asprintf(text, "cannot open plugin '%s': %s", path, strerror(-r)) < 0)
			*text = NULL;
		goto out;
	}
	if (!S_ISREG(st.st_mode))
		r = refuse(text, path, "is not a regular file");
	else if (pread(fd, ident, sizeof(ident), 0) != sizeof(ident) ||
		 memcmp(ident, ELFMAG, SELFMAG) || ident[EI_CLASS] != ELFCLASS64)
		r = refuse(text, path, "is not a shared object for this machine");
	else if (!is_complete(fd, (uint64_t)st.st_size))
		r = refuse(text, path, "is truncated: install it again");
	else
		r = check_owner(path, &st, text);
out:
	if (fd >= 0)
		close(fd);
	return r;
}

/* ---- the kind ---- */

#define MAX_SYMBOLS 65536u
#define MAX_NAME 32u

static bool read_at(int fd, void *to, size_t len, uint64_t at)
{
	return at < INT64_MAX && pread(fd, to, len, (off_t)at) == (ssize_t)len;
}

/* The offset in the file of a virtual address. */
static bool to_offset(int fd, const Elf64_Ehdr *e, uint64_t vaddr, uint64_t *offset)
{
	Elf64_Phdr p;

	for (int i = 0; i < e->e_phnum; i++) {
		if (!read_at(fd, &p, sizeof(p), e->e_phoff + (uint64_t)i * sizeof(p)))
			return false;
		if (p.p_type == PT_LOAD && vaddr >= p.p_vaddr && vaddr - p.p_vaddr < p.p_filesz) {
			*offset = p.p_offset + (vaddr - p.p_vaddr);
			return true;
		}
	}
	return false;
}

static bool is_descriptor(int fd, const Elf64_Shdr *names, const Elf64_Sym *symbol)
{
	char name[MAX_NAME] = "";

	return symbol->st_name < names->sh_size &&
	       read_at(fd, name, sizeof("fusee_plugin"), names->sh_offset + symbol->st_name) &&
	       !memcmp(name, "fusee_plugin", sizeof("fusee_plugin"));
}

static bool find_descriptor(int fd, const Elf64_Ehdr *e, const Elf64_Shdr *table, uint64_t *vaddr)
{
	Elf64_Shdr names;
	Elf64_Sym symbol;

	if (table->sh_link >= e->e_shnum ||
	    !read_at(fd, &names, sizeof(names), e->e_shoff + table->sh_link * sizeof(names)))
		return false;
	for (uint64_t i = 0; i < table->sh_size / sizeof(symbol) && i < MAX_SYMBOLS; i++) {
		if (!read_at(fd, &symbol, sizeof(symbol), table->sh_offset + i * sizeof(symbol)))
			return false;
		if (symbol.st_shndx != SHN_UNDEF && is_descriptor(fd, &names, &symbol)) {
			*vaddr = symbol.st_value;
			return true;
		}
	}
	return false;
}

static uint32_t kind_of(int fd)
{
	uint64_t vaddr, offset;
	struct fusee_plugin d;
	Elf64_Shdr table;
	Elf64_Ehdr e;

	if (!read_at(fd, &e, sizeof(e), 0) || memcmp(e.e_ident, ELFMAG, SELFMAG) ||
	    e.e_ident[EI_CLASS] != ELFCLASS64 || e.e_shentsize != sizeof(table) ||
	    e.e_phentsize != sizeof(Elf64_Phdr))
		return 0;
	for (uint64_t i = 0; i < e.e_shnum; i++) {
		if (!read_at(fd, &table, sizeof(table), e.e_shoff + i * sizeof(table)))
			return 0;
		if (table.sh_type != SHT_DYNSYM)
			continue;
		if (!find_descriptor(fd, &e, &table, &vaddr) ||
		    !to_offset(fd, &e, vaddr, &offset) ||
		    !read_at(fd, &d, offsetof(struct fusee_plugin, name), offset))
			return 0;
		/* the fields before `name` are not addresses, so no relocation changes them */
		return d.magic == FUSEE_MAGIC ? d.kind : 0;
	}
	return 0;
}

uint32_t check_kind(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	uint32_t kind = fd < 0 ? 0 : kind_of(fd);

	if (fd >= 0)
		close(fd);
	return kind;
}
