/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/internal/check.h"

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

/* ---- kind and name ---- */

#define MAX_SYMBOLS 65536u
#define MAX_RELOCATIONS 65536u

/* A file that is read; e is valid only as far as is_elf() has checked it. */
struct object {
	int fd;
	Elf64_Ehdr e;
};

static bool read_at(const struct object *o, void *to, size_t len, uint64_t at)
{
	return at < INT64_MAX && pread(o->fd, to, len, (off_t)at) == (ssize_t)len;
}

static bool is_elf(struct object *o)
{
	return read_at(o, &o->e, sizeof(o->e), 0) && !memcmp(o->e.e_ident, ELFMAG, SELFMAG) &&
	       o->e.e_ident[EI_CLASS] == ELFCLASS64 && o->e.e_shentsize == sizeof(Elf64_Shdr) &&
	       o->e.e_phentsize == sizeof(Elf64_Phdr);
}

static bool section_at(const struct object *o, uint32_t i, Elf64_Shdr *ret)
{
	return i < o->e.e_shnum && read_at(o, ret, sizeof(*ret), o->e.e_shoff + i * sizeof(*ret));
}

/* The offset in the file of a virtual address. */
static bool to_offset(const struct object *o, uint64_t vaddr, uint64_t *offset)
{
	Elf64_Phdr p;

	for (int i = 0; i < o->e.e_phnum; i++) {
		if (!read_at(o, &p, sizeof(p), o->e.e_phoff + (uint64_t)i * sizeof(p)))
			return false;
		if (p.p_type == PT_LOAD && vaddr >= p.p_vaddr && vaddr - p.p_vaddr < p.p_filesz) {
			*offset = p.p_offset + (vaddr - p.p_vaddr);
			return true;
		}
	}
	return false;
}

static bool is_descriptor(const struct object *o, const Elf64_Shdr *names, const Elf64_Sym *symbol)
{
	char name[sizeof("fusee_plugin")];

	return symbol->st_shndx != SHN_UNDEF && symbol->st_name < names->sh_size &&
	       read_at(o, name, sizeof(name), names->sh_offset + symbol->st_name) &&
	       !memcmp(name, "fusee_plugin", sizeof(name));
}

static bool find_descriptor(const struct object *o, const Elf64_Shdr *table, uint64_t *vaddr)
{
	Elf64_Shdr names;
	Elf64_Sym symbol;

	if (!section_at(o, table->sh_link, &names))
		return false;
	for (uint64_t i = 0; i < table->sh_size / sizeof(symbol) && i < MAX_SYMBOLS; i++) {
		if (!read_at(o, &symbol, sizeof(symbol), table->sh_offset + i * sizeof(symbol)))
			return false;
		if (is_descriptor(o, &names, &symbol)) {
			*vaddr = symbol.st_value;
			return true;
		}
	}
	return false;
}

/* The value of the pointer at vaddr once the file is loaded at 0: the addend of its relocation, or
 * in_place, the bytes in the file, if it has none, as with SHT_RELR. */
static uint64_t pointer_at(const struct object *o, uint64_t vaddr, uint64_t in_place)
{
	Elf64_Shdr section;
	Elf64_Rela r;

	for (uint32_t i = 0; section_at(o, i, &section); i++) {
		uint64_t n = section.sh_type == SHT_RELA ? section.sh_size / sizeof(r) : 0;

		for (uint64_t k = 0; k < n && k < MAX_RELOCATIONS; k++) {
			if (!read_at(o, &r, sizeof(r), section.sh_offset + k * sizeof(r)))
				return 0;
			if (r.r_offset == vaddr)
				return ELF64_R_SYM(r.r_info) ? 0 : (uint64_t)r.r_addend;
		}
	}
	return in_place;
}

static void read_name(const struct object *o, uint64_t vaddr, char name[CHECK_NAME])
{
	uint64_t offset;
	size_t len = 0;

	if (!vaddr || !to_offset(o, vaddr, &offset))
		return;
	while (len < CHECK_NAME - 1 && read_at(o, name + len, 1, offset + len) && name[len])
		len++;
	name[len == CHECK_NAME - 1 ? 0 : len] = '\0';
}

static void read_descriptor(const struct object *o, const Elf64_Shdr *table,
			    struct check_identity *ret)
{
	uint64_t vaddr, offset;
	struct fusee_plugin d;

	if (!find_descriptor(o, table, &vaddr) || !to_offset(o, vaddr, &offset) ||
	    !read_at(o, &d, offsetof(struct fusee_plugin, name) + sizeof(d.name), offset) ||
	    d.magic != FUSEE_MAGIC)
		return;
	/* the fields before `name` are not addresses, so no relocation changes them */
	ret->kind = d.kind;
	if (check_is_known(d.abi_major, d.abi_minor))
		read_name(o,
			  pointer_at(o, vaddr + offsetof(struct fusee_plugin, name),
				     (uint64_t)(uintptr_t)d.name),
			  ret->name);
}

void check_identity(const char *path, struct check_identity *ret)
{
	struct object o = {.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
	Elf64_Shdr table;

	*ret = (struct check_identity){0};
	if (o.fd < 0)
		return;
	if (is_elf(&o))
		for (uint32_t i = 0; section_at(&o, i, &table); i++)
			if (table.sh_type == SHT_DYNSYM)
				read_descriptor(&o, &table, ret);
	close(o.fd);
}
