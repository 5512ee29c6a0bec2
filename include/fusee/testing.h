/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fusee/testing.h - a host for the test of one plugin, in two headers: the test links the plugin's
 * objects and nothing of fusee.
 *
 *	struct fusee_testing t = {.plugin = &fusee_plugin};
 *	fusee_testing_set(&t, "path", "/tmp/x");
 *	assert(!fusee_testing_init(&t));
 *	assert(!fusee_testing_consume(&t));
 *	fusee_testing_fini(&t);
 *
 * The test sets fields of the struct before it calls the plugin, and reads afterwards what the
 * plugin did. Lines that the plugin logs go to stderr. All functions are for one thread and for one
 * instance at a time. Include the header in one source file of the test.
 */
#ifndef FUSEE_TESTING_H
#define FUSEE_TESTING_H

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fusee/helpers.h>
#include <fusee/unwinder.bpf.h>

#define FUSEE_TESTING_TARGETS 64
#define FUSEE_TESTING_SYMBOLS 16 /* symbols, claims, sections, ranges of memory: each */
#define FUSEE_TESTING_TURNS 1024 /* most calls of a step at one place */

/* A target that a discovery plugin has put. Longer texts are truncated. */
struct fusee_testing_target {
	char key[128], labels[512]; /* labels: "service=shop pid=12 " */
	uint32_t match, pid;        /* match: enum fusee_match */
};

/* Parts of the file and of the process that an unwinder is shown. Texts and bytes are borrowed. */
struct fusee_testing_symbol {
	const char *name;
	struct fusee_range at;
};

struct fusee_testing_section {
	const char *name;
	struct fusee_section section;
};

struct fusee_testing_memory {
	uint64_t addr;
	struct fusee_str bytes;
};

struct fusee_testing {
	/* Set by the test. */
	const struct fusee_plugin *plugin;

	/* Set by fusee_testing_init(). */
	void *ctx; /* the plugin's; freed by fusee_testing_fini() */
	struct fusee_host host;
	struct fusee_sink_host sink;
	struct fusee_discovery_host discovery;
	struct fusee_unwinder_host unwinder;

	/* Every kind: the sentence of the last fail(), the sum of all count()s. */
	char error[512];
	uint64_t counted;

	/* Sinks: what the last retry_after() was given; the calls of denied() and of lost(); the
	 * text of the last encode(). */
	uint64_t retry_after_ns, denials, lost_parts;
	char *encoded;

	/* Discovery: the targets that exist now, the calls of commit(), the last timer(). */
	struct fusee_testing_target targets[FUSEE_TESTING_TARGETS];
	uint32_t ntargets, commits;
	uint64_t timer_ns;

	/*
	 * Unwinders, set by the test: the file that inspect() is given. Its e_machine is 62
	 * (x86-64). file_symbol() and file_function() answer from symbols, file_section() and
	 * file_read() from sections; each array ends with the first element without a name.
	 */
	struct fusee_testing_symbol symbols[FUSEE_TESTING_SYMBOLS];
	struct fusee_testing_section sections[FUSEE_TESTING_SYMBOLS];

	/*
	 * Unwinders, set by the test: the process. process_info() answers `process`, process_read()
	 * reads from memory, which ends with the first range without bytes, and process_open()
	 * opens files below the folder `root`, where process_mapped() finds files by their names.
	 * NULL: the process has no files.
	 */
	struct fusee_process_info process;
	struct fusee_testing_memory memory[FUSEE_TESTING_SYMBOLS];
	const char *root;

	/* Unwinders: the claims and the table of the last inspect(). */
	struct fusee_claim claims[FUSEE_TESTING_SYMBOLS];
	uint32_t nclaims, nslab;
	uint32_t slab[256];
	/* The claims that the process has now, and the generation of its code, 1 at first. */
	struct fusee_claim process_claims[FUSEE_TESTING_SYMBOLS];
	uint32_t nprocess_claims, generation;
	uint32_t words[256], nwords; /* of the last process_slab() */
	/* The source frames so far, as "inner:12;outer:7:hidden;"; "?;" for a frame without a name.
	 */
	char frames[4096];
	uint32_t flags;        /* that the step has pushed with the frame that is symbolized */
	uint64_t emitted[256]; /* hashes of the emissions so far */
	uint32_t nemitted;
};

/* Sets an option from text, as a script does: "5s", "2MiB", "true". Lists and maps stay empty. 0;
 * -ENOENT: the plugin has no such option; -ENOMEM. Before fusee_testing_init(). */
static inline int fusee_testing_set(struct fusee_testing *t, const char *name, const char *value);
/* Gives the other options their defaults and calls init(). Returns init()'s result or -ENOMEM. */
static inline int fusee_testing_init(struct fusee_testing *t);
/* Calls fini() and frees what the host holds. Call it also after a failed fusee_testing_init(). */
static inline void fusee_testing_fini(struct fusee_testing *t);

/* ---- sinks: encode() knows FUSEE_FOLDED and answers -ENOTSUP for the other formats ---- */

/* A profile with two stacks, main;hot of 30 ms and main;cold of 10 ms. It is never freed. */
static inline const struct fusee_profile *fusee_testing_profile(void);
/* Hands fusee_testing_profile() to consume() and returns its result. */
static inline int fusee_testing_consume(struct fusee_testing *t);

/* ---- discovery: the callback's result, 0 where the plugin has none ---- */

static inline int fusee_testing_start(struct fusee_testing *t);
static inline int fusee_testing_tick(struct fusee_testing *t);

/* ---- unwinders ---- */

/* Calls inspect() for the file and returns its result. t->claims and t->slab are filled. */
static inline int fusee_testing_inspect(struct fusee_testing *t);
/*
 * Calls the step at one place, by the claim that holds n->u.offset in the file or n->u.pc in the
 * process, until it returns something else than FUSEE_AGAIN. The test sets n->u.process, pc, sp,
 * flags, offset and bias, and n->read, which reads the target's memory. It also sets valid_regs,
 * regs and cfa as far as native unwinders would know them in this frame; the step sees these three
 * if the claim has FUSEE_CLAIM_REGISTERS, else only valid_regs of a frame with FUSEE_PC_EXACT.
 * Emissions go to record() at once; pushed frames are symbolized and added to t->frames. After
 * FUSEE_NEXT valid_regs are the registers that the step has restored.
 *
 * Returns the last answer, enum fusee_next; FUSEE_PASS: no claim holds n->u.offset; -ELOOP:
 * FUSEE_TESTING_TURNS were not enough; -EBADMSG: the claim has FUSEE_CLAIM_READS_NOTHING, so that
 * the step finds nothing to read, and it did not answer FUSEE_NATIVE_TOO or changed pc or sp.
 */
static inline int fusee_testing_step(struct fusee_testing *t, struct fusee_native *n);
/* Calls mapped() for the executable memory [lo, hi) of a process. The callback's result. */
static inline int fusee_testing_mapped(struct fusee_testing *t, uint64_t process, uint64_t lo,
				       uint64_t hi);
/* Calls mapped() for a library at [lo, hi) whose vaddr 0 is at bias, with the words in t->slab,
 * which inspect() of its file has made. The callback's result. */
static inline int fusee_testing_library(struct fusee_testing *t, uint64_t process, uint64_t lo,
					uint64_t hi, uint64_t bias);
/* Calls refresh(). The callback's result, 0 where the plugin has none. */
static inline int fusee_testing_refresh(struct fusee_testing *t, uint64_t process);
/* Calls symbolize() for an address in claimed memory; its frames are added to t->frames. Returns
 * their number, 0: the address has no name, or -errno. */
static inline int fusee_testing_symbolize(struct fusee_testing *t, uint64_t process, uint64_t addr);

#include <fusee/testing_impl.h>

#endif
