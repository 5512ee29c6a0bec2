/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fusee/parquet_read.h - a strict reader of the Parquet files that fusee/parquet.h writes, of the
 * same library. A file of another writer is refused.
 *
 * Every length and offset is checked, the footer and each page by a CRC-32: a file that was changed
 * or truncated gives an error, and never other values. A column of a row group is loaded at once,
 * as codes of its distinct values, within a limit of memory.
 * It refuses what fusee's writer never makes: a footer above 64 MiB, more than 16,384 row groups,
 * 4,096 pairs of metadata or 2^27 rows, names of columns above 1,024 bytes.
 *
 * Threads: a file is used by one thread at a time. Errors: 0; -EINVAL (not such a file, or damaged)
 * and -EFBIG (above the limit of memory): *why is a static sentence about it, without a full stop;
 * -ENOMEM; what read() returned.
 */
#ifndef FUSEE_PARQUET_READ_H
#define FUSEE_PARQUET_READ_H

#include <fusee/parquet.h>

#ifdef __cplusplus
extern "C" {
#endif

struct fusee_parquet_input {
	/* Reads n bytes at offset `at`, all of them: 0 or -errno. They are within `size`. */
	int (*read)(void *arg, uint64_t at, void *to, uint64_t n);
	void *arg;
	uint64_t size;   /* bytes of the file */
	uint64_t memory; /* bytes that the footer, or a column of a row group, may take; 0: 512 MiB
			  */
	uint64_t far;    /* not 0: each read is expensive, so the file's first bytes are not read:
			  * its end says the same */
};

/* A `read` whose `arg` is the address of a file descriptor. -EIO: the file has become shorter. */
int fusee_parquet_read_fd(void *fd, uint64_t at, void *to, uint64_t n);

struct fusee_parquet_file;

/* Reads the footer. */
int fusee_parquet_open(struct fusee_parquet_file **, const struct fusee_parquet_input *,
		       const char **why);
/* NULL is allowed. */
void fusee_parquet_close(struct fusee_parquet_file *);

/* struct fusee_parquet_column, as the writer had them; of a map they have the names "key" and
 * "value". Exists until close(). */
struct fusee_table fusee_parquet_columns(const struct fusee_parquet_file *);
uint32_t fusee_parquet_groups(const struct fusee_parquet_file *);
/* Rows of a row group; at least 1. */
uint64_t fusee_parquet_group_rows(const struct fusee_parquet_file *, uint32_t group);
/* The file's own metadata with this key; NULL: it has none. Exists until close(). */
const struct fusee_str *fusee_parquet_pair(const struct fusee_parquet_file *, struct fusee_str key);
/* Pair i; NULL: there are fewer. pair[0] is the key, pair[1] the value. */
const struct fusee_str *fusee_parquet_pair_at(const struct fusee_parquet_file *, uint32_t i);

/* Bounds of the values of a flat column in a row group: numbers, or for TEXT texts: the lower bound
 * may be a part of the least text; the upper may be shorter than the greatest, and greater. */
struct fusee_parquet_bounds {
	int64_t min, max;
	struct fusee_str min_text, max_text;
};
/* 1; 0: there are none, as of maps and lists. */
int fusee_parquet_bounds(const struct fusee_parquet_file *, uint32_t group, uint32_t column,
			 struct fusee_parquet_bounds *);

/* Whether a row of the row group can have this text in a flat column: 1; 0: the column has a Bloom
 * filter, by which no row has it. *bytes: what was read of the file is added. */
int fusee_parquet_may_have(struct fusee_parquet_file *, uint32_t group, uint32_t column,
			   struct fusee_str text, uint64_t *bytes, const char **why);

/* The values of a column in a row group, in the order of its rows. */
struct fusee_parquet_values {
	uint64_t n;
	/* Value i is element codes[i] of `numbers` or `texts`; NULL: element i. */
	const uint32_t *codes;
	uint32_t ndistinct;            /* elements; no two are equal unless codes is NULL */
	const int64_t *numbers;        /* NULL: texts */
	const struct fusee_str *texts; /* NULL: numbers */
	/* Of maps and lists: the values of row r are those from ends[r - 1] (of row 0: 0) to before
	 * ends[r]. NULL: one in each row. */
	const uint64_t *ends;
	uint64_t bytes;  /* that were read of the file */
	uint64_t memory; /* that they take */
};

int fusee_parquet_load(struct fusee_parquet_file *, uint32_t group, uint32_t column,
		       struct fusee_parquet_values **, const char **why);
/* Only the distinct values of a column in a row group, each of which some row may have: n is 0.
 * -EINVAL: the column has no dictionary, which numbers may lack and texts never. */
int fusee_parquet_load_distinct(struct fusee_parquet_file *, uint32_t group, uint32_t column,
				struct fusee_parquet_values **, const char **why);
/* NULL is allowed. They exist until then, also after close(). */
void fusee_parquet_unload(struct fusee_parquet_values *);

#ifdef __cplusplus
}
#endif
#endif
