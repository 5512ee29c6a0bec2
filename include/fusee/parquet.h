/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fusee/parquet.h - a writer of Apache Parquet files. Optional: a plugin links it statically
 * (libfusee-parquet.a, `pkg-config --libs fusee-parquet`; in fusee's own tree the plugin's file
 * `uses` has the line "parquet").
 *
 * The writer keeps the rows of one row group, as numbers of the distinct values of each column.
 * When the group is complete its rows are sorted and written: sorted dictionaries, pages with
 * CRC-32, statistics and the page index. All values are required; a missing text is "", a missing
 * number 0. Texts are UTF-8. The same rows in the same order give the same bytes.
 *
 * The format is that of parquet-format 2.9 (parquet.thrift), with data pages of version 1 and the
 * encodings PLAIN, RLE and RLE_DICTIONARY, which every reader has; columns of INT64 whose values
 * ascend and are many have DELTA_BINARY_PACKED. Columns of the options have Bloom filters.
 *
 * Threads: a writer is used by one thread at a time. Errors: the first error of a writer stays, and
 * fusee_parquet_row() and fusee_parquet_finish() return it from then on. What was written of a file
 * that did not finish is no Parquet file, and no reader takes it for one.
 */
#ifndef FUSEE_PARQUET_H
#define FUSEE_PARQUET_H

#include <fusee/helpers.h>

#ifdef __cplusplus
extern "C" {
#endif

enum fusee_parquet_type {
	FUSEE_PARQUET_INT32 = 1,
	FUSEE_PARQUET_INT64 = 2,
	FUSEE_PARQUET_TIME = 3, /* microseconds since 1970, UTC */
	FUSEE_PARQUET_TEXT = 4,
};

enum fusee_parquet_group {
	FUSEE_PARQUET_FLAT = 0, /* one value in each row */
	FUSEE_PARQUET_MAP = 1,  /* a map: two columns of type TEXT, keys and values */
	FUSEE_PARQUET_LIST = 2, /* a list of structs: a column for each member; or of values */
};

/* A column with values. Columns that follow each other with the same `group` and `in` are one map
 * or one list; each row has the same number of values in all of them, 0 is allowed. */
struct fusee_parquet_column {
	const char *name; /* of a map's columns it is not written: they are "key" and "value"; NULL:
			     the only column of a list, which has the values themselves */
	uint32_t type;    /* enum fusee_parquet_type */
	uint32_t group;   /* enum fusee_parquet_group */
	const char *in;   /* the name of the map or list; NULL if FLAT */
};

enum fusee_parquet_codec {
	FUSEE_PARQUET_ZSTD = 0, /* level 3, or that of the options */
	FUSEE_PARQUET_GZIP = 1, /* level 6: about as small, and slower */
	FUSEE_PARQUET_NONE = 2,
};

#define FUSEE_PARQUET_MAX_COLUMNS 64
#define FUSEE_PARQUET_MAX_TEXT (1 << 20)   /* bytes of one text */
#define FUSEE_PARQUET_MAX_VALUES (1 << 16) /* in one row of a map or list */

struct fusee_parquet_options {
	struct fusee_table columns; /* struct fusee_parquet_column; must stay until free() */
	/* uint32_t: columns that rows are sorted by, first first: flat, or lists of values, which
	 * are compared from the last value to the first. */
	struct fusee_table sort;
	uint32_t codec;  /* enum fusee_parquet_codec */
	uint32_t rows;   /* a row group has at most that many, 0: 131,072; more than 2^24: 2^24 */
	uint64_t memory; /* a row group ends when its rows take that many bytes, 0: 64 MiB; writing
			    it takes about as much again */
	/* Takes the file's next bytes: 0 or -errno. */
	int (*write)(void *arg, const void *bytes, uint64_t n);
	void *arg;
	uint32_t level;      /* of ZSTD, 1 to 19; 0: 3 */
	uint32_t renumbered; /* a flat column of INT64; with renumber() */
	/* NULL, or called for each distinct value of that column when a row group is written, in
	 * the order of its sorted rows: *to is written instead. Different values stay different. 0
	 * or -errno. */
	int (*renumber)(void *arg, int64_t value, int64_t *to);
	/* uint32_t: flat columns of TEXT, of whose values each row group gets a Bloom filter (split
	 * blocks of XXH64), by which readers find texts that bounds do not exclude. */
	struct fusee_table filtered;
};

struct fusee_parquet; /* a file that is being written */

/* Begins a file. -EINVAL: the columns or the sorting are not as described above; -ENOMEM. */
int fusee_parquet_new(struct fusee_parquet **, const struct fusee_parquet_options *);

/* Appends a value to column `column` of the current row. Errors are those of fusee_parquet_row().
 */
void fusee_parquet_int(struct fusee_parquet *, uint32_t column, int64_t value);
void fusee_parquet_text(struct fusee_parquet *, uint32_t column, struct fusee_str text);

/* Ends the row. 0; -EINVAL: a column lacks a value, has too many, or has one of another type;
 * -ERANGE: a number does not fit into INT32; -EILSEQ: a text is not UTF-8; -E2BIG: a text or a list
 * is too long; -ENOMEM; or what write() returned. */
int fusee_parquet_row(struct fusee_parquet *);

/* Ends the row group, if it has rows: the next row begins another. Errors are those of
 * fusee_parquet_row(). */
int fusee_parquet_end_group(struct fusee_parquet *);

/* Adds a pair of texts to the file's own metadata, before finish(). They are copied. */
void fusee_parquet_metadata(struct fusee_parquet *, struct fusee_str key, struct fusee_str value);

/* Ends the file: its last row group, the page index and the footer. Errors as above; -EFBIG: the
 * footer would be larger than 2 GiB. */
int fusee_parquet_finish(struct fusee_parquet *);

/* The bytes that were handed to write(), and the rows that are in them. */
uint64_t fusee_parquet_bytes(const struct fusee_parquet *);
uint64_t fusee_parquet_rows(const struct fusee_parquet *);

/* Frees the writer, finished or not. NULL is allowed. */
void fusee_parquet_free(struct fusee_parquet *);

#ifdef __cplusplus
}
#endif
#endif
