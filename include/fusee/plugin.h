/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fusee/plugin.h - the C ABI between the core and a plugin. A plugin loads into each fusee with the
 * same major version and the same or a later minor version. docs/abi.md has all that is promised.
 *
 * A plugin is a shared object that exports one symbol, `fusee_plugin`. It uses no symbol of the
 * core: all calls into the core go through the host table that init() receives.
 *
 * - ABI: every struct that is passed begins with its size (struct fusee_plugin: with magic and
 *   versions) and grows only at its end. Structs marked FROZEN never grow. Arrays are passed as
 *   struct fusee_table.
 * - Threads: an instance is in one callback at a time. The comment at each callback names its
 *   thread in []. A host call may be made from within callbacks only, unless its comment says
 *   [any thread].
 * - Ownership: a callback may use its arguments until it returns. The core copies the arguments of
 *   a host call before that call returns. Neither side frees memory of the other.
 * - Errors: functions return 0 or -errno unless their comment says otherwise. Where the plugin
 *   knows the cause, it calls host->fail(instance, -errno, sentence) and returns its result; the
 *   core adds the script's file and line, and prints the sentence once. A sentence begins in lower
 *   case, quotes the user's words in '' and says what to do where that is known.
 *
 * The core calls fini() after each init(), also after an init() that failed. It checks the options
 * before init(). Plugins are never unloaded.
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
#define FUSEE_ABI_MAJOR 1
#define FUSEE_ABI_MINOR 0
/* Plugins of 0.6 and 0.7 load too: 1.0 has the same structs. */
#define FUSEE_ABI_BEFORE_FIRST 6
#define FUSEE_ABI_BEFORE_LAST 7
#define FUSEE_EXPORT __attribute__((visibility("default")))
/* Does the struct at p, as its writer knew it, have this field? */
#define FUSEE_HAS(p, field) ((p)->size >= offsetof(__typeof__(*(p)), field) + sizeof((p)->field))

struct fusee_instance;  /* the use of a plugin by one line of a script */
struct fusee_sink_out;  /* a delivery in progress */
struct fusee_frame_out; /* receives the source frames of a raw frame */
struct fusee_unwind;    /* fusee/unwinder.bpf.h */

enum fusee_level { FUSEE_ERROR = 3, FUSEE_WARNING = 4, FUSEE_INFO = 6, FUSEE_DEBUG = 7 };

/* ---- unwinders ---- */

/* A section of an ELF file, uncompressed. The bytes are valid until inspect() returns; a section of
 * type SHT_NOBITS has none (bytes.p is NULL). */
struct fusee_section {
	uint32_t size, type; /* type: sh_type */
	uint64_t flags, vaddr, offset;
	struct fusee_str bytes;
};

/* A PT_LOAD program header. FROZEN */
struct fusee_segment {
	uint64_t offset, vaddr, filesz, memsz;
	uint32_t flags, pad; /* flags: PF_X and others */
};

struct fusee_file_info {
	uint32_t size;
	uint16_t machine, type; /* e_machine, e_type */
	uint64_t entry;
	struct fusee_str build_id;   /* binary, may be empty */
	struct fusee_table segments; /* struct fusee_segment, sorted by vaddr */
	/* PT_TLS, for thread-local variables; tls_memsz 0: there are none. See <fusee/tls.h>. */
	uint64_t tls_vaddr, tls_memsz, tls_align;
	uint64_t flags; /* enum fusee_file_flags; 0 from older hosts */
};

enum fusee_file_flags {
	/* Samples wait for this table. What takes long may be omitted, if the step stops in that
	 * code with FUSEE_INEXPRESSIBLE: then inspect() returns 2. It is called again without the
	 * flag once a sample was taken there. */
	FUSEE_FILE_BRIEF = 1,
};

enum fusee_view_flags {
	/* The mapping is of a file for which this unwinder has made a table or claimed code.
	 * Without the flag it is memory without a file. */
	FUSEE_VIEW_LIBRARY = 1,
};

/* An executable mapping of a process. */
struct fusee_mapping_view {
	uint32_t size, flags; /* enum fusee_view_flags */
	uint64_t lo, hi;      /* addresses [lo, hi) */
	uint64_t bias;        /* of a library: address of its vaddr 0 */
	/* 0.6: of a library: the words of the table that inspect() has made of it. Older hosts: see
	 * FUSEE_HAS. */
	struct fusee_table table;
};

struct fusee_process_info {
	uint32_t size;
	uint32_t pid,
		ns_pid; /* in the core's pid namespace; in the process's innermost namespace */
	uint32_t uid, fs_uid; /* effective user; owner of the files that the process creates */
	uint32_t pad;
	uint64_t start_ns; /* CLOCK_REALTIME of the fork; exec does not change it */
};

enum fusee_open_flags {
	/* process_open() opens a directory. The descriptor is O_PATH, and openat() works on it also
	 * after the process has ended. */
	FUSEE_OPEN_DIRECTORY = 1,
};

/*
 * A range of addresses, in a process or in a file, whose frames an unwinder handles. Stepping and
 * symbolizing are claimed separately: the perfmap unwinder symbolizes frames that the framepointer
 * unwinder has stepped.
 */
enum fusee_claim_flags {
	FUSEE_CLAIM_STEP =
		1, /* this unwinder's step is called first, with u->claim_lo, claim_arg */
	FUSEE_CLAIM_NAME = 2, /* this unwinder's symbolize() is called for the frames */
	/* Of a file: all its code is the interpreter's. Reports omit its frames in stacks that have
	 * frames of the language. Without the flag they omit the frames in the claim only. */
	FUSEE_CLAIM_INTERPRETER = 4,
	/* With FUSEE_CLAIM_STEP: the step finds callee-saved registers and the CFA of the claimed
	 * frames, see fusee_register() of <fusee/unwinder.bpf.h>. In processes with such a claim
	 * each step of a native unwinder takes longer. */
	FUSEE_CLAIM_REGISTERS = 8,
	/* 0.6: of memory, with FUSEE_CLAIM_STEP: the step reads the process's memory, and passes
	 * over a stack copy. There native unwinders step, by tables of the code's own bytes. */
	FUSEE_CLAIM_LIVE = 16,
	/* Of a file, with FUSEE_CLAIM_STEP: the step pushes by u->claim_arg alone, reads nothing
	 * and returns FUSEE_NATIVE_TOO, as for a function that says what a thread does. It is
	 * called over stack copies too, where nothing can be read. */
	FUSEE_CLAIM_READS_NOTHING = 32,
};

struct fusee_claim {
	uint32_t size, flags;
	struct fusee_range range;
	uint64_t arg; /* the step finds it in u->claim_arg */
};

/* A frame to symbolize: an address in claimed memory, or a frame that a step has pushed. */
struct fusee_raw_frame {
	uint32_t size;
	uint32_t generation; /* of the process's code at the sample: see process_changed() */
	uint64_t process;    /* handle */
	uint64_t addr; /* of a caller: an address inside its call instruction; 0: a pushed frame */
	uint64_t v[4]; /* the arguments of fusee_push() or fusee_push4(), for a pushed frame */
	uint32_t flags, pad; /* enum fusee_frame_flags of fusee_push4() */
};

/* The bytes of one fusee_emit() of a step. They come from the target and can be anything. */
struct fusee_emission {
	uint32_t size, kind;   /* kind: the step's argument */
	uint64_t key, time_ns; /* key: the step's argument; time: CLOCK_MONOTONIC */
	struct fusee_str bytes;
};

/* A frame with its names. Texts may be empty. The core replaces bytes that are not printable UTF-8
 * when it copies them. Lines and columns count from 1; 0 is unknown. */
struct fusee_source_frame {
	uint32_t size, flags; /* enum fusee_frame_flags, added to those of the raw frame */
	struct fusee_str function, system_name, file;
	uint32_t line, column, start_line, pad;
};

/*
 * Host calls of unwinders. Calls that a process cannot make are NULL: the worker's host has only
 * file_*, the host outside of the worker only process_* and frame().
 *
 * file_*: in inspect() only. `file` is the handle that inspect() received. They return -ENOENT if
 * the file does not have the object, and -EBADMSG if its headers contradict each other. The bytes
 * of a file come from the target: check every offset that is read from them.
 *
 * process_* and frame(): on the sampling thread only. `process` is the handle of one process: an
 * exec begins a new process. The handle is valid from the first callback that receives it until
 * detach() for it returns. The calls return -ESRCH after the process has ended or run exec.
 */
struct fusee_unwinder_host {
	uint32_t size, pad;
	/* Fills *info. The caller sets info->size. */
	int (*file_info)(uint64_t file, struct fusee_file_info *info);
	/* Fills *section with the section of this name. The caller sets section->size. */
	int (*file_section)(uint64_t file, const char *name, struct fusee_section *section);
	/* Copies len bytes at vaddr of a PT_LOAD segment: all of them, or none and -errno. */
	int (*file_read)(uint64_t file, uint64_t vaddr, void *buf, uint32_t len);
	/* Finds a symbol in .symtab, then in .dynsym: its vaddrs, or of a thread-local variable
	 * its offset in PT_TLS. */
	int (*file_symbol)(uint64_t file, const char *name, struct fusee_range *at);
	/* Finds the function that contains vaddr by call frame information, which stripped files
	 * have too. -ENOENT: no description covers vaddr. */
	int (*file_function)(uint64_t file, uint64_t vaddr, struct fusee_range *at);
	/* Sets the table of this file that the step reads: n words in the host's byte order. At
	 * most once in each inspect(). */
	int (*file_slab)(struct fusee_instance *, uint64_t file, const uint32_t *words, uint64_t n);
	/* Claims code of this file for the step. The flags are FUSEE_CLAIM_STEP, with
	 * FUSEE_CLAIM_INTERPRETER, FUSEE_CLAIM_REGISTERS and FUSEE_CLAIM_READS_NOTHING or without;
	 * the range is of vaddrs.
	 * -EEXIST: the range overlaps another claim of this unwinder in the file; -ENOSPC: it has
	 * 256 there already; -EINVAL: the range is empty, or the flags are not allowed, which the
	 * log says once. */
	int (*file_claim)(struct fusee_instance *, uint64_t file, const struct fusee_claim *);
	/* Fills *info. The caller sets info->size. */
	int (*process_info)(uint64_t process, struct fusee_process_info *info);
	/* Opens a file for reading, in the process's root directory and mount namespace. No
	 * component of the absolute path may be a link or "..". The file must be regular, or with
	 * FUSEE_OPEN_DIRECTORY a directory; nothing else is ever opened. Returns a descriptor,
	 * which the plugin closes, or -errno. */
	int (*process_open)(uint64_t process, const char *path, uint32_t flags);
	/* Copies len bytes of the process's memory: all of them, or none and -errno. */
	int (*process_read)(uint64_t process, uint64_t addr, void *buf, uint32_t len);
	/* Claims memory of the process. Earlier claims of this instance lose what they share with
	 * it. Where claims of several unwinders overlap, the oldest counts. -ENOMEM; -ENOSPC: the
	 * process has too many claims. */
	int (*process_claim)(struct fusee_instance *, uint64_t process, const struct fusee_claim *);
	/* Takes the range from this instance's claims. */
	int (*process_unclaim)(struct fusee_instance *, uint64_t process, struct fusee_range);
	/* Reports that code was replaced by other code. Returns the new generation, which frames
	 * that are sampled from now on carry. A process begins with generation 1. */
	uint32_t (*process_changed)(uint64_t process);
	/* Sets the words that the step reads of this process with fusee_process_word(), replacing
	 * earlier words: facts known only at run time, such as the place of code. -EFBIG: more than
	 * 65,536. */
	int (*process_slab)(struct fusee_instance *, uint64_t process, const uint32_t *words,
			    uint64_t n);
	/* Adds a source frame in symbolize(), innermost first. 0 or -errno. */
	int (*frame)(struct fusee_frame_out *, const struct fusee_source_frame *);
	/* 0.6: Opens the file that the process maps executable under this name, the last part of
	 * its path. Returns a descriptor, which the plugin closes, of a file that may grow, become
	 * shorter or be removed. -ENOENT: no such file is mapped; -EREMOTE: its file system can
	 * keep readers waiting; or another -errno. Older hosts: see FUSEE_HAS. */
	int (*process_mapped)(uint64_t process, const char *name);
};

enum fusee_unwinder_flags {
	/* A native unwinder: steps machine frames of any mapping, in turn by `order`. Without the
	 * flag it is a language unwinder, which steps only the code that it has claimed. */
	FUSEE_UNWINDER_NATIVE = 1,
	/* 0.6: its step reads tables with fusee_table32() and fusee_table_words() only, so the
	 * kernel need not hold all of a table. For native unwinders. */
	FUSEE_UNWINDER_PAGED = 2,
	/* 0.6: a language unwinder whose processes take longer to begin than its program takes to
	 * load: that is loaded once inspect() has made a table of a file that they map, or code is
	 * claimed for its step. Without it: when a command may start such a process. */
	FUSEE_UNWINDER_LATE = 4,
};

enum fusee_runtime_flags {
	/* If its functions have no names, samples have frames of the interpreter only, and no code
	 * made at run time. */
	FUSEE_RUNTIME_INTERPRETS = 1,
};

/* A language's run time whose functions the unwinder symbolizes. If they have no names, a recording
 * ends with a hint made of these fields. */
struct fusee_runtime {
	uint32_t size, flags;
	const char *name; /* "Node.js" */
	/* Beginnings of the base names of its programs and libraries, then NULL. One with a '/' is
	 * a path of such a library, from the folder of programs that load it ("../lib/libx.so"): it
	 * is read before a command runs that is, or names, a program there. */
	const char *const *files;
	/* A variable of the environment, with its value as a shell needs it, that makes the run
	 * time name its functions. NULL: the unwinder reads them from its memory. */
	const char *environment;
	/* A command that makes a running process do so: this text, the pid, then command_end. NULL:
	 * there is none. */
	const char *command, *command_end;
	uint32_t major, minor; /* the first version that can; 0: all that are in use */
};

enum fusee_forget { FUSEE_FORGET_BEGIN = 1, FUSEE_FORGET_UNUSED };

struct fusee_unwinder_ops {
	uint32_t size, flags;       /* enum fusee_unwinder_flags */
	int32_t order;              /* native: the lowest steps first (dwarf 10, framepointer 90) */
	uint32_t slab_version;      /* of the table's layout: a part of the key of the disk cache */
	const char *frame_type;     /* as OTLP names it: "native", "cpython" */
	const char *const *reasons; /* texts of u->error from 1 on, then NULL; metric labels */
	const void *bpf, *bpf_end;  /* the step for the kernel, an ELF object: FUSEE_EMBED() */
	/* [sampling thread, worker] The step compiled natively: see <fusee/unwinder.bpf.h>. Returns
	 * enum fusee_next. */
	int (*native_step)(struct fusee_unwind *u);
	/* [worker process, sandboxed] Called once for each file content. Makes the table with
	 * file_slab() and claims code with file_claim(). 1: the file has a table or claims, with a
	 * remark for people if host->fail() was called; 2: but there was no time for all of it, so
	 * it is not kept on disk (with FUSEE_FILE_BRIEF it is); 0: nothing; -errno after
	 * host->fail(): it cannot be used. */
	int (*inspect)(void *ctx, uint64_t file);

	/*
	 * The remaining callbacks: [sampling thread]. They may read short files, and must not wait.
	 * A plugin first learns of a process by mapped() or record(). Any of them may be NULL.
	 */
	/* A library of this unwinder was mapped (FUSEE_VIEW_LIBRARY; called once for each place of
	 * it); or a sample was taken in executable memory that has no file and no claim (at most
	 * once a second). The plugin may claim memory, and set the words of the process. */
	int (*mapped)(void *ctx, uint64_t process, const struct fusee_mapping_view *);
	/* Brings the plugin's names of a process up to date. Called before frames are symbolized,
	 * and about once a second while claimed memory is sampled. Not called once the pid runs
	 * another program. */
	int (*refresh)(void *ctx, uint64_t process);
	/* Language unwinders: an emission of the step in this process. It comes before the first
	 * sample that has a frame with its key, and may come several times. Returns the bytes of
	 * memory that the plugin keeps of it until forget() or detach(), 0: it has them already;
	 * -errno: the emission is lost. The agent bounds the sums of a process, of a user and of
	 * all, and stops calling record() at a bound. */
	int (*record)(void *ctx, uint64_t process, const struct fusee_emission *);
	/* Symbolizes a frame with host->unwinder->frame(). Returns the number of source frames, 0:
	 * the frame has no name, or -errno. */
	int (*symbolize)(void *ctx, const struct fusee_raw_frame *, struct fusee_frame_out *);
	/* The process has ended, and none of its frames will be symbolized any more. */
	void (*detach)(void *ctx, uint64_t process);
	struct fusee_table runtimes; /* struct fusee_runtime */
	/* The releases of a language's run time with which the plugin was tried, for people:
	 * "CPython 3.8.18, 3.12.1". NULL: it does not depend on one. */
	const char *tested;
	/* Language unwinders: frees what record() keeps of a process that no frame needs any more,
	 * as its code was removed. Two calls: with FUSEE_FORGET_BEGIN, then, seconds later, with
	 * FUSEE_FORGET_UNUSED. From the first on the step emits anew what its samples need; and
	 * before the second the core symbolizes all frames of the process that it has. So what was
	 * neither in record() nor used by symbolize() in between is not needed: the second call
	 * frees it, and returns how many bytes of those that record() has returned. NULL: all is
	 * kept until detach(). See <fusee/emitted.h>. */
	uint64_t (*forget)(void *ctx, uint64_t process, uint32_t what); /* enum fusee_forget */
};

/* ---- sinks: each instance has a thread, a window and a bounded queue of its own ---- */

enum fusee_format {
	FUSEE_PPROF_GZ = 1, /* profile.proto, gzipped: the input of pprof tools */
	FUSEE_PPROF = 2,    /* profile.proto */
	FUSEE_FOLDED = 3,   /* text, a line "root;caller;leaf weight" for each stack */
};

/* A profile for a sink. After -EAGAIN the same profile, with the same profile->id, is delivered
 * again with the next attempt number. */
struct fusee_delivery {
	uint32_t size, attempt; /* attempt: from 0 */
	const struct fusee_profile *profile;
	struct fusee_sink_out *out; /* for the host's calls */
};

/* Host calls of sinks: in consume() only, with the `out` of its delivery, but for open_file(). */
struct fusee_sink_host {
	uint32_t size, pad;
	/* Encodes a profile. *bytes are valid until consume() returns. The delivered profile is
	 * encoded once in each format, also if consume() is attempted again. -ENOMEM; -EINVAL:
	 * there is no such format. */
	int (*encode)(struct fusee_sink_out *, const struct fusee_profile *, uint32_t format,
		      struct fusee_str *bytes);
	/* Splits a profile into parts of at most max_samples samples and about max_bytes of
	 * FUSEE_PPROF (0: no limit), and calls each(arg, part) for every part. A part has an id of
	 * its own, which is the same at each attempt. Ends at the first each() that does not return
	 * 0, and returns its result. */
	int (*split)(struct fusee_sink_out *, const struct fusee_profile *, uint64_t max_samples,
		     uint64_t max_bytes, int (*each)(void *arg, const struct fusee_profile *part),
		     void *arg);
	/* Before -EAGAIN is returned: the next attempt is not earlier than in ns nanoseconds.
	 * Without this call the core waits 1 s, then twice as long each time, up to 5 min, but
	 * tries soon after a file that read_secret() has read for the sink has changed. */
	void (*retry_after)(struct fusee_sink_out *, uint64_t ns);
	/* [any thread; may wait for a second] Opens a program or library that a process maps, or
	 * mapped in the last minute, for a server that symbolizes. If the file has no debug
	 * information, and this machine has a debug file with the same build ID and more names, the
	 * debug file is opened. build_id: as in struct fusee_mapping.
	 * Returns a descriptor of a regular file of at most max_bytes, which the plugin reads with
	 * pread() and closes; the target owns all bytes and may change them. Or: -ENOENT: no such
	 * file is known any more; -ENODATA: neither has names of its own functions; -EFBIG;
	 * -ESTALE: it has changed; -EREMOTE: it is on a file server, which can keep readers
	 * waiting; -EAGAIN: later; -ECANCELED: the agent ends; -EOPNOTSUPP: there is no agent.
	 * Older hosts: see FUSEE_HAS. */
	int (*open_file)(struct fusee_instance *, struct fusee_str build_id, uint64_t max_bytes);
	/* Before -EAGAIN is returned: the server denies whatever the sink sends, until a person
	 * fixes a token, a right or an address. The sink is reported as denied; the log says it at
	 * the first attempt and then rarely. Older hosts: see FUSEE_HAS. */
	void (*denied)(struct fusee_sink_out *);
	/* A part of the profile is lost, and the others may be delivered: counts its samples. Call
	 * it at one attempt only for each part. If an error of consume() then loses the profile, no
	 * other samples are counted. Older hosts: see FUSEE_HAS. */
	void (*lost)(struct fusee_sink_out *, const struct fusee_profile *part);
};

enum fusee_listing_flags {
	/* Lists folders instead of objects: names up to and with the next '/' after the prefix,
	 * each once. */
	FUSEE_LISTING_FOLDERS = 1,
};

/* Which of the objects that a sink has delivered are listed. Their names have '/' between folders,
 * and begin below the place that the options name. */
struct fusee_listing {
	uint32_t size, flags; /* enum fusee_listing_flags */
	const char *prefix;   /* of the names */
	/* Receives a name, in alphabetical order. A result other than 0 ends list(), which returns
	 * it. */
	int (*each)(void *arg, struct fusee_str name);
	void *arg;
};

struct fusee_sink_ops {
	uint32_t size, flags; /* flags: 0 */
	/* [the instance's thread; may block] Takes one profile. 0: the sink has it. -EAGAIN:
	 * deliver it again later; the queue behind it waits. Any other -errno: the profile is lost
	 * and counted, with the sentence of host->fail(). */
	int (*consume)(void *ctx, const struct fusee_delivery *);
	/* [the instance's thread; may block] Writes out what the sink has kept, at a flush and at
	 * the end. deadline_ns: CLOCK_MONOTONIC. NULL: the sink keeps nothing. */
	int (*flush)(void *ctx, uint64_t deadline_ns);
	/* [any thread] The end is near: a consume() or flush() that blocks, and every later call,
	 * returns -ECANCELED soon. NULL: they never block for long. */
	void (*cancel)(void *ctx);
	/* [the caller's thread; may block] Reads back what was delivered, for `fusee query`, by an
	 * instance that consumes nothing. Both, or NULL. The sink itself tries again after errors
	 * that may pass, so any error but those below is final. After host->fail(). */
	int (*list)(void *ctx, const struct fusee_listing *);
	/* Reads n bytes of an object from offset `at` on, or with `at` UINT64_MAX its last n bytes,
	 * or all if there are fewer. Returns their number; *all: bytes of the object. -ENOENT:
	 * there is no such object, -ESTALE: it has become shorter. */
	int64_t (*read)(void *ctx, const char *name, uint64_t at, void *to, uint64_t n,
			uint64_t *all);
};

/* ---- discovery ---- */

#include <fusee/discovery.h>

/* ---- samplers ---- */

#include <fusee/sampler.h>

/* ---- host: the calls that every kind of plugin has ---- */
struct fusee_host {
	uint32_t size, abi_minor;
	/* [any thread] Logs a line. level: enum fusee_level. */
	void (*log)(struct fusee_instance *, int level, const char *text);
	/* Keeps the sentence for the error that this callback returns. Returns err, a -errno. */
	int (*fail)(struct fusee_instance *, int err, const char *text);
	/* [any thread] Adds to the counter fusee_plugin_METRIC_total{instance="sink.http"}. metric:
	 * snake_case; labels: text labels. NULL in the worker process. */
	void (*count)(struct fusee_instance *, const char *metric, const struct fusee_label *labels,
		      uint32_t nlabels, uint64_t add);
	/* [any thread] Reads a file with a token or password into buf, without its last newline and
	 * terminated. Read it at each use, so that the file can be changed. Returns the length or
	 * -errno; -EFBIG: it does not fit into cap bytes. NULL in the worker process. */
	int (*read_secret)(struct fusee_instance *, const char *path, char *buf, uint32_t cap);
	/* By kind; the others are NULL. */
	const struct fusee_unwinder_host *unwinder;
	const struct fusee_sink_host *sink;
	const struct fusee_discovery_host *discovery;
};

/* ---- options: the core checks them and writes them into ctx before init() ---- */
enum fusee_option_type {
	FUSEE_BOOL = 1, /* uint8_t */
	FUSEE_INT,      /* int64_t */
	FUSEE_SIZE,     /* uint64_t, bytes: "2GiB" */
	FUSEE_DURATION, /* uint64_t, nanoseconds: "10s" */
	FUSEE_STRING,   /* const char *, valid until fini() has returned */
	FUSEE_ENUM,     /* int64_t: index into `choices` */
	FUSEE_PERCENT,  /* int64_t, in 1/10,000 of a percent: "1.5%" is 15,000 */
	FUSEE_LIST,     /* struct fusee_table of struct fusee_str, which are terminated */
	FUSEE_MAP,      /* struct fusee_table of struct fusee_label; key and str are terminated */
	FUSEE_SECRET,   /* const char *, never printed or logged */
};

struct fusee_option {
	/* def: the default as text, NULL: the option is required. A LIST is "a,b", a MAP "k=v,k=v";
	 * "" is empty. doc: one sentence. */
	const char *name, *def, *doc;
	uint32_t type;              /* enum fusee_option_type */
	uint32_t offset;            /* of the field in ctx */
	int64_t min, max;           /* in the unit of the field; both 0: no limits */
	const char *const *choices; /* FUSEE_ENUM: texts, then NULL */
};

/* ---- the descriptor ---- */
enum fusee_kind {
	FUSEE_SINK = 1,
	FUSEE_DISCOVERY = 2,
	FUSEE_UNWINDER = 3,
	FUSEE_SAMPLER = 4, /* 0.7 */
};

struct fusee_plugin {
	uint32_t magic;
	uint16_t abi_major, abi_minor;
	uint32_t size, kind;
	const char *name, *version, *doc;
	struct fusee_table options; /* struct fusee_option */
	uint32_t ctx_size, pad;     /* bytes of ctx, which the core allocates, zeroed, and frees */
	/* [control thread] The instance and the host are valid until fini() has returned. An error
	 * stops the start or the reload. inspect() is called on an instance of its own, whose
	 * init() runs in the worker process. May be NULL. */
	int (*init)(void *ctx, struct fusee_instance *, const struct fusee_host *);
	/* [control thread, or a sink's own] The last call for this ctx. May be NULL. */
	void (*fini)(void *ctx);
	/* struct fusee_sink_ops, .._discovery_ops, .._unwinder_ops or .._sampler_ops, by kind */
	const void *ops;
};

/* FUSEE_STATIC: several plugins are linked into one program, each with a symbol of its own. */
#ifdef FUSEE_STATIC
#define FUSEE_PLUGIN_SYMBOL(n) fusee_plugin_##n
#else
#define FUSEE_PLUGIN_SYMBOL(n) fusee_plugin
#endif

/* The descriptor: FUSEE_PLUGIN(name, FUSEE_SINK, .doc = "..", .ops = &ops); */
#define FUSEE_PLUGIN(n, k, ...)                                                                  \
	extern FUSEE_EXPORT const struct fusee_plugin FUSEE_PLUGIN_SYMBOL(n);                    \
	const struct fusee_plugin FUSEE_PLUGIN_SYMBOL(n) = {.magic = FUSEE_MAGIC,                \
							    .abi_major = FUSEE_ABI_MAJOR,        \
							    .abi_minor = FUSEE_ABI_MINOR,        \
							    .size = sizeof(struct fusee_plugin), \
							    .kind = (k),                         \
							    .name = #n,                          \
							    __VA_ARGS__}

/* Embeds a file in the plugin, as sym[] up to sym_end[]: FUSEE_EMBED(dwarf_bpf, "dwarf.bpf.o"); */
#define FUSEE_EMBED(sym, path)                                                            \
	__asm__(".pushsection .rodata\n.balign 8\n" #sym ":\n.incbin \"" path "\"\n" #sym \
		"_end:\n.byte 0\n.popsection\n");                                         \
	extern const unsigned char sym[], sym##_end[]

#ifdef __cplusplus
}
#endif
#endif
