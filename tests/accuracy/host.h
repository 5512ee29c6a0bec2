/* SPDX-License-Identifier: Apache-2.0 */
/* An unwinder's host over the worker's ELF reader: for programs that call a plugin's inspect()
 * alone. */
#ifndef ACCURACY_HOST_H
#define ACCURACY_HOST_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "process/elf.h"

struct host_file {
	struct elf *elf;
	int fd;
	uint32_t *words; /* the table, owned */
	uint64_t n;
	const char *hide[4]; /* sections that are said not to be there */
};

static struct host_file *host_of(uint64_t file)
{
	return (struct host_file *)(uintptr_t)file;
}

static int host_info(uint64_t file, struct fusee_file_info *info)
{
	return elf_info(host_of(file)->elf, info);
}

static int host_section(uint64_t file, const char *name, struct fusee_section *section)
{
	for (size_t i = 0; i < 4; i++)
		if (host_of(file)->hide[i] && !strcmp(host_of(file)->hide[i], name))
			return -ENOENT;
	return elf_section(host_of(file)->elf, name, section);
}

static int host_read(uint64_t file, uint64_t vaddr, void *buf, uint32_t len)
{
	return elf_read(host_of(file)->elf, vaddr, buf, len);
}

static int host_symbol(uint64_t file, const char *name, struct fusee_range *at)
{
	return elf_symbol(host_of(file)->elf, name, at);
}

static int host_slab(struct fusee_instance *instance, uint64_t file, const uint32_t *words,
		     uint64_t n)
{
	struct host_file *f = host_of(file);

	(void)instance;
	free(f->words);
	f->words = malloc(n * 4);
	if (!f->words)
		return -ENOMEM;
	memcpy(f->words, words, n * 4);
	f->n = n;
	return 0;
}

static void host_log(struct fusee_instance *instance, int level, const char *text)
{
	(void)instance;
	(void)level;
	(void)text;
}

static int host_fail(struct fusee_instance *instance, int err, const char *text)
{
	fprintf(stderr, "# %s\n", text);
	(void)instance;
	return err;
}

static const struct fusee_unwinder_host host_unwinder = {
	.size = sizeof(host_unwinder),
	.file_info = host_info,
	.file_section = host_section,
	.file_read = host_read,
	.file_symbol = host_symbol,
	.file_slab = host_slab,
};

static const struct fusee_host host = {
	.size = sizeof(host),
	.abi_minor = FUSEE_ABI_MINOR,
	.log = host_log,
	.fail = host_fail,
	.unwinder = &host_unwinder,
};

/* What inspect() of the plugin returns. */
static int host_inspect(const struct fusee_plugin *plugin, struct host_file *file)
{
	const struct fusee_unwinder_ops *ops = plugin->ops;
	void *ctx = calloc(1, plugin->ctx_size ? plugin->ctx_size : 1);
	int err = plugin->init ? plugin->init(ctx, NULL, &host) : 0;

	if (!err)
		err = ops->inspect(ctx, (uint64_t)(uintptr_t)file);
	if (plugin->fini)
		plugin->fini(ctx);
	free(ctx);
	return err;
}
#endif
