/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fusee/plugin.h - the C ABI between the core and a plugin. Version 0.x: exact match.
 *
 * A plugin is a shared object that exports one symbol, `fusee_plugin`, and needs no symbol of the
 * core: everything that the core offers comes in the host table handed to init().
 *
 * - ABI: every struct that crosses begins with its size (fusee_plugin: magic and versions) and only
 *   grows at the end; FROZEN ones never grow; arrays are a struct fusee_table.
 * - Threads: an instance is in one callback at a time. Which thread that is stands at each
 * callback. Host calls are for that thread unless marked [any thread].
 * - Ownership: borrow in, copy out. What a callback is handed lives until it returns; what it hands
 *   over is copied before the host call returns. No allocator crosses the line.
 * - Errors: 0 or -errno. Who can say why calls host->fail(instance, -errno, sentence) and returns
 *   its result; the core prefixes where it came from and prints it once. A sentence starts lower
 *   case, quotes the user's words with '', and says what to do where it can.
 *
 * fini is always called, also after a failed init; only options that are refused come before init.
 * Plugins are never unloaded.
 */
#ifndef FUSEE_PLUGIN_H
#define FUSEE_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#include <fusee/profile.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FUSEE_MAGIC 0x65737566u /* "fuse" */
/* 1 only after Python, HotSpot, Lua, a labeler and off-CPU went through it */
#define FUSEE_ABI_MAJOR 0
#define FUSEE_ABI_MINOR 1
#define FUSEE_EXPORT __attribute__((visibility("default")))
#define FUSEE_HAS(p, field) ((p)->size >= offsetof(__typeof__(*(p)), field) + sizeof((p)->field))

struct fusee_instance; /* one configured use of a plugin */
struct fusee_unwind;   /* fusee/unwinder.bpf.h */

enum fusee_level { FUSEE_ERROR = 3, FUSEE_WARNING = 4, FUSEE_INFO = 6, FUSEE_DEBUG = 7 };

/* ---- unwinders ---- */

/* A section of a file, uncompressed. bytes live until inspect() returns; NULL for SHT_NOBITS. */
struct fusee_section {
	uint32_t size, type; /* type: sh_type */
	uint64_t flags, vaddr, offset;
	struct fusee_str bytes;
};

/* One PT_LOAD. FROZEN */
struct fusee_segment {
	uint64_t offset, vaddr, filesz, memsz;
	uint32_t flags, pad; /* PF_X.. */
};

struct fusee_file_info {
	uint32_t size;
	uint16_t machine, type; /* e_machine, e_type */
	uint64_t entry;
	struct fusee_str build_id;   /* raw bytes, may be empty */
	struct fusee_table segments; /* struct fusee_segment, sorted by vaddr */
};

/* All calls: -ENOENT for what the file does not have, -EBADMSG for what it lies about. `file` is
 * the handle that inspect() was given. Foreign bytes: check every offset that you read from them.
 */
struct fusee_unwinder_host {
	uint32_t size, pad;
	int (*file_info)(uint64_t file, struct fusee_file_info *info); /* set info->size first */
	/* Set section->size first. */
	int (*file_section)(uint64_t file, const char *name, struct fusee_section *section);
	/* Through PT_LOAD; all of it or an error. */
	int (*file_read)(uint64_t file, uint64_t vaddr, void *buf, uint32_t len);
	/* .symtab, then .dynsym. */
	int (*file_symbol)(uint64_t file, const char *name, struct fusee_range *at);
	/* This file's table for the step: words of the host's byte order. Once per inspect(). */
	int (*file_slab)(struct fusee_instance *, uint64_t file, const uint32_t *words, uint64_t n);
};

enum fusee_unwinder_flags {
	FUSEE_UNWINDER_NATIVE = 1, /* steps machine frames of any mapping; tried by `order` */
};

struct fusee_unwinder_ops {
	uint32_t size, flags;
	int32_t order;              /* native: lower is asked first (dwarf 10, framepointer 90) */
	uint32_t slab_version;      /* of the table's layout: part of the cache's key */
	const char *frame_type;     /* OTLP's name: "native", "cpython" .. */
	const char *const *reasons; /* texts of u->error, from 1; ends with NULL. Metric labels */
	const void *bpf, *bpf_end;  /* the BPF half, an ELF object */
	/* [sampling thread] the native half; see fusee/unwinder.bpf.h. Returns enum fusee_next */
	int (*native_step)(struct fusee_unwind *u);
	/* [worker process, sandboxed] once per file content: make the table with
	 * host->unwinder->file_slab(). 1 the file has one, 0 nothing for me here, -errno: refused,
	 * with host->fail() */
	int (*inspect)(void *ctx, uint64_t file);
};

/* ---- host: what the core offers to every kind ---- */
struct fusee_host {
	uint32_t size, abi_minor;
	void (*log)(struct fusee_instance *, int level, const char *text); /* [any thread] */
	int (*fail)(struct fusee_instance *, int err,
		    const char *text); /* keeps text, returns err */
	const struct fusee_unwinder_host *unwinder;
};

/* ---- options: the core checks and fills ctx before init ---- */
enum fusee_option_type { FUSEE_BOOL = 1, FUSEE_INT, FUSEE_SIZE, FUSEE_DURATION, FUSEE_STRING };

struct fusee_option {
	const char *name, *def, *doc; /* def NULL: required. doc: one sentence */
	uint32_t type; /* bool: uint8_t, int: int64_t, size: uint64_t bytes, duration: uint64_t ns,
			  string: const char * */
	uint32_t offset;  /* in ctx */
	int64_t min, max; /* both 0: no limits */
};

/* ---- the descriptor ---- */
enum fusee_kind { FUSEE_SINK = 1, FUSEE_DISCOVERY = 2, FUSEE_UNWINDER = 3 };

struct fusee_plugin {
	uint32_t magic;
	uint16_t abi_major, abi_minor;
	uint32_t size, kind;
	const char *name, *version, *doc;
	struct fusee_table options; /* struct fusee_option */
	uint32_t ctx_size, pad;     /* the core allocates ctx, zeroed; 0: none */
	int (*init)(void *ctx, struct fusee_instance *, const struct fusee_host *);
	void (*fini)(void *ctx);
	const void *ops; /* by kind */
};

#ifdef FUSEE_STATIC /* the same source linked into a program or a test */
#define FUSEE_PLUGIN_SYMBOL(n) fusee_plugin_##n
#else
#define FUSEE_PLUGIN_SYMBOL(n) fusee_plugin
#endif

#define FUSEE_PLUGIN(n, k, ...)                                                                  \
	extern FUSEE_EXPORT const struct fusee_plugin FUSEE_PLUGIN_SYMBOL(n);                    \
	const struct fusee_plugin FUSEE_PLUGIN_SYMBOL(n) = {.magic = FUSEE_MAGIC,                \
							    .abi_major = FUSEE_ABI_MAJOR,        \
							    .abi_minor = FUSEE_ABI_MINOR,        \
							    .size = sizeof(struct fusee_plugin), \
							    .kind = (k),                         \
							    .name = #n,                          \
							    __VA_ARGS__}

/* Put the compiled BPF half into the plugin: FUSEE_EMBED(dwarf_bpf, "dwarf.bpf.o"); */
#define FUSEE_EMBED(sym, path)                                                            \
	__asm__(".pushsection .rodata\n.balign 8\n" #sym ":\n.incbin \"" path "\"\n" #sym \
		"_end:\n.byte 0\n.popsection\n");                                         \
	extern const unsigned char sym[], sym##_end[]

#ifdef __cplusplus
}
#endif
#endif
