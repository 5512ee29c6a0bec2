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
#define FUSEE_ABI_MINOR 4
#define FUSEE_EXPORT __attribute__((visibility("default")))
#define FUSEE_HAS(p, field) ((p)->size >= offsetof(__typeof__(*(p)), field) + sizeof((p)->field))

struct fusee_instance;  /* one configured use of a plugin */
struct fusee_sink_out;  /* one delivery in progress */
struct fusee_frame_out; /* receives the source frames of one raw frame */
struct fusee_unwind;    /* fusee/unwinder.bpf.h */

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

/* An executable mapping of a process. */
struct fusee_mapping_view {
	uint32_t size, pad;
	uint64_t lo, hi; /* [lo, hi) */
};

struct fusee_process_info {
	uint32_t size;
	uint32_t pid, ns_pid; /* ours; and in the innermost pid namespace that it is in */
	uint32_t uid, fs_uid; /* effective, and that of the files it makes */
	uint32_t pad;
	uint64_t start_ns; /* when the pid was made, CLOCK_REALTIME; exec doesn't change it */
};

/* What process_open() opens. */
enum fusee_open_flags {
	FUSEE_OPEN_DIRECTORY =
		1, /* an O_PATH descriptor, for openat() also when the process is gone */
};

/*
 * Memory, or code of a file, that this unwinder knows something about. A claim says who steps and
 * who names, separately: a perf map names frames that the framepointer unwinder stepped.
 */
enum fusee_claim_flags {
	FUSEE_CLAIM_STEP = 1, /* my step is asked first, with u->claim_lo and claim_arg */
	FUSEE_CLAIM_NAME = 2, /* my symbolize() names its frames */
};

struct fusee_claim {
	uint32_t size, flags;
	struct fusee_range range;
	uint64_t arg; /* u->claim_arg */
};

/* A frame of claimed memory, as it was sampled; or one that a language unwinder's step pushed. */
struct fusee_raw_frame {
	uint32_t size;
	uint32_t generation; /* of the process's code, when it was sampled */
	uint64_t process;
	uint64_t addr; /* of a caller: inside its call instruction; 0: a pushed frame */
	uint64_t v[2]; /* of a pushed frame: what fusee_push() was given */
};

/* What a step emitted while its frame was alive. Foreign bytes. */
struct fusee_emission {
	uint32_t size, kind;
	uint64_t key, time_ns; /* CLOCK_MONOTONIC */
	struct fusee_str bytes;
};

/* Texts may be empty and hold anything; they are cleaned when they are copied. */
struct fusee_source_frame {
	uint32_t size, flags; /* flags: 0 */
	struct fusee_str function, system_name, file;
	uint32_t line, column, start_line, pad;
};

/*
 * file_*: in inspect() only. -ENOENT for what the file does not have, -EBADMSG for what it lies
 * about. `file` is the handle that inspect() was given. Foreign bytes: check every offset that you
 * read from them.
 *
 * process_*, frame: on the sampling thread only. `process` is the handle of one life of a pid (exec
 * begins a new one), good from the first callback that was given it until its detach() returned.
 * -ESRCH: gone, or another program by now.
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
	/* The function that holds vaddr, by call frame information: also of stripped files.
	 * -ENOENT: none is known to */
	int (*file_function)(uint64_t file, uint64_t vaddr, struct fusee_range *at);
	/* This file's table for the step: words of the host's byte order. Once per inspect(). */
	int (*file_slab)(struct fusee_instance *, uint64_t file, const uint32_t *words, uint64_t n);
	/* Code that my step is asked about, FUSEE_CLAIM_STEP: a range of vaddrs that overlaps no
	 * other claim of this file; arg: 31 bits. 0; -EEXIST: it overlaps one; -ENOSPC: more than
	 * 16; -EINVAL: its range is empty, its flags or its arg are others, as the log says once */
	int (*file_claim)(struct fusee_instance *, uint64_t file, const struct fusee_claim *);
	int (*process_info)(uint64_t process, struct fusee_process_info *); /* set size first */
	/* Opens path for reading in the process's own root and mount namespace: no component may be
	 * a link or "..", what it names must be a regular file (or, by flags, a directory); nothing
	 * else is opened. A descriptor that is the plugin's, or -errno */
	int (*process_open)(uint64_t process, const char *path, uint32_t flags);
	int (*process_read)(uint64_t process, uint64_t addr, void *buf,
			    uint32_t len); /* all or -errno */
	/* Covers this unwinder's claims that it overlaps; of several unwinders' the first made
	 * counts. 0, -ENOMEM, -ENOSPC: too many */
	int (*process_claim)(struct fusee_instance *, uint64_t process, const struct fusee_claim *);
	int (*process_unclaim)(struct fusee_instance *, uint64_t process, struct fusee_range);
	/* Code was replaced by other code: frames sampled from now on carry a new generation, which
	 * is returned. The first one is 1 */
	uint32_t (*process_changed)(uint64_t process);
	/* From symbolize(): once for each source frame, innermost first. 0 or -errno */
	int (*frame)(struct fusee_frame_out *, const struct fusee_source_frame *);
};

enum fusee_unwinder_flags {
	FUSEE_UNWINDER_NATIVE = 1, /* steps machine frames of any mapping; tried by `order`. Without
				    * it: a language unwinder, which steps what it claimed */
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
	 * host->unwinder->file_slab(), claim code with file_claim(). 1 the file has one, 0 nothing
	 * for me here, -errno: refused, with host->fail() */
	int (*inspect)(void *ctx, uint64_t file);

	/* The rest [sampling thread]: short reads of files, no waiting. A process is known to the
	 * plugin from its first mapped() or record() on. */
	/* A sample fell into executable memory without a file that nobody claimed: claim it, or
	 * not; asked again a second later at the earliest. 0 or -errno */
	int (*mapped)(void *ctx, uint64_t process, const struct fusee_mapping_view *);
	/* Before frames are named, and while claimed memory is sampled about once a second: look
	 * what is new. Not once the pid runs another program */
	int (*refresh)(void *ctx, uint64_t process);
	/* Language unwinders: bytes that the step emitted in this process, each before the first
	 * sample with a frame that they name. They may come again. 0 or -errno: lost */
	int (*record)(void *ctx, uint64_t process, const struct fusee_emission *);
	/* Names a frame with host->unwinder->frame(). How many source frames, 0: not known; or
	 * -errno */
	int (*symbolize)(void *ctx, const struct fusee_raw_frame *, struct fusee_frame_out *);
	/* No frame of it will come any more. */
	void (*detach)(void *ctx, uint64_t process);
};

/* ---- sinks: an instance has its own thread, window and bounded queue ---- */

enum fusee_format {
	FUSEE_PPROF_GZ = 1, /* profile.proto, gzipped: what pprof tools take */
	FUSEE_PPROF = 2,
	FUSEE_FOLDED = 3, /* "root;caller;leaf weight" lines, text */
};

/* One profile on its way out. The same profile->id comes again, attempt + 1, after -EAGAIN. */
struct fusee_delivery {
	uint32_t size, attempt; /* attempt: from 0 */
	const struct fusee_profile *profile;
	struct fusee_sink_out *out;
};

/* For consume() only, with the delivery's `out`. */
struct fusee_sink_host {
	uint32_t size, pad;
	/* *bytes live until consume() returns; the delivery's own profile is encoded only once,
	 * however often it is tried. 0 or -ENOMEM, -EINVAL (no such format) */
	int (*encode)(struct fusee_sink_out *, const struct fusee_profile *, uint32_t format,
		      struct fusee_str *bytes);
	/* Parts of a profile: at most max_samples samples each, and about max_bytes of FUSEE_PPROF
	 * (0: no limit), each with an id of its own that is the same at each attempt. Stops at the
	 * first each() that returns not 0 and returns that. */
	int (*split)(struct fusee_sink_out *, const struct fusee_profile *, uint64_t max_samples,
		     uint64_t max_bytes, int (*each)(void *arg, const struct fusee_profile *part),
		     void *arg);
	/* With -EAGAIN: not before ns have passed. Without it the host backs off, 1 s to 5 min. */
	void (*retry_after)(struct fusee_sink_out *, uint64_t ns);
};

struct fusee_sink_ops {
	uint32_t size, flags; /* flags: 0 */
	/* [the instance's thread; may block] 0: taken. -EAGAIN: keep it and try again, with the
	 * queue behind it waiting. Anything else: dropped and counted, with host->fail()'s text */
	int (*consume)(void *ctx, const struct fusee_delivery *);
	/* [the instance's thread; may block] write out what was held back: at a flush and at the
	 * end. CLOCK_MONOTONIC deadline. NULL: nothing is ever held back */
	int (*flush)(void *ctx, uint64_t deadline_ns);
	/* [any thread] the end is near: a blocked consume() or flush() returns -ECANCELED soon, and
	 * so does each later one. NULL: they never block for long */
	void (*cancel)(void *ctx);
};

/* ---- discovery: says which targets there are, and their labels ---- */

enum fusee_match {
	FUSEE_MATCH_PID = 1,    /* one process */
	FUSEE_MATCH_CGROUP = 2, /* the processes of a control group and of those below it */
	FUSEE_MATCH_LABEL = 3,  /* joins labels onto whatever carries match_label */
};

/* Where several say something of one label: by process before by cgroup, before by a parent cgroup;
 * joined ones come last. */
struct fusee_target {
	uint32_t size, match;
	struct fusee_str key; /* this instance's own stable name for it */
	uint32_t pid, pad;
	uint64_t pid_start_ticks;       /* field 22 of /proc/PID/stat; 0: whoever has the pid now */
	struct fusee_str cgroup;        /* path from its hierarchy's root: "/a/b" */
	struct fusee_label match_label; /* "container_id" = .. */
	struct fusee_table labels;      /* struct fusee_label, text ones */
};

enum fusee_process_event_kind {
	FUSEE_PROCESS_RUNNING = 1, /* was there when we began */
	FUSEE_PROCESS_FORK = 2,    /* has its parent's program */
	FUSEE_PROCESS_EXEC = 3,    /* runs another program now */
	FUSEE_PROCESS_EXIT = 4, /* may come after its pid was given to another process: see EXEC */
	FUSEE_PROCESS_SYNC = 5, /* all RUNNING ones have been told; pid 0 */
};

struct fusee_process_event {
	uint32_t size, kind, pid, parent; /* parent: of FORK */
};

struct fusee_discovery_host {
	uint32_t size, pad;
	int (*begin)(struct fusee_instance *); /* what is not put again before commit is gone */
	int (*put)(struct fusee_instance *, const struct fusee_target *); /* new, or changed */
	int (*del)(struct fusee_instance *, struct fusee_str key);        /* -ENOENT: not there */
	int (*commit)(struct fusee_instance *); /* the first one says: in sync */
	/* ops->ready(fd, events) when epoll says so; events 0: no more. The fd stays the plugin's.
	 */
	int (*watch_fd)(struct fusee_instance *, int fd, uint32_t events);
	int (*timer)(struct fusee_instance *, uint64_t period_ns); /* ops->tick(); 0: no more */
	/* [any thread] ops->ready(-1, 0) soon, on the control thread */
	int (*wake)(struct fusee_instance *);
};

enum fusee_discovery_flags {
	FUSEE_DISCOVERY_PROCESSES = 1, /* wants ops->process() */
};

/* All on the control thread: never block, 50 ms at most. The host's calls but wake are for within
 * them. Outside of begin .. commit put and del take effect at once. A callback that fails is logged
 * once and tried again at the next occasion.
 */
struct fusee_discovery_ops {
	uint32_t size, flags;
	int (*start)(void *ctx); /* once, after init */
	int (*ready)(void *ctx, int fd, uint32_t events);
	int (*tick)(void *ctx);
	/* -ENOMEM: told again a second later, as EXEC, or EXIT of one that is gone meanwhile */
	int (*process)(void *ctx, const struct fusee_process_event *);
};

/* ---- host: what the core offers to every kind ---- */
struct fusee_host {
	uint32_t size, abi_minor;
	void (*log)(struct fusee_instance *, int level, const char *text); /* [any thread] */
	int (*fail)(struct fusee_instance *, int err,
		    const char *text); /* keeps text, returns err */
	/* [any thread] adds to the counter fusee_plugin_<metric>_total{instance="sink.http"}; text
	 * labels. metric: snake_case */
	void (*count)(struct fusee_instance *, const char *metric, const struct fusee_label *labels,
		      uint32_t nlabels, uint64_t add);
	/* A file with a token or password: without the last newline, terminated; read anew each
	 * time, so that it can be changed. Length, or -errno, -EFBIG */
	int (*read_secret)(struct fusee_instance *, const char *path, char *buf, uint32_t cap);
	const struct fusee_unwinder_host *unwinder;
	const struct fusee_sink_host *sink;
	const struct fusee_discovery_host *discovery;
};

/* ---- options: the core checks and fills ctx before init ---- */
enum fusee_option_type {
	FUSEE_BOOL = 1, /* uint8_t */
	FUSEE_INT,      /* int64_t */
	FUSEE_SIZE,     /* uint64_t bytes: "2GiB" */
	FUSEE_DURATION, /* uint64_t ns: "10s" */
	FUSEE_STRING,   /* const char * */
	FUSEE_ENUM,     /* int64_t: index into `choices` */
	FUSEE_PERCENT,  /* int64_t, in 1/10,000 of a percent: "1.5%" is 15,000 */
	FUSEE_LIST,     /* struct fusee_table of struct fusee_str, each terminated too */
	FUSEE_MAP,      /* struct fusee_table of struct fusee_label: key and str, terminated too */
	FUSEE_SECRET,   /* const char *, never shown or logged */
};

struct fusee_option {
	/* def NULL: required; LIST and MAP: "" is the empty one, else "a,b" and "k=v,k=v".
	 * doc: one sentence */
	const char *name, *def, *doc;
	uint32_t type;              /* enum fusee_option_type */
	uint32_t offset;            /* in ctx */
	int64_t min, max;           /* both 0: no limits */
	const char *const *choices; /* FUSEE_ENUM; ends with NULL */
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
