/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the records of a jitdump file say: which code is at which address, its name, and the lines
 * of its instructions. The form is that of tools/perf/Documentation/jitdump-specification.txt in
 * Linux. A target wrote the bytes, and the memory is bounded. For one thread.
 */
#ifndef JITDUMP_DUMP_H
#define JITDUMP_DUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <fusee/codemap.h>

#define DUMP_HEADER 40u          /* bytes of the file's header that are read */
#define DUMP_PREFIX 16u          /* bytes with which each record begins */
#define DUMP_BODY (1u << 20)     /* bytes of a record that are read; the rest is ignored */
#define DUMP_LOAD 1024u          /* the same for a record with code: its name */
#define DUMP_PENDING 4096u       /* commit when as many pieces of code wait */
#define DUMP_LONGEST (64u << 20) /* bytes of a record, at most */

enum dump_fault {
	DUMP_SHORT,     /* refused: a record is shorter than its kind */
	DUMP_BAD_RANGE, /* refused: its code is empty, too large, or wraps */
	DUMP_NOT_MOVED, /* refused: nothing was loaded that could have moved */
	DUMP_NO_CODE,   /* lines without code that follows */
	DUMP_TRUNCATED, /* a name or lines are longer than what is read of them */
	DUMP_FULL,      /* refused: no room in memory */
	DUMP_FAULTS,
};

/* Why a file is none that describes the process's code. */
enum dump_refusal {
	DUMP_ACCEPTED,
	DUMP_NO_DUMP,       /* it does not begin as a jitdump file does */
	DUMP_OTHER_MACHINE, /* its code is not x86-64 */
	DUMP_OTHER_PROCESS, /* it names another process */
};

struct dump;

/* max_bytes: of memory. NULL: no memory. */
struct dump *dump_new(uint64_t max_bytes);
void dump_free(struct dump *); /* NULL is fine */
void dump_limit(struct dump *, uint64_t max_bytes);
uint64_t dump_bytes(const struct dump *); /* memory in use */

/* Reads the header, DUMP_HEADER bytes. pid: as the process sees its own. *size: of the header,
 * where the first record begins. */
enum dump_refusal dump_header(struct dump *, const uint8_t *, uint32_t pid, uint32_t *size);
/* How many bytes of this record's body dump_record() takes, at most. */
uint32_t dump_requires(uint32_t id);
/* Takes a record: the `len` bytes behind its prefix, or as many of them as it requires. */
void dump_record(struct dump *, uint32_t id, const uint8_t *, uint32_t len);
uint32_t dump_pending(const struct dump *);
/* As in <fusee/codemap.h>. */
bool dump_replaces(struct dump *);
void dump_commit(struct dump *, uint32_t generation);

struct dump_found {
	struct fusee_str name, file; /* file: "" without a line */
	uint32_t line;               /* 0: not known */
};

/* What is at addr in that generation. The texts are valid until the next record. */
bool dump_lookup(const struct dump *, uint64_t addr, uint32_t generation, struct dump_found *);
/* As fusee_codemap_covers() for the first 16 names. */
bool dump_covers(const struct dump *, uint64_t lo, uint64_t hi,
		 bool (*each)(void *arg, struct fusee_str name), void *arg);
const uint64_t *dump_faults(const struct dump *); /* so far, by enum dump_fault */
#endif
