/* SPDX-License-Identifier: Apache-2.0 */
/* An inspection: the data about one file content, its segments and its unwind tables. */
#ifndef INSPECTION_INSPECTION_H
#define INSPECTION_INSPECTION_H

#include <stdbool.h>
#include <stdint.h>

#include <fusee/plugin.h>

/* Code whose steps go to a language unwinder: ELF virtual addresses [lo, hi). */
struct inspection_claim {
	uint64_t lo, hi;
	uint64_t arg;   /* the unwinder's own number */
	uint64_t flags; /* enum fusee_claim_flags */
};

/* The data that one unwinder made for the file. */
struct inspection_slab {
	char unwinder[32];
	uint32_t version; /* the unwinder's slab_version */
	uint32_t nclaims;
	const uint32_t *words;                 /* its table */
	uint64_t n;                            /* words */
	const struct inspection_claim *claims; /* sorted, disjoint */
};

enum inspection_flags {
	INSPECTION_GO = 1, /* has a .gopclntab */
	INSPECTION_SYMTAB = 2,
	INSPECTION_DYNSYM = 4,
	INSPECTION_DEBUGDATA = 8,
	INSPECTION_DWARF = 16,
	INSPECTION_CACHED = 32, /* read from the cache on disk */
	/* Of an executable: it may start other programs or load libraries by name. */
	INSPECTION_STARTS = 64,
	/* An unwinder has omitted a part that takes long; there its step stops. */
	INSPECTION_BRIEF = 128,
};

/* The flags of sections that functions and lines come from. */
#define INSPECTION_SOURCES                                                              \
	(INSPECTION_GO | INSPECTION_SYMTAB | INSPECTION_DYNSYM | INSPECTION_DEBUGDATA | \
	 INSPECTION_DWARF)

/*
 * The worker makes an inspection as one block of memory; the agent maps it read-only, checks it and
 * keeps it on disk under a key of its own (owner_key()). Reference counted; everything that it
 * points at is valid as long as a reference is held.
 */
struct inspection {
	uint32_t refs;
	uint8_t key[32];        /* host_key(): a hash of the content, by the worker */
	uint16_t machine, type; /* e_machine, e_type */
	uint32_t flags;         /* enum inspection_flags */
	uint64_t entry;         /* e_entry */
	uint8_t build_id[64];
	uint32_t build_id_len; /* bytes; 0: none */
	uint32_t nsegments, nslabs;
	const struct fusee_segment *segments; /* PT_LOAD, sorted by vaddr */
	const struct inspection_slab *slabs;  /* of the unwinders that made data */
	const char *debuglink; /* file name in .gnu_debuglink, without '/'; "": none */
	const char *compiler;  /* of a program: compiler_of(); "": unknown */
	const char *notes;     /* what unwinders could not use, a sentence a line; "": nothing */
	bool incomplete;       /* a slab is missing for lack of memory; a later try may succeed */
	bool is_stored;        /* agent: it is on disk .. */
	uint8_t stored[32];    /* .. under this name: owner_key() */
	uint32_t debuglink_crc;
	uint64_t bytes; /* of memory held */
};

/* Agent. Checks the block of an inspection at `map`. The inspection owns the mapping and unmaps it
 * with its last reference; a failure unmaps it too. key NULL: any key. 0; -EBADMSG: a position,
 * size or text is invalid, or the key differs; -ENOMEM. */
int inspection_open(struct inspection **ret, void *map, uint64_t len, const uint8_t key[32]);
/* It is on disk under this name. Not while another thread uses it. */
void inspection_set_stored(struct inspection *, const uint8_t name[32]);
void inspection_ref(struct inspection *);   /* [any thread] */
void inspection_unref(struct inspection *); /* [any thread]; NULL is valid */
/* The slab of the unwinder of that name; NULL: none. */
const struct inspection_slab *inspection_slab(const struct inspection *, const char *unwinder);
/* Converts a file offset to an ELF virtual address by the executable segments, rounded to the
 * pages that a mapping has. false: no segment has the offset. */
bool inspection_vaddr(const struct inspection *, uint64_t offset, uint64_t *vaddr);
#endif
